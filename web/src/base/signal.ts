// Values that are followed: a component that reads one while it is rendered is rendered again when the value changes, and
// an effect runs again.
import { Component, options, type VNode } from 'preact';

type Followers = Set<Follower>;

interface Follower {
	again(): void;
	follows: Set<Followers>;
}

let reading: Follower | null = null;

/** Runs f, whose reads `who` follows. */
function readBy<T>(who: Follower | null, f: () => T): T {
	const before = reading;
	reading = who;
	try {
		return f();
	} finally {
		reading = before;
	}
}

function join(all: Followers): void {
	if (!reading) return;
	all.add(reading);
	reading.follows.add(all);
}

function leave(who: Follower): void {
	for (const all of who.follows) all.delete(who);
	who.follows.clear();
}

function notify(all: Followers): void {
	for (const f of [...all]) if (all.has(f)) f.again(); // an earlier one may have ended a later one
}

export interface ReadonlySignal<T> {
	readonly value: T;
}

export class Signal<T> implements ReadonlySignal<T> {
	private followers: Followers = new Set();

	constructor(private now: T) {}

	get value(): T {
		join(this.followers);
		return this.now;
	}

	set value(v: T) {
		if (v === this.now) return;
		this.now = v;
		notify(this.followers);
	}

	/** Calls f with the value now and after each change, until the returned function is called. */
	subscribe(f: (v: T) => void): () => void {
		return effect(() => {
			const v = this.value;
			readBy(null, () => f(v));
		});
	}
}

export const signal = <T>(value: T): Signal<T> => new Signal(value);

/** Runs f now and after each change of a value that it read, until the returned function is called. */
export function effect(f: () => void): () => void {
	const self: Follower = {
		again() {
			leave(self);
			readBy(self, f);
		},
		follows: new Set(),
	};
	self.again();
	return () => leave(self);
}

/** A value that f makes of others: made at each read, so that it is never older than they are; followers are notified only
 *  of another value. */
export function computed<T>(f: () => T): ReadonlySignal<T> {
	const followers: Followers = new Set();
	let notified: T;
	effect(() => {
		const v = f();
		if (v === notified) return;
		notified = v;
		notify(followers);
	});
	return {
		get value() {
			join(followers);
			return readBy(null, f);
		},
	};
}

// Preact's hooks around each component, by the names in its build.
type Reader = Component & { reader?: Follower };
type Rendered = VNode & { __c?: Reader };
const hooks = options as unknown as Record<'__b' | '__r' | 'diffed' | '__e' | 'unmount', ((...args: [Rendered, ...unknown[]]) => void) | undefined>;

function before(name: keyof typeof hooks, f: (v: Rendered, ...more: unknown[]) => void): void {
	const next = hooks[name];
	hooks[name] = (...args) => {
		f(...args);
		next?.(...args);
	};
}

const none = () => { reading = null; };
before('__b', none);
before('__r', ({ __c: c }) => {
	if (!c) return;
	c.reader ??= { again: () => c.forceUpdate(), follows: new Set() };
	leave(c.reader);
	reading = c.reader;
});
before('diffed', none);
before('__e', none);
before('unmount', ({ __c: c }) => c?.reader && leave(c.reader));

/* A component that follows values is not rendered again by its parent's rendering, unless its properties changed. */
Component.prototype.shouldComponentUpdate = function (this: Reader, to: object, state?: object) {
	const of = (all: object) => all as Record<string, unknown>;
	return !this.reader?.follows.size || Object.keys(state ?? {}).length > 0
		|| [to, this.props].flatMap(Object.keys).some((k) => of(to)[k] !== of(this.props)[k]);
};
