import { words } from '../language';
import type zh from '../zh/notifications.zh';

export const tr = await words<typeof zh>(() => import('../zh/notifications.zh'));
