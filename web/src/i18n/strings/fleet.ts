import { words } from '../language';
import type zh from '../zh/fleet.zh';

export const tr = await words<typeof zh>(() => import('../zh/fleet.zh'));
