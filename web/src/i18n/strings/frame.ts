import { words } from '../language';
import type zh from './frame.zh';

export const tr = await words<typeof zh>(() => import('./frame.zh'));
