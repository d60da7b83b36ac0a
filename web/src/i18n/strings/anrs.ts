import { words } from '../language';
import type zh from './anrs.zh';

export const tr = await words<typeof zh>(() => import('./anrs.zh'));
