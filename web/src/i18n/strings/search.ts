import { words } from '../language';
import type zh from '../zh/search.zh';

export const tr = await words<typeof zh>(() => import('../zh/search.zh'));
