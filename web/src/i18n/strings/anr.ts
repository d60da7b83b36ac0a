import { words } from '../language';
import type zh from '../zh/anr.zh';

export const tr = await words<typeof zh>(() => import('../zh/anr.zh'));
