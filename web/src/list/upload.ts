// Files that people drop or choose: what each is, and how it is sent.
import { api, currentProject, Refusal, type Params } from '../api/api';
import { upload } from '../api/manage';
import { backOff } from '../api/traces';
import { translateInTime } from '../i18n/servertext';
import { firstProject } from '../ui/makekey';
import { incomplete } from '../ui/later';
import { go, link, path } from '../ui/route';
import { tr } from '../i18n/strings/frame';
import { details, traceChanges, uploads, type Upload } from './uploadstate';
import { planOf } from './uploadplan';

const HEAD_BYTES = 64 * 1024;
const AT_ONCE = 2;
const RETRIES = 5;
const ALONE = 400; // refused here, as by the server
const UNREADABLE = 422;
const BUSY = [0, 429]; // no response, too many requests

let next = 1;

function change(id: number, to: Partial<Upload>): void {
	uploads.value = uploads.value.map((u) => (u.id === id ? { ...u, ...to } : u));
}

export function dismiss(id: number): void {
	uploads.value = uploads.value.filter((u) => u.id !== id);
}

export function dismissEnded(): void {
	uploads.value = uploads.value.filter((u) => u.stage !== 'ready' && u.stage !== 'failed');
}

/** A file that was refused or could not be read is the same the next time. */
export const mayRetry = (why: Error): boolean => !(why instanceof Refusal) || why.status >= 500 || BUSY.includes(why.status);

export const isBusy = (u: Upload): boolean => u.stage === 'waiting' || u.stage === 'sending' || u.stage === 'decoding';

const isLibrary = (head: string): boolean => head.startsWith('\x7fELF');

/** Takes files; each with the folder that it was dropped in, if it was in one. */
export async function take(files: { file: File; folder: string }[]): Promise<void> {
	const here = path.value;
	const heads = await Promise.all(files.map(({ file }) => file.slice(0, HEAD_BYTES).text().catch(() => '')));
	const elf = heads.some(isLibrary) ? await import('./elf').catch(incomplete) : undefined;
	const buildIdOf = (file: File) => (!elf || elf instanceof Error ? '' : elf.buildIdOf(file).catch(() => ''));
	const libraries = await Promise.all(files.map(({ file }, i) => (isLibrary(heads[i]) ? buildIdOf(file) : undefined)));
	const withoutBuildId = elf instanceof Error ? elf.message : tr('This library has no build id. Link it with -Wl,--build-id.');
	const made = planOf(files.map((f, i) => ({ ...f, head: heads[i], elfBuild: libraries[i] })), details.value.build_id).map(({ alone, ...p }): Upload => ({
		id: next++, ...p, project: currentProject(), sent: 0, stage: alone ? 'failed' : p.kind !== 'trace' && !p.build ? 'unnamed' : 'waiting',
		error: !alone ? undefined : new Refusal(ALONE, p.kind === 'symbols' ? withoutBuildId : tr('This file names parts of a recording. Drop it with that recording only.')),
	}));
	const traces = made.filter((u) => u.kind === 'trace' && !u.error);
	uploads.value = [...uploads.value, ...made];
	if (traces.length === 1) opens = { id: traces[0].id, from: here };
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

let opens: { id: number; from: string } | null = null; // a single trace is opened once it is ready, unless the user has left the page

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
		traceChanges.value++;
	} catch (why) {
		change(u.id, { stage: 'failed', error: why as Error });
	}
	pump();
}

/** Its project, which the user may have left since. */
const inProject = (u: Upload): Params => ({ project: u.project });

const isHere = (u: Upload): boolean => !u.project || u.project === currentProject();

/** The address of its trace. */
export const addressOf = (u: Upload): string => (isHere(u) ? link(`/traces/${u.trace}`) : `/traces/${u.trace}?project=${u.project}`);

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** Sends a file, again where the server is busy. */
async function sendFile(u: Upload, to: string, method: string, body: Blob | FormData, params: Record<string, string>): Promise<Response> {
	for (let turn = 0; ; turn++) {
		try {
			return await upload(method, to, body, { ...params, ...inProject(u) }, (sent) => change(u.id, { sent }));
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
	if (u.sides.length > 0) {
		body = new FormData();
		body.append('trace', u.file);
		for (const [part, file] of u.sides) body.append(part, file);
	}
	const answer = await sendFile(u, '/api/v1/traces', 'POST', body, meta);
	const { id } = (await answer.json()) as { id: string };
	change(u.id, { stage: 'decoding', trace: id, sent: 1 });
	traceChanges.value++;
	pump();
	if (answer.status === 202) await api.mark(id, { title: u.file.name.slice(0, 200) }, inProject(u)).catch(() => undefined); // a failed title does not fail the upload
	await decoded(u, id);
}

/** Until the server has decoded it. */
async function decoded(u: Upload, id: string): Promise<void> {
	for (let turn = 0; ; turn++) {
		const t = await api.trace(id, undefined, inProject(u));
		if (t.state === 'failed') throw new Refusal(UNREADABLE, t.error ? await translateInTime(t.error.message) : 'failed');
		if (t.state === 'ready' || t.state === 'archived') break;
		await wait(Math.min(backOff(turn) / 4, 2000));
	}
	change(u.id, { stage: 'ready' });
	if (opens?.id === u.id && isHere(u) && path.value === opens.from && !path.value.startsWith('/traces/')) go(link(`/traces/${id}`));
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
		const b = await api.build(u.build, inProject(u));
		const m = u.kind === 'retrace' ? b.retrace : b;
		if (m.state === 'failed') throw new Refusal(UNREADABLE, m.error ? await translateInTime(m.error.message) : 'failed');
		if (m.state === 'ready') return;
		await wait(Math.min(backOff(turn) / 4, 2000));
	}
}
