import { words } from '../language';
import type zh from '../zh/sources.zh';

export const tr = await words<typeof zh>(() => import('../zh/sources.zh'));
