import { words } from '../language';
import type zh from './manage.zh';

export const tr = await words<typeof zh>(() => import('./manage.zh'));
