/* The message for a trace that is not decoded yet. */
import type { Trace } from '../api/api';
import { sentence } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { Busy } from '../ui/parts';
import { tr } from '../i18n/strings/list';

export function Waiting({ t }: { t: Trace }) {
	const again = t.ready_ms > 0; // its decoded file was archived, or damaged
	return <>
		{again && <div class="notice" role="status"><strong>{tr('The decoded file of this trace was deleted.')}</strong>
			<p>{tr('The raw upload is being decoded again. The trace appears here when it is ready.')}</p></div>}
		<Busy what={t.state !== 'decoding' ? tr('Waiting to be decoded') : tr('Decoding')} />
		{t.error && <div class="notice warn" role="status"><strong>{tr('The server could not decode it yet.')}</strong>
			<p>{sentence(serverText(t.error.message))}</p>
			<p class="quiet">{tr('The server retries automatically. The upload is kept.')}</p></div>}
	</>;
}
