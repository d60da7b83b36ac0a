/* What is said of a trace that is not decoded yet. */
import type { Trace } from './api';
import { sentence } from './format';
import { Busy } from './parts';

export function Waiting({ t }: { t: Trace }) {
	const again = t.ready_ms > 0; // its decoded file was archived, or damaged
	return <>
		{again && <div class="notice" role="status"><strong>What was decoded of this trace is not kept any more.</strong>
			<p>It is decoded again from its raw upload, now that it was opened, and shown here as soon as that is done.</p></div>}
		<Busy what={t.state !== 'decoding' ? 'Waiting to be decoded' : 'Being decoded'} />
		{t.error && <div class="notice warn" role="status"><strong>The server could not decode it yet.</strong>
			<p>{sentence(t.error.message)}</p>
			<p class="quiet">It is tried again by itself, and nothing is lost meanwhile.</p></div>}
	</>;
}
