import { words } from '../language';
import type zh from './regressions.zh';

export const tr = await words<typeof zh>(() => import('./regressions.zh'));
