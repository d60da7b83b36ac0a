/*
 * export_readers.mjs - the methods of exported files, read from their formats alone.
 *
 * Each reader returns { methods: name -> {self, total, count}, threads: [name] } in nanoseconds; total
 * counts a call inside a call of the same method once, as the API does. A reader that finds anything that
 * the format does not allow throws.
 */
import assert from 'node:assert/strict';
import zlib from 'node:zlib';
import { Profile } from 'pprof-format';

class Totals {
	methods = new Map();

	row(name) {
		let r = this.methods.get(name);
		if (!r) this.methods.set(name, (r = { self: 0, total: 0, count: 0 }));
		return r;
	}

	/* A stack, outermost first, that has `self` for itself. */
	stack(names, self, count = 0) {
		this.row(names.at(-1)).self += self;
		this.row(names.at(-1)).count += count;
		for (const name of new Set(names)) this.row(name).total += self;
	}
}

/* Begins and ends of one thread: begin(name, ns), end(ns). */
class Calls {
	open = [];
	times = new Map(); // number of open calls per name
	last = -Infinity;

	constructor(totals) {
		this.totals = totals;
	}

	at(ns) {
		assert.ok(ns >= this.last, 'events go back in time');
		if (this.open.length) {
			const dt = ns - this.last;
			this.open.at(-1).self += dt;
		}
		this.last = ns;
	}

	begin(name, ns) {
		this.at(ns);
		const times = this.times.get(name) ?? 0;
		this.times.set(name, times + 1);
		this.open.push({ name, start: ns, self: 0, outermost: times === 0 });
	}

	end(ns, name) {
		this.at(ns);
		const o = this.open.pop();
		assert.ok(o, 'an end without a begin');
		if (name !== undefined) assert.equal(name, o.name, 'another call is open');
		this.times.set(o.name, this.times.get(o.name) - 1);
		const r = this.totals.row(o.name);
		r.count++;
		r.self += o.self;
		if (o.outermost) r.total += ns - o.start;
	}

	done() {
		assert.equal(this.open.length, 0, 'calls stay open');
	}
}

export function speedscope(text, unitNs = 1) {
	const file = JSON.parse(text);
	const totals = new Totals();
	const frames = file.shared.frames.map((f) => f.name);
	for (const p of file.profiles) {
		const calls = new Calls(totals);
		assert.equal(p.type, 'evented');
		for (const e of p.events) {
			assert.ok(e.at >= p.startValue && e.at <= p.endValue && frames[e.frame] !== undefined);
			if (e.type === 'O') calls.begin(frames[e.frame], e.at * unitNs);
			else calls.end(e.at * unitNs, frames[e.frame]);
		}
		calls.done();
	}
	return { methods: totals.methods, threads: file.profiles.map((p) => p.name), file };
}

/* Microseconds with three digits, exactly. */
const ns = (us) => Math.round(us * 1000);

export function chrome(text) {
	const file = JSON.parse(text);
	const totals = new Totals();
	const threads = new Map();
	const calls = new Map();
	for (const e of file.traceEvents) {
		const key = `${e.pid}/${e.tid}`;
		if (!calls.has(key)) calls.set(key, new Calls(totals));
		if (e.ph === 'M') e.name === 'thread_name' && threads.set(key, e.args.name);
		else if (e.ph === 'B') calls.get(key).begin(e.name, ns(e.ts));
		else if (e.ph === 'E') calls.get(key).end(ns(e.ts), e.name);
		else assert.fail(`event of phase ${e.ph}`);
	}
	for (const c of calls.values()) c.done();
	return { methods: totals.methods, threads: [...threads.values()], file };
}

export function folded(text, { merged = false, count = false } = {}) {
	const totals = new Totals();
	const threads = new Set();
	assert.ok(text === '' || text.endsWith('\n'));
	for (const line of text.split('\n').slice(0, -1)) {
		const [, stack, value] = /^(.+) (\d+)$/s.exec(line) ?? assert.fail(`line ${line.slice(0, 80)}`);
		const names = stack.split(';');
		assert.ok(names.every((n) => n !== ''));
		if (!merged) threads.add(names.shift());
		totals.stack(names, count ? 0 : Number(value), count ? Number(value) : 0);
	}
	return { methods: totals.methods, threads: [...threads] };
}

export function pprof(bytes) {
	const p = Profile.decode(bytes[0] === 0x1f ? zlib.gunzipSync(bytes) : bytes);
	const s = p.stringTable.strings;
	assert.equal(s[0], '');
	const types = p.sampleType.map((t) => `${s[Number(t.type)]}/${s[Number(t.unit)]}`);
	assert.equal(Number(p.defaultSampleType), Number(p.sampleType[0].type));
	const functions = new Map(p.function.map((f) => [Number(f.id), s[Number(f.name)]]));
	const locations = new Map(p.location.map((l) => [Number(l.id), functions.get(Number(l.line[0].functionId))]));
	assert.equal(functions.size, p.function.length, 'a function id twice');
	assert.equal(locations.size, p.location.length, 'a location id twice');
	const totals = new Totals();
	const threads = new Map();
	let cpu = 0;
	for (const x of p.sample) {
		const names = x.locationId.map((id) => locations.get(Number(id)) ?? assert.fail(`no location ${id}`)).reverse();
		const labels = Object.fromEntries(x.label.map((l) => [s[Number(l.key)], Number(l.str) ? s[Number(l.str)] : Number(l.num)]));
		assert.equal(x.value.length, types.length);
		threads.set(labels.thread, labels);
		totals.stack(names, Number(x.value[0]), Number(x.value[1]));
		cpu += Number(x.value[2] ?? 0);
	}
	return { methods: totals.methods, threads: [...threads.keys()], labels: [...threads.values()], types, cpu, profile: p };
}

/* Every column of a table has the table's length. */
function columns(table, what, optional = []) {
	for (const [name, column] of Object.entries(table))
		if (name !== 'length' && Array.isArray(column) && !optional.includes(name))
			assert.equal(column.length, table.length, `${what}.${name}`);
}

/* The Firefox Profiler's processed profile, version 70: docs-developer/ and types of its project. */
export function firefox(text) {
	const file = JSON.parse(text);
	assert.equal(file.meta.preprocessedProfileVersion, 70);
	assert.ok(file.meta.categories.some((c) => c.color === 'grey') && file.meta.categories.every((c) => c.subcategories.length));
	for (const key of ['interval', 'startTime', 'processType', 'product', 'stackwalk', 'version', 'markerSchema']) assert.ok(key in file.meta, key);
	assert.deepEqual(file.libs, []);
	const { stackTable, frameTable, funcTable, resourceTable, nativeSymbols, sources, sourceLocationTable, stringArray } = file.shared;
	for (const [what, t] of Object.entries({ stackTable, frameTable, funcTable, resourceTable, nativeSymbols, sources, sourceLocationTable })) columns(t, what);
	assert.deepEqual(Object.keys(frameTable).sort(), ['address', 'category', 'column', 'func', 'inlineDepth', 'innerWindowID', 'length', 'lib', 'line', 'nativeSymbol', 'originalLocation', 'subcategory']);
	assert.deepEqual(Object.keys(funcTable).sort(), ['columnNumber', 'isJS', 'length', 'lineNumber', 'name', 'originalLocation', 'relevantForJS', 'resource', 'source']);
	const name = (stack) => stringArray[funcTable.name[frameTable.func[stackTable.frame[stack]]]] ?? assert.fail(`stack ${stack}`);
	stackTable.prefixOffset.forEach((k, i) => assert.ok(k >= 0 && k <= i));
	const totals = new Totals();
	const memo = new Map();
	const names = (stack) => {
		if (!memo.has(stack)) {
			const k = stackTable.prefixOffset[stack];
			memo.set(stack, [...(k ? names(stack - k) : []), name(stack)]);
		}
		return memo.get(stack);
	};
	for (const t of file.threads) {
		columns(t.samples, 'samples');
		columns(t.markers, 'markers');
		assert.equal(typeof t.pid, 'string');
		assert.ok(t.samples.length > 0 && t.samples.weightType === 'tracing-ms');
		t.samples.stack.forEach((stack, i) => {
			assert.ok(i === 0 || t.samples.time[i] >= t.samples.time[i - 1]);
			const next = t.samples.time[i + 1];
			if (next !== undefined) assert.equal(Math.round((next - t.samples.time[i]) * 1e6), Math.round(t.samples.weight[i] * 1e6), 'stretches touch');
			if (stack !== null) totals.stack(names(stack), Math.round(t.samples.weight[i] * 1e6));
		});
	}
	return { methods: totals.methods, threads: file.threads.map((t) => t.name), file };
}

/* Rows of RFC 4180. */
export function csv(text) {
	const rows = [[]];
	const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
	for (let m; (m = cell.exec(text)); ) {
		rows.at(-1).push(m[1] !== undefined ? m[1].replaceAll('""', '"') : m[2]);
		if (m[3] !== ',') rows.push([]);
		if (cell.lastIndex === text.length) break;
	}
	assert.equal(rows.pop().length, 0, 'the last line ends');
	const [head, ...body] = rows;
	const methods = new Map(body.map((r) => {
		assert.equal(r.length, head.length);
		const row = Object.fromEntries(head.map((h, i) => [h, h === 'name' || h === 'source' ? r[i] : Number(r[i])]));
		return [row.name.replace(/^'/, ''), { self: row.self_ns, total: row.total_ns, count: row.count, row }];
	}));
	return { methods, rows: body.length };
}

/* Nested {name, value, children}: values hold all below. */
export function d3(text) {
	const root = JSON.parse(text);
	const totals = new Totals();
	const walk = (node, path) => {
		const below = node.children.reduce((n, c) => n + c.value, 0);
		assert.equal(node.value, node.self + below, node.name);
		if (path.length) totals.stack(path, node.self, node.count);
		for (const c of node.children) walk(c, [...path, c.name]);
	};
	walk(root, []);
	return { methods: totals.methods, root };
}
