import { words } from '../language';
import type zh from './inbox.zh';

export const tr = await words<typeof zh>(() => import('./inbox.zh'));
