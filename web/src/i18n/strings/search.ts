import { words } from '../language';
import type zh from './search.zh';

export const tr = await words<typeof zh>(() => import('./search.zh'));
