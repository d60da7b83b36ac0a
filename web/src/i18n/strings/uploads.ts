import { words } from '../language';
import type zh from '../zh/uploads.zh';

export const tr = await words<typeof zh>(() => import('../zh/uploads.zh'));
