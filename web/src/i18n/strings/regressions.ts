import { words } from '../language';
import type zh from '../zh/regressions.zh';

export const tr = await words<typeof zh>(() => import('../zh/regressions.zh'));
