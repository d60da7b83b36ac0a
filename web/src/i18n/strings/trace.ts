import { words } from '../language';
import type zh from '../zh/trace.zh';

export const tr = await words<typeof zh>(() => import('../zh/trace.zh'));
