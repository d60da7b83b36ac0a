import { words } from '../language';
import type zh from './versus.zh';

export const tr = await words<typeof zh>(() => import('./versus.zh'));
