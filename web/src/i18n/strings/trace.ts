import { words } from '../language';
import type zh from './trace.zh';

export const tr = await words<typeof zh>(() => import('./trace.zh'));
