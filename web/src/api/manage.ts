// Requests that the page of a trace does not need: keys, projects, builds, tables of comparisons, uploads.
import { tr } from '../i18n/strings/frame';
import { answer, get, Refusal, send, url, type Build, type ComparedMethods, type Key, type Params, type Project, type Stage } from './api';
import { lost } from './health';
import { withOverloads } from './overloads';

export const manage = {
	stages: (s?: AbortSignal) => get<{ stages: Stage[] }>('/api/v1/fleet/stages', {}, s),
	facets: (column: string) => get<{ values: { value: string; count: number }[] }>('/api/v1/facets', { column }),
	keys: (p: Params) => get<{ keys: Key[]; next_cursor: string | null }>('/api/v1/keys', p),
	makeKey: async (name: string, scope: string, expires_ms = 0) => (await send('POST', '/api/v1/keys', { name, scope, expires_ms })).json() as Promise<{ id: string; key: string }>,
	makeProject: async (name: string) => (await send('POST', '/api/v1/projects', { name })).json() as Promise<{ id: string; name: string }>,
	projects: (cursor = '') => get<{ projects: Project[]; next_cursor: string | null }>('/api/v1/projects', { cursor }),
	mergeUrl: (ids: string[]) => url('/api/v1/merge', { ids: ids.join(',') }),
	compareMethods: (p: Params, s?: AbortSignal) => get<ComparedMethods>('/api/v1/compare/methods', p, s).then((v) => ({ ...v, methods: withOverloads(v.methods) })),
	builds: (cursor: string) => get<{ builds: Build[]; next_cursor: string | null }>('/api/v1/builds', { cursor }),
};

/** Uploads a file with progress, which fetch does not support. */
export function upload(method: string, path: string, body: Blob | FormData, params: Params, progress: (sent: number) => void): Promise<Response> {
	return new Promise((done, fail) => {
		const x = new XMLHttpRequest();
		x.open(method, url(path, params));
		x.setRequestHeader('X-Tracewell', '1');
		if (body instanceof Blob) x.setRequestHeader('Content-Type', 'application/octet-stream');
		x.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total);
		x.onerror = () => {
			lost();
			fail(new Refusal(0, tr('The server is not responding. Is it still running?')));
		};
		x.onload = () => answer(path, new Response(x.responseText || null, { status: x.status })).then(done, fail);
		x.send(body);
	});
}
