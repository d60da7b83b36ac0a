// Takes over what app/early.ts requested before the page's modules were loaded.
interface Early {
	worker?: Worker;
	responses: Map<string, Promise<Response>>;
}

const early = (globalThis as { early?: Early }).early;

/** The response to the same request. Only the first caller receives it. */
export function earlyResponse(href: string): Promise<Response> | undefined {
	const response = early?.responses.get(href);
	early?.responses.delete(href);
	return response;
}

/** The worker that app/early.ts started. Only the first caller receives it. */
export function earlyWorker(): Worker | undefined {
	const worker = early?.worker;
	if (early) early.worker = undefined;
	return worker;
}
