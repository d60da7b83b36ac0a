import { words } from '../language';
import type zh from './webhooks.zh';

export const tr = await words<typeof zh>(() => import('./webhooks.zh'));
