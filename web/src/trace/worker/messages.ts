// Messages between the page and its worker.  Threads are identified by tid.
import type { Found } from './calls';
import type { Directory } from './levels';
import type { Label, Look, View } from './paint';
import type { Progress } from './store';

export interface Hit {
	method: number;
	start: number;
	end: number;
	depth: number;
	merged: number;
	index: number; // among the slices that are loaded
}

/** A position among the calls, ordered by begin, then row, then index. */
export interface Place {
	start: number;
	row: number;
	index: number;
}

/** A call of a trace, independent of the loaded data. */
export interface CallId {
	tid: number;
	start: number;
	depth: number;
}

/** A call with its callers and its callees. */
export interface Called extends CallId {
	hit: Hit;
	self: number | null; // null where only merged calls are loaded
	stack: Hit[]; // its callers, from the root
	callees: Hit[]; // the longest, longest first
	made: number; // calls that it makes itself
}

/** Why a request failed: the server's error, or status 0 if there was no response or it could not be read. */
export interface WorkerError {
	code: string; // the server's word, or `lost`, `internal`
	status: number;
	message: string;
}

/** Data about the call under the pointer; null if only merged calls are loaded. */
export interface About {
	self: number | null;
	methodCount: number | null;
	methodSelf: number | null;
	busy: number | null;
}

export interface Part extends View {
	tid: number;
}

export interface Picture {
	width: number; // device pixels
	height: number;
	from: number;
	to: number;
	top: number; // CSS pixels that the list of threads is scrolled
}

/** Threads to open before the page has sent a message: the worker's name, as JSON. */
export interface WorkerStart {
	trace: string;
	project: string;
	threads: string[]; // main, or a tid
}

export type ToWorker =
	| { kind: 'open'; trace: string; project: string; tids: number[]; early?: Directory } // the open threads; early: opens the thread of this chunk list in addition, and errors are not reported
	| { kind: 'again'; tid: number }
	| { kind: 'look'; look: Look }
	| { kind: 'count'; tid: number | null } // the thread whose matches are counted
	| { kind: 'paint'; picture: Picture; parts: Part[]; buffer: ArrayBuffer }
	| { kind: 'hit'; id: number; tid: number; row: number; time: number; chosen?: boolean } // chosen: with callers and callees
	| { kind: 'call'; id: number; call: CallId }
	| { kind: 'visible'; tid: number; from: number; to: number }
	| { kind: 'next'; tid: number; after: Place; forward: boolean };

export type FromWorker =
	| ({ kind: 'progress'; tid: number } & Progress)
	| { kind: 'failed'; tid: number | null; error: WorkerError } // calls of a thread; null: the last request
	| { kind: 'painted'; picture: Picture; buffer: ArrayBuffer; labels: Label[]; calls: number } // calls: loaded by then
	| { kind: 'hit'; id: number; hit: Hit | null; about: About; called: Called | null }
	| { kind: 'call'; id: number; called: Called | null; all: boolean } // all: no more calls of the thread come
	| { kind: 'found'; tid: number; found: Found | null }
	| { kind: 'visible'; calls: Hit[] }
	| { kind: 'next'; tid: number; hit: Hit | null };
