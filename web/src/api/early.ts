// What app/early.ts began before the modules of the page were there.
interface Early {
	worker?: Worker;
	responses: Map<string, Promise<Response>>;
}

const early = (globalThis as { early?: Early }).early;

/** The response to an equal request, for its first taker. */
export function earlyResponse(href: string): Promise<Response> | undefined {
	const response = early?.responses.get(href);
	early?.responses.delete(href);
	return response;
}

/** The worker that is there, for its first taker. */
export function earlyWorker(): Worker | undefined {
	const worker = early?.worker;
	if (early) early.worker = undefined;
	return worker;
}
