import { words } from '../language';
import type zh from '../zh/sql.zh';

export const tr = await words<typeof zh>(() => import('../zh/sql.zh'));
