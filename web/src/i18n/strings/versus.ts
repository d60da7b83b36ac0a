import { words } from '../language';
import type zh from '../zh/versus.zh';

export const tr = await words<typeof zh>(() => import('../zh/versus.zh'));
