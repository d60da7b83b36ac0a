import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firefoxAddress, perfettoAddress, perfettoTime, pinCalls, scopeQuery, speedscopeAddress } from '../../src/trace/opening';

const bases = { mono_base_ns: 5_000, boot_base_ns: 1_700_000_000_123_456_789 };
const args = (address: string) => new URLSearchParams(new URL(address).hash.slice('#!/?'.length));

test('times of the Perfetto file are BOOTTIME, or what is known', () => {
	assert.equal(perfettoTime(10, bases), BigInt(bases.boot_base_ns) + 10n);
	assert.equal(perfettoTime(10, { mono_base_ns: 5000, boot_base_ns: -1 }), 5010n);
	assert.equal(perfettoTime(10, { mono_base_ns: -1, boot_base_ns: -1 }), 10n);
	assert.equal(perfettoTime(10.4, {}), 10n);
});

test('the Perfetto UI is told the range and what to pin', () => {
	const at = perfettoAddress('https://ui.perfetto.dev', { tid: 4711, range: [1000, 2000], bases: { boot_base_ns: 7 } });
	assert.ok(at.startsWith('https://ui.perfetto.dev/#!/?') && !at.includes('+'));
	assert.deepEqual([args(at).get('visStart'), args(at).get('visEnd'), args(at).get('url')], ['1007', '2007', null]);
	assert.deepEqual(JSON.parse(args(at).get('startupCommands')!), pinCalls(4711));
	const own = perfettoAddress('https://own.example/perfetto/', { tid: null, range: null, bases: {} }, 'https://t.example/api/v1/tickets/a-b_c/x y.perfetto-trace');
	assert.ok(own.startsWith('https://own.example/perfetto/#!/?url='));
	assert.equal(args(own).get('url'), 'https://t.example/api/v1/tickets/a-b_c/x y.perfetto-trace');
	assert.equal(args(own).get('visStart'), null);
});

test('one thread is pinned, also where the process has its number', () => {
	const { args: [pattern, by] } = pinCalls(4711)[0];
	assert.equal(by, 'path');
	const pins = (path: string) => new RegExp(pattern).test(path);
	assert.ok(pins('com.acme 4711 > main 4711 > methods') && pins('Processes/com.acme 42/main 4711/methods'));
	assert.ok(pins('com.acme 42 > main 4711 > methods (sampled every 10 ms)'));
	assert.ok(!pins('com.acme 4711 > worker-1 4712 > methods') && !pins('com.acme 47 > x 14711 > methods') && !pins('com.acme 4711 > main 4711'));
});

test('other tools get the address whole', () => {
	const file = 'https://t.example/api/v1/tickets/T/a&b=c#d.json';
	const at = new URL(speedscopeAddress('https://www.speedscope.app', file, 'A & B'));
	const parts = Object.fromEntries(at.hash.slice(1).split('&').map((p) => p.split('=').map(decodeURIComponent)));
	assert.deepEqual(parts, { profileURL: file, title: 'A & B' });
	assert.equal(firefoxAddress('https://profiler.firefox.com/', file), 'https://profiler.firefox.com/from-url/' + encodeURIComponent(file));
});

test('a scope is a query of whole nanoseconds, never empty', () => {
	assert.deepEqual(scopeQuery({ tid: null, range: null }), {});
	assert.deepEqual(scopeQuery({ tid: 7, range: null, sanitize: true }), { threads: '7', sanitize: '1' });
	assert.deepEqual(scopeQuery({ tid: 5, range: [1.5, 2.5] }, { metric: 'count' }), { threads: '5', from: '1', to: '3', metric: 'count' });
	assert.deepEqual(scopeQuery({ tid: null, range: [4, 4] }), { from: '4', to: '5' });
});
