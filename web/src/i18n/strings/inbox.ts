import { words } from '../language';
import type zh from '../zh/inbox.zh';

export const tr = await words<typeof zh>(() => import('../zh/inbox.zh'));
