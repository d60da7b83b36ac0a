// The server's API, as types and calls.

export interface Summary {
	slices: number; threads: number; methods: number; max_depth: number; duration_ns: number;
	input_bytes: number; decoded_bytes: number; file_bytes: number; format: string;
	decoder_version: number; losses: number; repairs: number;
}
export interface Meta {
	app: string; version_name: string; version_code: string; build_id: string; mapping_id: string;
	device: string; os: string; abi: string; process: string; pid: number; scenario: string;
	started_ms: number; session_id: string; uuid: string; labels: Record<string, unknown>;
}
export interface Repair { name: string; kind: 'note' | 'repair' | 'loss'; count: number; first_offset: number | null; meaning: string }
export interface Names {
	mapping: boolean; build_id: string; ids: number; resolved: number; slices: number;
	resolved_slices: number; warning: string | null;
}
export interface System {
	joined: boolean; why_not: string | null; clock?: 'monotonic' | 'boottime' | 'start'; offset_ns?: number;
	residual_ns?: number; steps?: number; packets: number; damages: number; cut: boolean;
}
export interface ApiError { status: string; message: string; offset: number | null }
export interface Trace {
	id: string; state: 'queued' | 'decoding' | 'ready' | 'failed'; error: ApiError | null;
	created_ms: number; ready_ms: number; tries: number; upload_bytes: number; meta: Meta;
	summary: Summary | null; report: { repairs: Repair[]; names: Names; system?: System | null } | null;
	start_ns?: number; end_ns?: number; mono_base_ns?: number; boot_base_ns?: number; has_cpu?: boolean;
}
export interface Thread {
	thread_id: number; tid: number; pid: number; name: string; is_main: boolean; slices: number;
	roots: number; max_depth: number; start_ns: number; end_ns: number; busy_ns: number; activity: number[];
	source: 'calls' | 'samples' | 'counts'; interval_ns: number;
}
export interface Method {
	method: number; id: number | null; name: string; count: number; total_ns: number; sum_ns: number;
	self_ns: number; max_ns: number; cpu_ns: number | null; waiting_ns: number | null; resolved: boolean;
}
export interface Flame {
	names: string[]; name: number[]; parent: number[]; value: number[]; self: number[];
	count: number[]; method: number[]; other: number[]; total_nodes: number; shown_nodes: number; partial: boolean;
}
export interface Build {
	build_id: string; mapping: boolean; entries: number; malformed: number; duplicates: number;
	map_version: string; updated_ms: number; traces: number; app: string; version_name: string;
	retrace: { mapping: boolean; id: string; classes: number; methods: number; malformed: number; updated_ms: number };
	names: { traces: number; lacking: number; ids: number; resolved: number; slices: number; resolved_slices: number }; // of its ready traces
}
export interface Note {
	id: number; kind: string; tid: number | null; ts_ns: number; dur_ns: number | null; value: number; text: string;
	detail: Record<string, unknown> | null;
}
export interface Frames {
	presets: { id: string; title: string; prefixes: string[]; on: boolean }[]; framework: string[]; app: string[];
}
/** Notes of one kind of one thread, by time; short ones drawn together. */
export interface LaneColumns {
	kind: string; tid: number | null; name: string; step_ns: number[]; dur_ns: number[]; text: number[]; value: number[];
	notes: number[]; low?: number[]; high?: number[];
}
export interface Lanes { texts: string[]; from_ns: number; to_ns: number; lanes: LaneColumns[]; partial: boolean }
export interface NoteSum { kind: string; tid: number | null; text: string; notes: number; dur_ns: number }
export interface Activity { from_ns: number; to_ns: number; cells: number; threads: { tid: number; activity: number[] }[]; partial: boolean }
export interface Session {
	signed_in: boolean; scope: string; project: { id: string; name: string } | null;
	projects: { id: string; name: string }[]; version: string; perfetto_ui: string; speedscope_ui: string; firefox_ui: string;
}

/** An answer that is not a 2xx, or none at all (status 0). */
export class Refusal extends Error {
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

type Params = Record<string, string | number | boolean | null | undefined>;

export function url(path: string, params: Params = {}): string {
	const q = new URLSearchParams();
	for (const [k, v] of Object.entries(params)) if (v !== null && v !== undefined && v !== '') q.set(k, String(v));
	if (project) q.set('project', project);
	const s = q.toString();
	return s ? `${path}?${s}` : path;
}

export async function call(path: string, init: RequestInit = {}): Promise<Response> {
	const headers = new Headers(init.headers);
	if (init.method && init.method !== 'GET') headers.set('X-Tracewell', '1');
	let r: Response;
	try {
		r = await fetch(path, { ...init, headers });
	} catch (why) {
		if ((why as Error).name === 'AbortError') throw why;
		throw new Refusal(0, 'The server does not answer. Is it still running?');
	}
	if (r.ok) return r;
	const body = await r.json().catch(() => null);
	throw new Refusal(r.status, body?.error?.message ?? `The server answered ${r.status}.`, body?.error?.offset ?? null);
}

export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
	return (await call(url(path, params), { signal })).json() as Promise<T>;
}

const trace = (id: string) => `/api/v1/traces/${encodeURIComponent(id)}`;

export const api = {
	session: () => get<Session>('/api/v1/session'),
	signIn: (token: string) => call('/api/v1/session', {
		method: 'POST', body: JSON.stringify({ token }), headers: { 'Content-Type': 'application/json' } }),
	signOut: () => call('/api/v1/session', { method: 'DELETE' }),
	traces: (p: Params, s?: AbortSignal) =>
		get<{ traces: Trace[]; total: number; cursor: string | null }>('/api/v1/traces', p, s),
	facets: (column: string) => get<{ values: { value: string; count: number }[] }>('/api/v1/facets', { column }),
	trace: (id: string, s?: AbortSignal) => get<Trace>(trace(id), {}, s),
	remove: (id: string) => call(url(trace(id)), { method: 'DELETE' }),
	threads: (id: string) => get<{ threads: Thread[] }>(`${trace(id)}/threads`),
	names: (id: string) => get<{ names: string[]; resolved: string }>(`${trace(id)}/names`),
	methods: (id: string, p: Params, s?: AbortSignal) =>
		get<{ methods: Method[]; total: number; busy_ns: number; partial: boolean }>(`${trace(id)}/methods`, p, s),
	flame: (id: string, p: Params, s?: AbortSignal) => get<Flame>(`${trace(id)}/flame`, { ...p, format: 'columns' }, s),
	documents: <T>(id: string, kind: string, s?: AbortSignal) =>
		get<{ documents: { kind: string; content: T }[] }>(`${trace(id)}/documents`, { kind }, s),
	notes: (id: string, p: Params, s?: AbortSignal) =>
		get<{ notes: Note[]; kinds: Record<string, number>; next: number | null }>(`${trace(id)}/notes`, p, s),
	lanes: (id: string, p: Params, s?: AbortSignal) => get<Lanes>(`${trace(id)}/notes/lanes`, p, s),
	noteSums: (id: string, p: Params, s?: AbortSignal) =>
		get<{ sums: NoteSum[]; partial: boolean }>(`${trace(id)}/notes/sums`, p, s),
	activity: (id: string, p: Params, s?: AbortSignal) => get<Activity>(`${trace(id)}/activity`, p, s),
	perfettoUrl: (id: string, p: Params = {}) => url(`${trace(id)}/perfetto`, p),
	exportUrl: (id: string, kind: string, p: Params) => url(`${trace(id)}/export/${kind}`, p),
	ticket: async (id: string, kind: string, query: string) =>
		(await call(url(`${trace(id)}/tickets`), { method: 'POST', body: JSON.stringify({ kind, query }), headers: { 'Content-Type': 'application/json' } }))
			.json() as Promise<{ path: string; expires_ms: number }>,
	rawUrl: (id: string) => url(`${trace(id)}/raw/trace`),
	frames: () => get<Frames>('/api/v1/frames'),
	setFrames: async (f: { off: string[]; framework: string[]; app: string[] }) =>
		(await call(url('/api/v1/frames'), { method: 'PUT', body: JSON.stringify(f) })).json() as Promise<Frames>,
	builds: (cursor: string) => get<{ builds: Build[]; cursor: string | null }>('/api/v1/builds', { cursor }),
};
