import { words } from '../language';
import type zh from '../zh/manage.zh';

export const tr = await words<typeof zh>(() => import('../zh/manage.zh'));
