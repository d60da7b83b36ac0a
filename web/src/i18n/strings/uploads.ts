import { words } from '../language';
import type zh from './uploads.zh';

export const tr = await words<typeof zh>(() => import('./uploads.zh'));
