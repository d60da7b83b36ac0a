// What the page and its worker say to each other.
import type { Label, Look, View } from './paint';

export interface Hit {
	method: number;
	start: number;
	end: number;
	depth: number;
	merged: number;
	index: number; // among the slices that are loaded
}

/** A place among the calls, in the order of begin, then row, then index. */
export interface Place {
	start: number;
	row: number;
	index: number;
}

/** What is told of the call under the pointer; null where only merged calls are loaded. */
export interface About {
	self: number | null;
	methodCount: number | null;
	methodSelf: number | null;
	busy: number | null;
}

export type ToWorker =
	| { kind: 'load'; id: number; trace: string; project: string; tid: number }
	| { kind: 'look'; look: Look }
	| { kind: 'paint'; id: number; view: View; buffer: ArrayBuffer }
	| { kind: 'hit'; id: number; row: number; time: number }
	| { kind: 'visible'; id: number; from: number; to: number }
	| { kind: 'next'; id: number; after: Place; forward: boolean };

export type FromWorker =
	| { kind: 'progress'; id: number; loaded: number; total: number; slices: number; complete: boolean }
	| { kind: 'failed'; id: number; message: string }
	| { kind: 'painted'; id: number; view: View; buffer: ArrayBuffer; labels: Label[]; calls: number } // calls: loaded by then
	| { kind: 'hit'; id: number; hit: Hit | null; about: About }
	| { kind: 'found'; calls: number | null }
	| { kind: 'visible'; id: number; calls: Hit[] }
	| { kind: 'next'; id: number; hit: Hit | null };
