import { words } from '../language';
import type zh from './sql.zh';

export const tr = await words<typeof zh>(() => import('./sql.zh'));
