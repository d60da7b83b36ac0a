// Runs before the modules of the page are there: has what a trace needs come meanwhile. Who needs it first takes it.
declare const WORKER_URL: string;

const id = /^\/traces\/([0-9A-Z]{26})$/.exec(location.pathname)?.[1];
if (id) {
	const project = new URLSearchParams(location.search).get('project');
	const ask = (path: string, query = '') => {
		const q = new URLSearchParams(query);
		if (project) q.set('project', project);
		const href = q.size ? `${path}?${q}` : path;
		const response = fetch(href);
		response.catch(() => undefined); // reported by who takes it
		return [href, response] as const;
	};
	const trace = `/api/v1/traces/${id}`;
	Object.assign(globalThis, { early: {
		worker: new Worker(WORKER_URL, { type: 'module' }),
		responses: new Map([ask('/api/v1/session', `trace=${id}`), ask(`${trace}/threads`), ask(trace), ask(`${trace}/names`), ask(`${trace}/notes/sums`), ask(`${trace}/documents`, 'kind=anr')]),
	} });
	for (const href of document.querySelector<HTMLMetaElement>('meta[name=trace-modules]')!.content.split(' '))
		document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href }));
}
