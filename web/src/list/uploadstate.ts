// Dropped or chosen files and their progress.
import { signal } from '@preact/signals';
import type { Kind, Side } from './uploadplan';

export type Stage = 'waiting' | 'unnamed' | 'sending' | 'decoding' | 'ready' | 'failed';

export interface Upload {
	id: number;
	file: File;
	sides: [Side, File][]; // sent with it, such as threads.txt
	kind: Kind;
	stage: Stage;
	sent: number; // fraction sent, 0 to 1
	project: string; // '' in one that is made for it
	trace?: string;
	build: string;
	error?: Error;
}

/** Metadata of each trace; empty if there is none. */
export interface Details { app: string; version_name: string; scenario: string; device: string; build_id: string }
export const details = signal<Details>({ app: '', version_name: '', scenario: '', device: '', build_id: '' });

export const uploads = signal<Upload[]>([]);
export const traceChanges = signal(0); // counts changes of the project's traces
