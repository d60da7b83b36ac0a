// Deliveries of one webhook, attempt by attempt.
import { useState } from 'preact/hooks';
import { LATER_MS, SOON_MS, usePolling } from '../ui/polling';
import { get, send } from '../api/api';
import { Cards } from '../ui/cards';
import { useChange } from '../ui/change';
import { when } from '../i18n/format';
import { Failure, Pending, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/notifications';

interface Try { n: number; at_ms: number; took_ms: number; http: number; error: string }
interface Delivery { id: number; event_id: string; event: string; state: string; created_ms: number; next_ms: number; attempts: number; body: string; body_length: number; log: Try[] }

const SHOWN = 32_768; // characters of a body
const STATES: Record<string, string> = { waiting: 'queued', delivered: 'ready', given_up: 'failed' };
const STATE_NAMES: Record<string, string> = { waiting: tr('waiting'), delivered: tr('delivered'), given_up: tr('failed') };

/** Indented JSON; other text unchanged. */
function pretty(body: string): string {
	let text = body;
	try {
		text = JSON.stringify(JSON.parse(body), null, 2);
	} catch { /* not JSON */ }
	return text.length > SHOWN ? tr('{text}… ({shown} characters more)', { text: text.slice(0, SHOWN), shown: text.length - SHOWN }) : text;
}

/** When to look again: never when nothing waits. */
function nextPoll(list: Delivery[]): number | null {
	const next = list.filter((d) => d.state === 'waiting').map((d) => d.next_ms - Date.now());
	return next.length ? Math.min(LATER_MS, Math.max(SOON_MS, Math.min(...next))) : null;
}

/** The list has the first bytes; the rest is requested when it is opened. */
function Body({ hook, d }: { hook: string; d: Delivery }) {
	const cut = d.body.length < d.body_length;
	const load = useLoad(`body ${hook} ${d.id} ${d.attempts} ${cut}`, async (signal) => (cut ? (await get<Delivery>(`/api/v1/webhooks/${hook}/deliveries/${d.id}`, {}, signal)).body : d.body));
	if (!d.body) return null;
	return <>
		{load.error && <Failure error={load.error} retry={load.again} title={tr('The body could not be loaded in full.')} />}
		<pre class="body" tabIndex={0}>{load.value ? pretty(load.value) : d.body}</pre>
	</>;
}

/** Mails have no HTTP status. */
const resultOf = (l: Try): string => l.error || (l.http ? tr('status {http}', { http: l.http }) : tr('accepted by the mail server'));

function Row({ hook, d, again }: { hook: string; d: Delivery; again: () => void }) {
	const [open, show] = useState(false);
	const last = d.log[d.log.length - 1];
	return <>
		<tr data-delivery={d.id}>
			<td class="when">{when(d.created_ms)}</td>
			<td class="nowrap"><button class="plain" aria-expanded={open} onClick={() => show(!open)}>{d.event}</button></td>
			<td class="nowrap"><span class={`state ${STATES[d.state] ?? ''}`}>{STATE_NAMES[d.state] ?? d.state}</span></td>
			<td class="num">{d.attempts}</td>
			<td class="anywhere">{last ? tr('{result}, {took_ms} ms', { result: resultOf(last), took_ms: last.took_ms }) : tr('in delivery')}{d.next_ms > 0 && last && <span class="quiet">{' '}{tr('next attempt {toISOString} UTC', { toISOString: new Date(d.next_ms).toISOString().slice(11, 16) })}</span>}</td>
			<td class="actions"><button class="small" onClick={again} aria-label={tr('Redeliver {event} of {event_id}', { event: d.event, event_id: d.event_id })}>{tr('Redeliver')}</button></td>
		</tr>
		{open && <tr class="more"><td colSpan={6}>
			<ol class="attempts">{d.log.map((l) => <li key={l.n} value={l.n}>{tr('{at_ms}: {result}, {took_ms} ms', { at_ms: when(l.at_ms), result: resultOf(l), took_ms: l.took_ms })}</li>)}</ol>
			<p class="quiet">{tr.rich('Event id {event_id}', { event_id: <code>{d.event_id}</code> })}</p>
			<Body hook={hook} d={d} />
		</td></tr>}
	</>;
}

/** `sign` changes after each delivery. */
export function Deliveries({ hook, sign = '' }: { hook: string; sign?: string }) {
	const load = useLoad(`deliveries ${hook} ${sign}`, () => get<{ deliveries: Delivery[] }>(`/api/v1/webhooks/${hook}/deliveries`));
	const [error, change] = useChange(load.again);
	const list = load.value?.deliveries;
	usePolling(load, load.value && nextPoll(load.value.deliveries));
	return <>
		{!list && <Pending of={load} what={tr('Loading deliveries')} />}
		{list?.length === 0 && <p class="quiet">{tr('No deliveries yet.')}</p>}
		{list && list.length > 0 && <Cards of="deliveries">
			<thead><tr><th>{tr('When')}</th><th>{tr('Event')}</th><th>{tr('State')}</th><th class="num">{tr('Attempts')}</th><th>{tr('Result')}</th><th><span class="hidden">{tr('Actions')}</span></th></tr></thead>
			<tbody>{list.map((d) => <Row key={d.id} hook={hook} d={d} again={() => void change(() => send('POST', `/api/v1/webhooks/${hook}/deliveries/${d.id}`))} />)}</tbody>
		</Cards>}
		{error && <Failure error={error} />}
	</>;
}
