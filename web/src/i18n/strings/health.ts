import { words } from '../language';
import type zh from './health.zh';

export const tr = await words<typeof zh>(() => import('./health.zh'));
