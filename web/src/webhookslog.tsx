// What was told to one webhook, try by try.
import { useEffect, useState } from 'preact/hooks';
import { get, send } from './api';
import { useChange } from './change';
import { when } from './format';
import { Failure, Pending, useLoad } from './parts';

interface Try { n: number; at_ms: number; took_ms: number; http: number; error: string }
interface Delivery { id: number; event_id: string; event: string; state: string; created_ms: number; next_ms: number; tries: number; body: string; log: Try[] }

const SOON_MS = 2000; // while something is on its way
const STATES: Record<string, string> = { waiting: 'queued', delivered: 'ready', 'given up': 'failed' };

/** As people read it; what is no JSON as it is. */
function pretty(body: string): string {
	try {
		return JSON.stringify(JSON.parse(body), null, 2);
	} catch {
		return body;
	}
}

function Row({ d, again }: { d: Delivery; again: () => void }) {
	const [open, show] = useState(false);
	const last = d.log[d.log.length - 1];
	return <>
		<tr data-delivery={d.id}>
			<td class="nowrap">{when(d.created_ms)}</td>
			<td class="nowrap"><button class="plain" aria-expanded={open} onClick={() => show(!open)}>{d.event}</button></td>
			<td class="nowrap"><span class={`state ${STATES[d.state] ?? ''}`}>{d.state}</span></td>
			<td class="num">{d.tries}</td>
			<td class="anywhere">{last ? last.error || `it answered ${last.http || 'yes'} in ${last.took_ms} ms` : 'on its way'}{d.next_ms > 0 && last && <span class="quiet"> next try {new Date(d.next_ms).toISOString().slice(11, 16)} UTC</span>}</td>
			<td class="actions"><button class="small" onClick={again} aria-label={`Tell ${d.event} of ${d.event_id} once more`}>Redeliver</button></td>
		</tr>
		{open && <tr class="more"><td colSpan={6}>
			<ol class="tries">{d.log.map((l) => <li key={l.n} value={l.n}>{when(l.at_ms)}: {l.error || `it answered ${l.http || 'yes'}`}, {l.took_ms} ms</li>)}</ol>
			<p class="quiet">Event id <code>{d.event_id}</code></p>
			{d.body && <pre class="body" tabIndex={0}>{pretty(d.body)}</pre>}
		</td></tr>}
	</>;
}

export function Deliveries({ hook }: { hook: string }) {
	const load = useLoad(`deliveries ${hook}`, () => get<{ deliveries: Delivery[] }>(`/api/v1/webhooks/${hook}/deliveries`));
	const [error, change] = useChange(load.again);
	const list = load.value?.deliveries;
	useEffect(() => { // by itself, as long as it is looked at
		const timer = setInterval(load.again, SOON_MS);
		return () => clearInterval(timer);
	}, []);
	return <>
		{!list && <Pending of={load} what="Loading deliveries" />}
		{list?.length === 0 && <p class="quiet">Nothing was told yet.</p>}
		{list && list.length > 0 && <div class="scroll"><table class="deliveries">
			<thead><tr><th scope="col">When</th><th scope="col">Event</th><th scope="col">State</th><th scope="col" class="num">Tries</th><th scope="col">What came of it</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
			<tbody>{list.map((d) => <Row key={d.id} d={d} again={() => void change(() => send('POST', `/api/v1/webhooks/${hook}/deliveries/${d.id}`))} />)}</tbody>
		</table></div>}
		{error && <Failure error={error} />}
	</>;
}
