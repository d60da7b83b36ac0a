// The files that were dropped or chosen, and how far each is.
import { signal } from '@preact/signals';
import type { Kind, Side } from './uploadplan';

export type Stage = 'waiting' | 'unnamed' | 'sending' | 'decoding' | 'ready' | 'failed';

export interface Upload {
	id: number;
	file: File;
	sides: [Side, File][]; // that belong to it, as names of threads
	kind: Kind;
	stage: Stage;
	sent: number; // of 1
	trace?: string;
	build: string;
	error?: Error;
}

/** Metadata of each trace; empty if there is none. */
export interface Details { app: string; version_name: string; scenario: string; device: string; build_id: string }
export const details = signal<Details>({ app: '', version_name: '', scenario: '', device: '', build_id: '' });

export const uploads = signal<Upload[]>([]);
export const landed = signal(0); // counts changes of the project's traces
