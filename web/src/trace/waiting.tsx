/* What is said of a trace that is not decoded yet. */
import type { Trace } from '../api/api';
import { sentence } from '../i18n/format';
import { heard } from '../i18n/heard';
import { Busy } from '../ui/parts';
import { tr } from '../i18n/strings/list';

export function Waiting({ t }: { t: Trace }) {
	const again = t.ready_ms > 0; // its decoded file was archived, or damaged
	return <>
		{again && <div class="notice" role="status"><strong>{tr('What was decoded of this trace is not kept any more.')}</strong>
			<p>{tr('It is decoded again from its raw upload, now that it was opened, and shown here as soon as that is done.')}</p></div>}
		<Busy what={t.state !== 'decoding' ? tr('Waiting to be decoded') : tr('Being decoded')} />
		{t.error && <div class="notice warn" role="status"><strong>{tr('The server could not decode it yet.')}</strong>
			<p>{sentence(heard(t.error.message))}</p>
			<p class="quiet">{tr('It is tried again by itself, and nothing is lost meanwhile.')}</p></div>}
	</>;
}
