// Runs before the page's modules are loaded: requests the data that a trace needs. The first module that needs a response takes it.
import type { WorkerStart } from '../trace/worker/messages';

declare const WORKER_URL: string;

const id = /^\/traces\/([0-9A-Z]{26})$/.exec(location.pathname)?.[1];
if (id) {
	const params = new URLSearchParams(location.search);
	const project = params.get('project') ?? '';
	const responses = new Map<string, Promise<Response>>();
	const request = (path: string, query = '') => {
		const q = new URLSearchParams(query);
		if (project) q.set('project', project);
		const href = q.size ? `${path}?${q}` : path;
		const response = fetch(href);
		response.catch(() => undefined); // the module that takes the response reports the error
		responses.set(href, response);
		return response;
	};
	const trace = `/api/v1/traces/${id}`;
	/* The calls of the threads that the address opens, otherwise of the main thread, load while the modules do. */
	const opened = [params.get('open') || params.get('thread') || 'main', params.get('call')].flatMap((list) => list?.split(',') ?? []);
	const first: WorkerStart = { trace: id, project, threads: [...new Set(opened.map((one) => one.split('.')[0]).filter((one) => /^(main|\d+)$/.test(one)))] };
	const worker = new Worker(WORKER_URL, { name: JSON.stringify(first) });
	request('/api/v1/session', `trace=${id}`);
	request(`${trace}/threads`);
	request(trace);
	request(`${trace}/names`);
	request(`${trace}/notes/sums`);
	request(`${trace}/documents`, 'kind=anr');
	Object.assign(globalThis, { early: { worker, responses } });

	for (const href of document.querySelector<HTMLMetaElement>('meta[name=trace-modules]')!.content.split(' '))
		document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href }));
}
