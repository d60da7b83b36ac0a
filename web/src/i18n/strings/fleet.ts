import { words } from '../language';
import type zh from './fleet.zh';

export const tr = await words<typeof zh>(() => import('./fleet.zh'));
