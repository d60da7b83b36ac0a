// The server's API, as types and calls.
import { earlyResponse } from './early';
import { answered, lost } from './health';
import { harmless } from '../i18n/format';
import { translateInTime } from '../i18n/servertext';
import { tr } from '../i18n/strings/frame';
import { flameOf, type FlameColumns } from './flamecolumns';
import { distinct, distinctName, withOverloads } from './overloads';

interface Summary {
	slices: number; threads: number; methods: number; max_depth: number; duration_ns: number; timed: boolean;
	input_bytes: number; decoded_bytes: number; file_bytes: number; format: string;
	decoder_version: number; losses: number; repairs: number;
}
export interface Meta {
	app: string; version_name: string; version_code: string; build_id: string; mapping_id: string;
	device: string; os: string; abi: string; process: string; pid: number; scenario: string;
	started_ms: number; recorded_ms?: number; session_id: string; uuid: string; labels: Record<string, unknown>;
}
interface Repair { name: string; kind: 'note' | 'repair' | 'loss'; count: number; first_offset: number | null; meaning: string }
export interface Names {
	mapping: boolean; build_id: string; ids: number; resolved: number; slices: number;
	resolved_slices: number; warning: string | null;
}
export interface System {
	joined: boolean; reason: string | null; clock?: 'monotonic' | 'boottime' | 'start'; offset_ns?: number;
	residual_ns?: number; steps?: number; packets: number; damages: number; cut: boolean;
}
interface ApiError { status: string; message: string; offset: number | null }
export interface Trace {
	id: string; state: 'queued' | 'decoding' | 'ready' | 'failed' | 'archived'; error: ApiError | null;
	created_ms: number; ready_ms: number; attempts: number; upload_bytes: number; meta: Meta;
	summary: Summary | null; report: { repairs: Repair[]; names: Names; system?: System | null } | null;
	title: string; pinned: boolean; expires_ms: number | null; upload_expires_ms: number | null; decoded_expires_ms: number | null; has_upload: boolean; anr: string; anr_group: string; anr_title: string; first_anr: boolean; rollup_state: 'waiting' | 'counted' | 'unreadable' | 'postponed'; tags: string[]; annotations: number;
	start_ns?: number; end_ns?: number; mono_base_ns?: number; boot_base_ns?: number; has_cpu?: boolean;
}
export interface Thread {
	thread_id: number; tid: number; pid: number; name: string; is_main: boolean; slices: number;
	roots: number; max_depth: number; start_ns: number; end_ns: number; busy_ns: number; running_ns: number; activity: number[];
	source: 'calls' | 'samples' | 'counts'; interval_ns: number;
	process?: string; // of a trace with several: its name or number
	family?: string; // common part of the names of threads that are listed together; '': listed alone
	pinned?: boolean;
}
interface Threads { threads: Thread[]; processes?: { pid: number; name: string }[] }
export interface Method {
	method: number; id: number | null; name: string; count: number; total_ns: number; sum_ns: number;
	self_ns: number; running_ns: number; max_ns: number; p95_ns: number | null; cpu_ns: number | null; waiting_ns: number | null; resolved: boolean;
}
export interface Call { tid: number; start_ns: number; dur_ns: number; cpu_ns: number | null; depth: number; method: number; name: string }
export interface Calls {
	count: number; sum_ns: number; max_ns: number; p50_ns: number; p95_ns: number; total: number; calls: Call[]; partial: boolean;
	histogram: { from_ns: number; to_ns: number; calls: number }[];
	around: Call | null; previous: Call | null; next: Call | null; previous_here: Call | null; next_here: Call | null;
}
export interface Flame {
	names: string[]; name: number[]; parent: number[]; value: number[]; self: number[];
	count: number[]; method: number[]; other: number[]; total_nodes: number; shown_nodes: number; partial: boolean;
	unit?: number; // times are rounded to it
}
/** State of the last uploaded mapping of a kind; an earlier one remains in use until it is ready. */
export type MappingState = 'none' | 'queued' | 'compiling' | 'ready' | 'failed';
export interface MappingError { status: string; message: string; offset: number | null }
export interface Build {
	build_id: string; mapping: boolean; state: MappingState; error: MappingError | null; entries: number; malformed: number; duplicates: number;
	map_version: string; updated_ms: number; traces: number; app: string; version_name: string; commit: string;
	retrace: { mapping: boolean; state: MappingState; error: MappingError | null; id: string; classes: number; methods: number; malformed: number; updated_ms: number };
	names: { traces: number; unresolved_traces: number; ids: number; resolved: number; slices: number; resolved_slices: number }; // of its ready traces
}
export interface Note {
	id: number; kind: string; tid: number | null; ts_ns: number; dur_ns: number | null; value: number; text: string; outcome?: string;
	detail: Record<string, unknown> | null;
}
export interface Frames {
	presets: { id: string; title: string; prefixes: string[]; enabled: boolean }[]; framework: string[]; app: string[];
}
/** Notes of one row and outcome of a track, by time; short ones drawn together. */
interface LaneColumns {
	kind: string; tid: number | null; name: string; row: number; outcome: string; step_ns: number[]; dur_ns: number[]; text: number[]; value: number[];
	notes: number[]; low?: number[]; high?: number[];
}
export interface Lanes { texts: string[]; from_ns: number; to_ns: number; lanes: LaneColumns[]; partial: boolean }
export interface NoteSum { kind: string; tid: number | null; text: string; notes: number; dur_ns: number }
export interface Activity { from_ns: number; to_ns: number; cells: number; threads: { tid: number; activity: number[] }[]; partial: boolean }
export interface Session {
	signed_in: boolean; scope: string; user: string | null; project: { id: string; name: string } | null;
	trace_project: { id: string; name: string } | null; // of the requested trace
	projects: { id: string; name: string }[]; projects_are_capped: boolean; version: string; perfetto_ui: string; speedscope_ui: string; firefox_ui: string;
	oidc: { name: string; linked: boolean } | null; // a provider that signs people in
}

export interface Annotation {
	id: string; author: string; text: string; created_ms: number; updated_ms: number;
	ts_ns: number | null; dur_ns: number; tid: number | null; method: number | null; method_name: string | null;
}
/** Where one belongs: a time (of a thread, if wanted), a method, or both. */
export interface AnnotationPlace { ts_ns?: number; dur_ns?: number; tid?: number; method?: number }
interface SavedFilter { name: string; query: string; author: string; updated_ms: number }
export interface Key {
	id: string; name: string; scope: string; created_ms: number; last_used_ms: number; last_used_address: string; revoked_ms: number; expires_ms: number;
	rotated_ms: number; old_expires_ms: number; old_last_used_ms: number;
}
/** Derived data: traces of the project that wait for it, and those that were postponed. */
export interface Stage { stage: string; waiting: number; oldest_ms: number; postponed: { message: string; traces: number }[] }
export interface Project { id: string; name: string; created_ms: number }

const PASSING = [429, 502, 503, 504]; // the same request may succeed later, unless it took too long itself
const RETRY_S = 5; // without Retry-After, as from a proxy

/** A response that is not 2xx, or none (status 0). */
export class Refusal extends Error {
	afterMs = 0; // after so long the same request may succeed; 0: it will not
	retryMs = 0; // after so long the request is repeated (useLoad); 0: it is not

	constructor(public status: number, message: string, public offset: number | null = null) {
		super(message);
	}
}

let project = '';
export function useProject(id: string): void {
	project = id;
}
export function currentProject(): string {
	return project;
}

/** Other tools' pages, by the server's settings. */
export const tools = { perfetto: '', speedscope: '', firefox: '' };
export function useTools(s: Session): void {
	Object.assign(tools, { perfetto: s.perfetto_ui, speedscope: s.speedscope_ui, firefox: s.firefox_ui });
}

/** Permissions of the session beyond reading. */
export const may = { write: false, admin: false, server: false };
export function useScope(s: Session): void {
	may.server = s.scope === 'server';
	may.admin = may.server || s.scope === 'admin';
	may.write = may.admin || s.scope === 'write';
}

export type Params = Record<string, string | number | boolean | string[] | null | undefined>;

export function url(path: string, params: Params = {}): string {
	const q = new URLSearchParams();
	for (const [k, v] of Object.entries(params))
		for (const one of Array.isArray(v) ? v : [v]) if (one !== null && one !== undefined && one !== '') q.append(k, String(one));
	if (project && !q.has('project')) q.set('project', project);
	const s = q.toString();
	return s ? `${path}?${s}` : path;
}

export async function call(path: string, init: RequestInit = {}): Promise<Response> {
	const headers = new Headers(init.headers);
	if (init.method && init.method !== 'GET') headers.set('X-Tracewell', '1');
	let r: Response;
	try {
		r = await ((!init.method && earlyResponse(path)) || fetch(path, { ...init, headers }));
	} catch (why) {
		if ((why as Error).name === 'AbortError') throw why;
		lost();
		throw new Refusal(0, tr('The server is not responding. Is it still running?'));
	}
	return answer(path, r);
}

/** The response's JSON if it is 2xx; otherwise throws its error. */
export async function answer(path: string, r: Response): Promise<Response> {
	answered(path, r.status);
	if (r.ok) return r;
	const body = await r.json().catch(() => null);
	const message = body?.error?.message;
	const refusal = new Refusal(r.status, message ? await translateInTime(message) : tr('The server returned {status}.', { status: r.status }), body?.error?.offset ?? null);
	if (PASSING.includes(r.status) && body?.error?.status !== 'deadline') refusal.afterMs = 1000 * Math.min(60, Number(r.headers.get('Retry-After')) || RETRY_S);
	throw refusal;
}

const ahead = new Map<string, Promise<unknown>>(); // requested ahead
const aheadKey = (path: string, params: Params) => path + JSON.stringify(params);

/** Requests data while the page's code is still loading; the first equal request later uses that response. */
function askAhead(path: string, params: Params = {}): void {
	const key = aheadKey(path, params);
	const answer = get(path, params);
	ahead.set(key, answer);
	answer.catch(() => ahead.delete(key)); // the real request runs later and reports the error
}

/** Resolves when all requests made ahead have settled. */
export const aheadSettled = (): Promise<unknown> => Promise.allSettled(ahead.values());

/** The requested item belongs to another project. */
export function dropAhead(): void {
	ahead.clear();
}

export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
	const key = aheadKey(path, params);
	const early = ahead.get(key);
	if (early) {
		ahead.delete(key);
		return early as Promise<T>;
	}
	return (await call(url(path, params), { signal })).json() as Promise<T>;
}

/** A change; its body is sent as JSON. */
export const send = (method: string, path: string, body?: object, params: Params = {}, signal?: AbortSignal) =>
	call(url(path, params), body ? { method, signal, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } } : { method, signal });

const ROOTS: Record<string, string> = { 'all threads': tr('all threads'), 'selected threads': tr('selected threads') };

/** Names that are not methods are texts of the server, or names of threads. */
function withRoot(f: Flame): Flame {
	const root = f.names[f.name[0]] ?? '';
	const name = f.method[0] < 0 && (Object.hasOwn(ROOTS, root) ? ROOTS[root] : harmless(root.replace(/^thread(?= \d+$)/, tr('thread'))));
	return name ? { ...f, names: f.names.map((n, i) => (i === f.name[0] ? name : n)) } : f;
}

/** A row that names a method of the trace. */
export const named = <T extends { method: number; name: string }>(id: string, m: T): T => ({ ...m, name: distinctName(id, m.method, m.name) });

const trace = (id: string) => `/api/v1/traces/${encodeURIComponent(id)}`;

/** The first requests of a trace's page. */
export function aheadOfTrace(id: string): void {
	for (const what of ['', '/threads', '/names', '/notes/sums']) askAhead(trace(id) + what);
	askAhead(`${trace(id)}/documents`, { kind: 'anr' });
}

function withProcesses({ threads: all, processes = [] }: Threads) {
	const threads = all.map((t) => ({ ...t, name: harmless(t.name) }));
	if (processes.length < 2) return { threads };
	const names = new Map(processes.map((p) => [p.pid, harmless(p.name) || String(p.pid)]));
	return { threads: threads.map((t) => ({ ...t, process: names.get(t.pid) })) };
}

export const api = {
	session: (trace = '', s?: AbortSignal) => get<Session>('/api/v1/session', { trace }, s),
	signIn: (by: { token: string } | { name: string; password: string }) => send('POST', '/api/v1/session', by),
	signOut: () => send('DELETE', '/api/v1/session'),
	traces: (p: Params, s?: AbortSignal) =>
		get<{ traces: Trace[]; total: number; total_is_capped: boolean; next_cursor: string | null }>('/api/v1/traces', p, s),
	trace: (id: string, s?: AbortSignal, of: Params = {}) => get<Trace>(trace(id), of, s),
	remove: (id: string) => send('DELETE', trace(id)),
	mark: async (id: string, m: { title?: string; pinned?: boolean; add_tags?: string[]; remove_tags?: string[] }, of: Params = {}) => (await send('PATCH', trace(id), m, of)).json() as Promise<Trace>,
	annotations: (id: string, s?: AbortSignal) => get<{ annotations: Annotation[] }>(`${trace(id)}/annotations`, {}, s),
	annotate: async (id: string, at: AnnotationPlace, text: string) => (await send('POST', `${trace(id)}/annotations`, { ...at, text })).json() as Promise<{ id: string }>,
	editAnnotation: (id: string, one: string, text: string) => send('PATCH', `${trace(id)}/annotations/${one}`, { text }),
	removeAnnotation: (id: string, one: string) => send('DELETE', `${trace(id)}/annotations/${one}`),
	filters: () => get<{ filters: SavedFilter[] }>('/api/v1/filters'),
	keepFilter: (name: string, query: string) => send('PUT', `/api/v1/filters/${encodeURIComponent(name)}`, { query }),
	dropFilter: (name: string) => send('DELETE', `/api/v1/filters/${encodeURIComponent(name)}`),
	compare: (p: Params, s?: AbortSignal) => get<Comparison>('/api/v1/compare', p, s).then((c) => ({ ...c, names: withOverloads(c.names) })),
	threads: async (id: string) => withProcesses(await get<Threads>(`${trace(id)}/threads`)),
	names: async (id: string) => {
		const n = await get<{ names: string[]; descriptors: string[]; obfuscated: string[]; resolved: string }>(`${trace(id)}/names`);
		return { ...n, names: distinct(id, n.names, n.descriptors) };
	},
	methods: (id: string, p: Params, s?: AbortSignal) =>
		get<{ methods: Method[]; total: number; busy_ns: number; partial: boolean }>(`${trace(id)}/methods`, p, s).then((v) => ({ ...v, methods: v.methods.map((m) => named(id, m)) })),
	calls: (id: string, p: Params, s?: AbortSignal) => get<Calls>(`${trace(id)}/calls`, p, s).then((v) => ({ ...v, calls: v.calls.map((c) => named(id, c)) })),
	flame: (id: string, p: Params, s?: AbortSignal) => get<FlameColumns>(`${trace(id)}/flame`, { ...p, format: 'columns' }, s).then((c) => withRoot(flameOf({ ...c, names: c.names.map((n, i) => distinctName(id, c.methods[i], n)) }))),
	documents: <T>(id: string, kind: string, s?: AbortSignal) =>
		get<{ documents: { kind: string; content: T }[] }>(`${trace(id)}/documents`, { kind }, s),
	notes: (id: string, p: Params, s?: AbortSignal) =>
		get<{ notes: Note[]; kinds: Record<string, number>; matches?: Record<string, number>; next_cursor: number | null; partial: boolean }>(`${trace(id)}/notes`, p, s),
	lanes: (id: string, p: Params, s?: AbortSignal) => get<Lanes>(`${trace(id)}/notes/lanes`, p, s),
	noteSums: (id: string, p: Params, s?: AbortSignal) =>
		get<{ sums: NoteSum[]; partial: boolean }>(`${trace(id)}/notes/sums`, p, s),
	activity: (id: string, p: Params, s?: AbortSignal) => get<Activity>(`${trace(id)}/activity`, p, s),
	perfettoUrl: (id: string, p: Params = {}) => url(`${trace(id)}/perfetto`, p),
	exportUrl: (id: string, kind: string, p: Params) => url(`${trace(id)}/export/${kind}`, p),
	ticket: async (id: string, kind: string, query: string) => (await send('POST', `${trace(id)}/tickets`, { kind, query })).json() as Promise<{ path: string; expires_ms: number }>,
	raw: async (id: string, part: string, signal?: AbortSignal) => (await call(url(`${trace(id)}/raw/${part}`), { signal })).blob(),
	rawUrl: (id: string) => url(`${trace(id)}/raw/trace`),
	frames: () => get<Frames>('/api/v1/frames'),
	setFrames: async (f: { off: string[]; framework: string[]; app: string[] }) => (await send('PUT', '/api/v1/frames', f)).json() as Promise<Frames>,
	build: (id: string, of: Params = {}) => get<Build>(`/api/v1/builds/${encodeURIComponent(id)}`, of),
};

export interface ComparedTrace { trace: Trace; methods: number; named: number }
/** Calls of both sides as one tree, in pre-order; sums over each side's traces, whose numbers are a and b. */
export interface ComparedTree {
	a: { length: number }; b: { length: number }; names: { method: number; name: string; descriptor: string }[];
	parent: number[]; method: number[]; other: number[]; a_ns: number[]; b_ns: number[]; a_self_ns: number[]; b_self_ns: number[];
	a_count: number[]; b_count: number[]; total_nodes: number; shown_nodes: number;
	a_traces?: number[]; b_traces?: number[]; // in how many of the traces a node is, where that was counted
	significant?: number[]; // 0: the node's change may be chance; absent: not requested
}
export interface Comparison extends ComparedTree { a: ComparedTrace[]; b: ComparedTrace[]; thread: ComparedThreads }
type ComparedThreads = 'main' | 'all';
export interface Compared { self_ns: number; total_ns: number; count: number; traces: number }
export interface ComparedMethod { method: number; name: string; descriptor: string; a: Compared; b: Compared }
export interface ComparedMethods { methods: ComparedMethod[]; total: number; new: number; removed: number }
