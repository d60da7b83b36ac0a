import { words } from '../language';
import type zh from '../zh/anrs.zh';

export const tr = await words<typeof zh>(() => import('../zh/anrs.zh'));
