import { words } from '../language';
import type zh from './sources.zh';

export const tr = await words<typeof zh>(() => import('./sources.zh'));
