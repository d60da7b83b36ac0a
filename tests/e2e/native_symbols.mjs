/* native_symbols.mjs - libraries with native symbols, and profiles with addresses in them. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { root } from './server.mjs';

export const ID = '0123456789abcdef0123456789abcdef01234567';
export const OTHER = 'aabbccddeeff00112233445566778899aabbccdd';
export const source = 'int shop_total(int n) { return n * 3 + 1; }\nint _ZN4shop4Cart3payEii(int a, int b) { return shop_total(a) - b; }\n';

/* perf.data with frames of ID's library at offsets 0x2123, 0x2456 and 0x2999 of its file, and others. */
export const recording = path.join(root, 'tests/golden/perf_data/build_id/input');
/* The functions at those offsets; their addresses are others. */
export const placed = 'asm(".text\\n.fill 4096,1,0x90");\n' + ['shop_total', '_ZN4shop4Cart3payEii', 'shop_log'].map((name) => `asm(".globl ${name}\\n.type ${name},@function\\n${name}: .fill 1024,1,0x90\\n.size ${name},1024");\n`).join('');

/* Compiles a library; its functions by name, as the linker placed them. */
export function library(folder, id, text = source, ...flags) {
	const so = path.join(folder, `lib${id.slice(0, 4)}.so`), c = path.join(folder, 'a.c');
	fs.writeFileSync(c, text);
	execFileSync('cc', ['-shared', '-fPIC', '-nostdlib', '-O1', '-Wl,-soname,libshop.so', '-Wl,--section-start=.text=0x2000', `-Wl,--build-id=0x${id}`, ...flags, '-o', so, c]);
	return so;
}

export function addresses(so) {
	const lines = execFileSync('nm', [so], { encoding: 'utf8' }).split('\n').map((l) => l.split(' '));
	return (name) => parseInt(lines.find((l) => l[2] === name)[0], 16);
}

const varint = (n) => (n < 128 ? [n] : [(n % 128) + 128, ...varint(Math.floor(n / 128))]);
const num = (field, n) => [...varint(field * 8), ...varint(n)];
const bytes = (field, b) => [...varint(field * 8 + 2), ...varint(b.length), ...b];
const text = (field, s) => bytes(field, [...Buffer.from(s)]);
/* pprof: one stack of addresses in ID's library, outermost last. */
export function profile(stack) {
	const out = [...bytes(1, [...num(1, 1), ...num(2, 2)]), ...bytes(2, [...bytes(1, stack.map((_, i) => i + 1).flatMap(varint)), ...bytes(2, varint(10e6))])];
	out.push(...bytes(3, [...num(1, 1), ...num(5, 3), ...num(6, 4)]));
	stack.forEach((address, i) => out.push(...bytes(4, [...num(1, i + 1), ...num(2, 1), ...num(3, address)])));
	for (const s of ['', 'cpu', 'nanoseconds', '/data/app/lib/arm64/libshop.so', ID]) out.push(...text(6, s));
	return Buffer.from(out);
}
