import { words } from '../language';
import type zh from '../zh/frame.zh';

export const tr = await words<typeof zh>(() => import('../zh/frame.zh'));
