import { words } from '../language';
import type zh from '../zh/compare.zh';

export const tr = await words<typeof zh>(() => import('../zh/compare.zh'));
