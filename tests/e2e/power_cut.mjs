/*
 * power_cut.mjs - the states in which a power cut may leave a folder, from the record of the operations on it
 * (tests/fault/record.c).
 *
 * The model is a file system with the weakest guarantees: only data covered by a finished sync is durable.  A
 * sync of a file covers its bytes and its size, not its name; a sync of a folder covers the names in it.
 * Everything else may be lost or not, separately: each write, each name, and some sectors of a write, of 512 or
 * 4,096 bytes.  A file that was extended has zeros in place of lost bytes.  A name that was removed by rename or
 * unlink may still exist, together with the new one if that is in another folder.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { binary } from './server.mjs';

export const recorder = path.join(path.dirname(binary()), '..', 'tests', 'libtracewell-record.so');
const HEAD = 32; /* of a line */
const UNDER = 16; /* where the control file has the folder */
const OPS = ['', 'create', 'truncate', 'write', 'rename', 'unlink', 'link', 'mkdir', 'begin', 'end', 'sent', 'mark'];

/* The recorder's files and records.  `under`: the folder to consider, with its contents. */
export class Recorder {
	constructor(folder, under) {
		this.shim = path.join(folder, 'record.so');
		fs.copyFileSync(recorder, this.shim);
		const control = Buffer.alloc(UNDER + 512);
		control.write(under, UNDER);
		fs.writeFileSync(this.shim + '.ctl', control);
		this.log = fs.openSync(this.shim + '.log', 'a+');
	}

	/* A line of the test's own, between those of the server. */
	mark(about) {
		const data = Buffer.from(JSON.stringify(about));
		const head = Buffer.alloc(HEAD);
		head.writeUInt32LE(HEAD + data.length, 0);
		head.writeUInt32LE(OPS.indexOf('mark'), 4);
		fs.writeSync(this.log, Buffer.concat([head, data]));
	}

	lines() {
		const all = fs.readFileSync(this.shim + '.log');
		const lines = [];
		for (let at = 0; at < all.length; at += all.readUInt32LE(at)) {
			const path1 = at + HEAD + all.readUInt32LE(at + 24);
			const path2 = path1 + all.readUInt32LE(at + 28);
			lines.push({
				op: OPS[all.readUInt32LE(at + 4)],
				ino: String(all.readBigUInt64LE(at + 8)),
				arg: Number(all.readBigUInt64LE(at + 16)),
				path: all.toString('utf8', at + HEAD, path1),
				to: all.toString('utf8', path1, path2),
				data: all.subarray(path2, at + all.readUInt32LE(at)),
			});
		}
		return lines;
	}
}

/* Numbers from a seed, from 0 up to 1. */
export function random(seed) {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let x = Math.imul(state ^ (state >>> 15), state | 1);
		x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
		return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
	};
}

function written(bytes, at, data) {
	const size = Math.max(bytes.length, at + data.length);
	const out = Buffer.alloc(size);
	bytes.copy(out);
	data.copy(out, at);
	return out;
}

function truncated(bytes, size) {
	const out = Buffer.alloc(size);
	bytes.copy(out, 0, 0, Math.min(size, bytes.length));
	return out;
}

/* How a cut treats data that is not durable: `keep` of 0 loses it, 1 retains it, otherwise each by chance. */
const IN_ORDER = { names: 1, writes: 1 };

/* Values that change, of which the first `n` changes may be made durable. */
class Changes {
	constructor(first) {
		this.durable = first;
		this.pending = [];
		this.count = 0; /* changes ever made durable */
	}

	get total() {
		return this.count + this.pending.length;
	}

	settle(total, apply) {
		while (this.count < total) {
			this.durable = apply(this.durable, this.pending.shift());
			this.count++;
		}
	}
}

class File extends Changes {
	constructor(bytes = Buffer.alloc(0)) {
		super(bytes);
	}

	static apply(bytes, change) {
		return change.data ? written(bytes, change.at, change.data) : truncated(bytes, change.at);
	}

	covered() {
		const { total } = this;
		return () => this.settle(total, File.apply);
	}

	/* Some sectors of a write: the others retain their old content, or zeros. */
	static torn(bytes, { at, data }, sector, chance) {
		let out = truncated(bytes, Math.max(bytes.length, at + data.length));
		for (let from = at; from < at + data.length; ) {
			const to = Math.min(at + data.length, (Math.floor(from / sector) + 1) * sector);
			if (chance() < 0.5) out = written(out, from, data.subarray(from - at, to - at));
			from = to;
		}
		return out;
	}

	left(how, chance) {
		return this.pending.reduce((bytes, change) => {
			if (how.writes === 1) return File.apply(bytes, change);
			const dice = chance();
			if (dice >= how.writes) return bytes;
			return change.data && how.sector && dice < how.writes / 2
				? File.torn(bytes, change, how.sector, chance) : File.apply(bytes, change);
		}, this.durable);
	}
}

const latest = (_, change) => change;

class Folder {
	constructor() {
		this.names = new Map(); /* name: Changes of File, Folder or null */
	}

	set(name, node) {
		if (!this.names.has(name)) this.names.set(name, new Changes(null));
		this.names.get(name).pending.push(node);
	}

	get(name) {
		const changes = this.names.get(name);
		return changes ? changes.pending.at(-1) ?? (changes.pending.length ? null : changes.durable) : null;
	}

	covered() {
		const totals = [...this.names.values()].map((changes) => [changes, changes.total]);
		return () => totals.forEach(([changes, total]) => changes.settle(total, latest));
	}

	/* The file of each name, by chance. */
	*left(how, chance) {
		for (const [name, { durable, pending }] of this.names) {
			const states = [durable, ...pending];
			const keep = how.names === 1 ? states.length - 1 : chance() < how.names ? Math.floor(chance() * states.length) : 0;
			if (states[keep]) yield [name, states[keep]];
		}
	}
}

/* The current contents of a folder, with its inodes. */
export function snapshot(where) {
	const stat = fs.lstatSync(where);
	const taken = { ino: String(stat.ino) };
	if (stat.isDirectory())
		taken.names = fs.readdirSync(where).filter((name) => !name.endsWith('-shm')).map((name) => [name, snapshot(path.join(where, name))]);
	else taken.bytes = fs.readFileSync(where);
	return taken;
}

/* The folder after the lines so far. */
export class Disk {
	/* `root`: the recorded folder; its snapshot is durable. */
	constructor(root, taken) {
		this.root = root;
		this.nodes = new Map(); /* by inode */
		this.syncs = new Map(); /* in progress, by serial */
		this.top = this.take(taken);
	}

	take({ ino, names, bytes }) {
		const node = names ? new Folder() : new File(bytes);
		this.nodes.set(ino, node);
		for (const [name, below] of names ?? []) node.names.set(name, new Changes(this.take(below)));
		return node;
	}

	/* The folder of a path, and its last name. */
	at(where) {
		const names = path.relative(this.root, where).split('/');
		const last = names.pop();
		return [names.reduce((folder, name) => folder.get(name), this.top), last];
	}

	make(line, node) {
		this.nodes.set(line.ino, node);
		const [folder, name] = this.at(line.path);
		folder.set(name, node);
	}

	move(line, keeps) {
		const [from, name] = this.at(line.path);
		const [to, other] = this.at(line.to);
		to.set(other, from.get(name));
		if (!keeps) from.set(name, null);
	}

	/* Applies one line of the record; true if it changed the states that a cut may leave. */
	play(line) {
		switch (line.op) {
			case 'create': this.make(line, new File()); break;
			case 'mkdir': this.make(line, new Folder()); break;
			case 'write': this.nodes.get(line.ino).pending.push({ at: line.arg, data: line.data }); break;
			case 'truncate': this.nodes.get(line.ino).pending.push({ at: line.arg }); break;
			case 'rename': this.move(line, false); break;
			case 'link': this.move(line, true); break;
			case 'unlink': {
				const [folder, name] = this.at(line.path);
				folder.set(name, null);
				break;
			}
			case 'begin': this.syncs.set(line.arg, this.nodes.get(line.ino).covered()); return false;
			case 'end': this.syncs.get(line.arg)(); break;
			default: return false;
		}
		return true;
	}

	/* A state that a cut may leave now: paths, and the bytes of files (null: a folder). Without `how`, nothing is lost. */
	image(how = IN_ORDER, chance = Math.random) {
		const all = [];
		const look = (node, where) => {
			if (node instanceof File) return all.push([where, node.left(how, chance)]);
			all.push([where, null]);
			for (const [name, below] of node.left(how, chance)) look(below, path.join(where, name));
		};
		look(this.top, '');
		return all;
	}
}

export function writeImage(image, folder) {
	for (const [where, bytes] of image)
		if (bytes) fs.writeFileSync(path.join(folder, where), bytes, { mode: 0o600 });
		else fs.mkdirSync(path.join(folder, where), { recursive: true, mode: 0o700 });
}

const digests = new WeakMap(); /* of bytes, which never change once they are in an image */

export function digestOf(image) {
	const all = createHash('sha1');
	for (const [where, bytes] of image) {
		if (bytes && !digests.has(bytes)) digests.set(bytes, createHash('sha1').update(bytes).digest('hex'));
		all.update(`${where}\0${bytes ? digests.get(bytes) : ''}\0`);
	}
	return all.digest('hex');
}
