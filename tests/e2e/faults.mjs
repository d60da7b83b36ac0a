/*
 * faults.mjs - operations of a server and its decoders made to fail, or to be its last, by tests/fault/fault.c: give it to
 * the server as LD_PRELOAD.
 */
import fs from 'node:fs';
import path from 'node:path';

import { binary } from './server.mjs';

export const shim = path.join(path.dirname(binary()), '..', 'tests', 'libtracewell-fault.so');
/* Which operations fail, with which error: of the disk, that open descriptors, that allocate memory, that allocate it at a new place of the
 * program; KILL ends the process at a write or send; of SHORT writes half of the bytes are written. */
const ERRNO = { EIO: [5n, 0n], EINTR: [4n, 0n], ENOSPC: [28n, 0n], SHORT: [0n, 5n], EMFILE: [24n, 1n], ENOMEM: [12n, 2n], PLACE: [12n, 3n], KILL: [0n, 4n] };
export const ANY = 2 ** 40; /* calls */
const HEAD = 192, ONLY = 176; /* of the control file: the folder, and the operation that counts */

/* The control file of fault.c. Operations on paths that begin with `under` count. */
export class Faults {
	constructor(folder, under) {
		this.shim = path.join(folder, 'fault.so');
		fs.copyFileSync(shim, this.shim);
		this.fd = fs.openSync(this.shim + '.ctl', 'w+');
		const all = Buffer.alloc(HEAD + 512);
		all.write(under, HEAD);
		fs.writeSync(this.fd, all, 0, all.length, 0);
	}

	/* Calls from..to fail, counted from now on; `pid`: of that process alone; `only`: of this operation alone. */
	arm(from, to, error, pid = 0, only = '') {
		const fields = Buffer.alloc(HEAD);
		[0n, 0n, BigInt(to), 0n, ...ERRNO[error], BigInt(pid)].forEach((v, i) => fields.writeBigUInt64LE(v, 8 * i));
		fields.write(only, ONLY);
		fs.writeSync(this.fd, fields, 0, HEAD, 0);
		fields.writeBigUInt64LE(BigInt(from), 0);
		fs.writeSync(this.fd, fields, 0, 8, 8);
	}

	/* How many failed so far. */
	hits() {
		const field = Buffer.alloc(8);
		fs.readSync(this.fd, field, 0, 8, 24);
		return Number(field.readBigUInt64LE(0));
	}

	/* Ends the faults; returns the number of failed operations, of all, and the first one. */
	disarm() {
		const fields = Buffer.alloc(HEAD);
		fs.writeSync(this.fd, Buffer.alloc(8), 0, 8, 8);
		fs.readSync(this.fd, fields, 0, HEAD, 0);
		return { calls: Number(fields.readBigUInt64LE(0)), hits: Number(fields.readBigUInt64LE(24)),
			what: fields.toString('latin1', 56, ONLY).replace(/\0.*/s, '') };
	}
}
