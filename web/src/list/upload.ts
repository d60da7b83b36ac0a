// Files that people drop or choose: what each is, how it is sent, and how far it is.
import { signal } from '@preact/signals';
import { api, upload, Refusal } from '../api/api';
import { backOff } from '../api/traces';
import { heardInTime } from '../i18n/heard';
import { firstProject } from '../ui/makekey';
import { go, link, path } from '../ui/route';

const HEAD_BYTES = 64 * 1024;
const AT_ONCE = 2;
const RETRIES = 5;

export type Kind = 'trace' | 'methods' | 'retrace' | 'threads';
export type Stage = 'waiting' | 'unnamed' | 'sending' | 'decoding' | 'ready' | 'failed';

export interface Upload {
	id: number;
	file: File;
	side?: File; // thread names that belong to it
	kind: Kind;
	stage: Stage;
	sent: number; // of 1
	trace?: string;
	build: string;
	error?: Error;
}

/** What is said of each trace; empty where nothing is. */
export interface Details { app: string; version_name: string; scenario: string; device: string; build_id: string }
export const details = signal<Details>({ app: '', version_name: '', scenario: '', device: '', build_id: '' });

export const uploads = signal<Upload[]>([]);
export const landed = signal(0); // how often the project's traces became more or other

let next = 1;

/** By its content: a mapping is text of a known shape, everything else may be a trace, which the server recognises. */
export function kindOf(name: string, head: string): Kind {
	const line = head.split('\n', 200).map((l) => l.trim()).find((l) => l && !l.startsWith('#')) ?? '';
	if (/^\d+,\d+,\S+/.test(line)) return 'methods';
	if (/^[\w$.\-/]+ -> [\w$.\-/]+:$/.test(line)) return 'retrace';
	if (/^methodMapping\b.*\.txt(\.(zst|gz))?$/i.test(name)) return 'methods';
	if (/^(mapping|proguard)\b.*\.txt(\.(zst|gz))?$/i.test(name)) return 'retrace';
	if (/^threads?\b.*\.txt$/i.test(name)) return 'threads';
	return 'trace';
}

/** A name for the build that traces and a mapping dropped together belong to: of R8's header, else of the mapping's content. */
export function buildOf(head: string): string {
	const given = /^# ?pg_map_id: *(\w+)/m.exec(head)?.[1];
	if (given) return given;
	let hash = 0x811c9dc5;
	for (let i = 0; i < head.length; i++) hash = Math.imul(hash ^ head.charCodeAt(i), 0x01000193);
	return `local-${(hash >>> 0).toString(16).padStart(8, '0')}`;
}

function change(id: number, to: Partial<Upload>): void {
	uploads.value = uploads.value.map((u) => (u.id === id ? { ...u, ...to } : u));
}

export function dismiss(id: number): void {
	uploads.value = uploads.value.filter((u) => u.id !== id);
}

export function dismissEnded(): void {
	uploads.value = uploads.value.filter((u) => u.stage !== 'ready' && u.stage !== 'failed');
}

export const isBusy = (u: Upload): boolean => u.stage === 'waiting' || u.stage === 'sending' || u.stage === 'decoding';

/** Takes files: traces and mappings that come together belong to one build. */
export async function take(files: File[]): Promise<void> {
	const here = path.value;
	const heads = await Promise.all(files.map((f) => f.slice(0, HEAD_BYTES).text().catch(() => '')));
	const kinds = files.map((f, i) => kindOf(f.name, heads[i]));
	const traces = kinds.filter((k) => k === 'trace').length;
	const mapping = heads.find((_, i) => kinds[i] === 'methods' || kinds[i] === 'retrace');
	const build = details.value.build_id || (mapping !== undefined && traces > 0 ? buildOf(mapping) : '');
	const side = traces === 1 ? files.find((_, i) => kinds[i] === 'threads') : undefined;
	const made = files.map((file, i): Upload => ({
		id: next++, file, side: kinds[i] === 'trace' ? side : undefined, kind: kinds[i], build, sent: 0,
		stage: kinds[i] !== 'trace' && kinds[i] !== 'threads' && !build ? 'unnamed' : 'waiting',
	})).filter((u) => u.file !== side).map((u): Upload => (u.kind === 'threads' ? { ...u, kind: 'trace' } : u));
	uploads.value = [...uploads.value, ...made];
	if (traces === 1) opens = { id: made.find((u) => u.kind === 'trace')!.id, from: here };
	pump();
}

/** Names the build of a mapping that came without one. */
export function nameBuild(id: number, build: string): void {
	change(id, { build, stage: 'waiting' });
	pump();
}

export function retry(id: number): void {
	change(id, { stage: 'waiting', sent: 0, error: undefined });
	pump();
}

let opens: { id: number; from: string } | null = null; // a single trace is shown when it can be, unless its reader went elsewhere

function pump(): void {
	const busy = uploads.value.filter((u) => u.stage === 'sending').length;
	for (const u of uploads.value.filter((one) => one.stage === 'waiting').slice(0, AT_ONCE - busy)) void run(u);
}

async function run(u: Upload): Promise<void> {
	change(u.id, { stage: 'sending' });
	try {
		await firstProject();
		if (u.kind === 'trace') await sendTrace(u);
		else await sendMapping(u);
		landed.value++;
	} catch (why) {
		change(u.id, { stage: 'failed', error: why as Error });
	}
	pump();
}

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** Sends a file, again where the server is busy. */
async function sendFile(u: Upload, to: string, method: string, body: Blob | FormData, params: Record<string, string>): Promise<Response> {
	for (let turn = 0; ; turn++) {
		try {
			return await upload(method, to, body, params, (sent) => change(u.id, { sent }));
		} catch (why) {
			if (!(why instanceof Refusal) || (why.status !== 503 && why.status !== 429) || turn === RETRIES) throw why;
			await wait(backOff(turn));
		}
	}
}

async function sendTrace(u: Upload): Promise<void> {
	const d = details.value;
	const meta: Record<string, string> = { ...d, build_id: u.build || d.build_id };
	let body: Blob | FormData = u.file;
	if (u.side) {
		body = new FormData();
		body.append('trace', u.file);
		body.append('threads', u.side);
	}
	const answer = await sendFile(u, '/api/v1/traces', 'POST', body, meta);
	const { id } = (await answer.json()) as { id: string };
	change(u.id, { stage: 'decoding', trace: id, sent: 1 });
	landed.value++;
	pump();
	if (answer.status === 202) await api.mark(id, { title: u.file.name.slice(0, 200) }).catch(() => undefined); // a title is no reason to fail
	await decoded(u, id);
}

/** Until the server has decoded it. */
async function decoded(u: Upload, id: string): Promise<void> {
	for (let turn = 0; ; turn++) {
		const t = await api.trace(id);
		if (t.state === 'failed') throw new Refusal(0, t.error ? await heardInTime(t.error.message) : 'failed');
		if (t.state === 'ready' || t.state === 'archived') break;
		await wait(Math.min(backOff(turn) / 4, 2000));
	}
	change(u.id, { stage: 'ready' });
	if (opens?.id === u.id && path.value === opens.from && !path.value.startsWith('/traces/')) go(link(`/traces/${id}`));
	if (opens?.id === u.id) opens = null;
}

async function sendMapping(u: Upload): Promise<void> {
	const to = `/api/v1/builds/${encodeURIComponent(u.build)}/${u.kind}`;
	const answer = await sendFile(u, to, 'PUT', u.file, { wait: '0' });
	change(u.id, { stage: 'decoding', sent: 1 });
	if (answer.status === 202) await compiled(u);
	change(u.id, { stage: 'ready' });
}

async function compiled(u: Upload): Promise<void> {
	for (let turn = 0; ; turn++) {
		const b = await api.build(u.build);
		const m = u.kind === 'retrace' ? b.retrace : b;
		if (m.state === 'failed') throw new Refusal(0, m.error ? await heardInTime(m.error.message) : 'failed');
		if (m.state === 'ready') return;
		await wait(Math.min(backOff(turn) / 4, 2000));
	}
}
