// Runs before the page's modules are loaded: requests the data that a trace needs. The first module that needs a response takes it.
import type { Thread } from '../api/api';
import type { ToWorker } from '../trace/worker/messages';

declare const WORKER_URL: string;

const id = /^\/traces\/([0-9A-Z]{26})$/.exec(location.pathname)?.[1];
if (id) {
	const project = new URLSearchParams(location.search).get('project') ?? '';
	const responses = new Map<string, Promise<Response>>();
	const ask = (path: string, query = '') => {
		const q = new URLSearchParams(query);
		if (project) q.set('project', project);
		const href = q.size ? `${path}?${q}` : path;
		const response = fetch(href);
		response.catch(() => undefined); // the module that takes the response reports the error
		responses.set(href, response);
		return response;
	};
	const trace = `/api/v1/traces/${id}`;
	const worker = new Worker(WORKER_URL, { type: 'module' });
	ask('/api/v1/session', `trace=${id}`);
	const threads = ask(`${trace}/threads`);
	ask(trace);
	ask(`${trace}/names`);
	ask(`${trace}/notes/sums`);
	ask(`${trace}/documents`, 'kind=anr');
	Object.assign(globalThis, { early: { worker, responses } });

	/* The page shows the main thread's calls unless the address selects others. They load while the modules do. */
	const openMain = async () => {
		const list = (await (await threads).clone().json()) as { threads: Thread[] };
		const mains = list.threads.filter((t) => t.is_main && t.slices > 0);
		const open: ToWorker = { kind: 'open', trace: id, project, tids: mains.map((t) => t.tid), early: true };
		if (mains.length === 1) worker.postMessage(open);
	};
	if (!/[?&](open|thread|row|call)=/.test(location.search)) openMain().catch(() => undefined); // the page repeats failed requests and reports their errors
	for (const href of document.querySelector<HTMLMetaElement>('meta[name=trace-modules]')!.content.split(' '))
		document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href }));
}
