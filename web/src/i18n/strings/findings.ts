import { words } from '../language';
import type zh from '../zh/findings.zh';

export const tr = await words<typeof zh>(() => import('../zh/findings.zh'));
