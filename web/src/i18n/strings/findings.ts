import { words } from '../language';
import type zh from './findings.zh';

export const tr = await words<typeof zh>(() => import('./findings.zh'));
