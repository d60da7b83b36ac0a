import { words } from '../language';
import type zh from './compare.zh';

export const tr = await words<typeof zh>(() => import('./compare.zh'));
