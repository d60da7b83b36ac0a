import { words } from '../language';
import type zh from '../zh/health.zh';

export const tr = await words<typeof zh>(() => import('../zh/health.zh'));
