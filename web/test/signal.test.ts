import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computed, effect, signal } from '../src/base/signal';

test('an effect runs again when a value that it read last changes, until it ends', () => {
	const [a, b, which] = [signal(1), signal(10), signal('a')];
	const seen: number[] = [];
	const end = effect(() => { seen.push(which.value === 'a' ? a.value : b.value); });
	b.value = 11;
	a.value = 2;
	a.value = 2;
	which.value = 'b';
	a.value = 3;
	b.value = 12;
	end();
	b.value = 13;
	assert.deepEqual(seen, [1, 2, 11, 12]);
});

test('a computed value is never older than its sources, and notifies of changes only', () => {
	const query = signal('x=1');
	const seen: string[] = [];
	let x = computed(() => '');
	effect(() => { // follows the source before the value that is made of it
		void query.value;
		x = seen.length === 0 ? computed(() => query.value.split('&')[0]) : x;
		seen.push(x.value);
	});
	query.value = 'x=2';
	assert.equal(seen[1], 'x=2', 'on the first run after the change');
	let runs = 0;
	effect(() => { void x.value; runs++; });
	query.value = 'x=2&y=3';
	assert.equal(runs, 1);
	query.value = 'x=4';
	assert.equal(runs, 2);
});

test('an effect that is ended by another during a change does not run', () => {
	const a = signal(0);
	let late = 0;
	let end: (() => void) | null = null;
	effect(() => { if (a.value > 0) end?.(); });
	end = effect(() => { void a.value; late++; });
	a.value = 1;
	assert.equal(late, 1);
});

test('a subscriber gets the value now and each later one, and what it reads it does not follow', () => {
	const [a, other] = [signal(1), signal(1)];
	const seen: number[] = [];
	const end = a.subscribe((v) => { seen.push(v + other.value); });
	other.value = 5;
	a.value = 2;
	end();
	a.value = 3;
	assert.deepEqual(seen, [2, 7]);
});
