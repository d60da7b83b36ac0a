import { words } from '../language';
import type zh from './list.zh';

export const tr = await words<typeof zh>(() => import('./list.zh'));
