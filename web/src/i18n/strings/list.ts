import { words } from '../language';
import type zh from '../zh/list.zh';

export const tr = await words<typeof zh>(() => import('../zh/list.zh'));
