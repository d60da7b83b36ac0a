/* What is said of a trace that is not decoded yet. */
import type { Trace } from './api';
import { sentence } from './format';
import { Busy } from './parts';

export function Waiting({ t }: { t: Trace }) {
	return <>
		<Busy what={t.state === 'queued' ? 'Waiting to be decoded' : 'Being decoded'} />
		{t.error && <div class="notice warn" role="status"><strong>The server could not decode it yet.</strong>
			<p>{sentence(t.error.message)}</p>
			<p class="quiet">It is tried again by itself, and nothing is lost meanwhile.</p></div>}
	</>;
}
