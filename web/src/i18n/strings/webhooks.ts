import { words } from '../language';
import type zh from '../zh/webhooks.zh';

export const tr = await words<typeof zh>(() => import('../zh/webhooks.zh'));
