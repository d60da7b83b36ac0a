import { words } from '../language';
import type zh from './anr.zh';

export const tr = await words<typeof zh>(() => import('./anr.zh'));
