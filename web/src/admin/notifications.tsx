// Notifications: webhooks with their deliveries, alert rules, the digest, and the issue tracker.
import { useState } from 'preact/hooks';
import { LATER_MS, SOON_MS, usePolling } from '../ui/polling';
import { get, send } from '../api/api';
import { Cards } from '../ui/cards';
import { Sure, useChange, useEditing } from '../ui/change';
import { COMMA, count, when } from '../i18n/format';
import { Page } from '../ui/page';
import { Command, Copy, Failure, focused, Panel, Pending, useCame, useLoad } from '../ui/parts';
import { set, text } from '../ui/route';
import { tr } from '../i18n/strings/notifications';
import { AlertRules } from './alertrules';
import { Deliveries } from './deliveries';
import { DigestPanel } from './digestpanel';
import { Field, Tracker } from './tracker';

interface Hook {
	id: string; name: string; url: string; kind: string; events: string[]; created_ms: number; delivered_ms: number;
	failing_ms: number; consecutive_failures: number; paused_ms: number; paused_reason: string; waiting: number; secret_lost: boolean; secret?: string;
}
interface Hooks { webhooks: Hook[]; max_webhooks: number; public_url: string; mail: boolean }
type Draft = Pick<Hook, 'name' | 'url' | 'kind' | 'events'>;

const EVENTS: [event: string, shown: string][] = [['regression.found', tr('new regression')], ['regression.returned', tr('regression returned')], ['regression.fixed', tr('regression fixed')],
	['regression.status', tr('regression acknowledged or reopened')], ['anr.new', tr('new ANR group')], ['anr.returned', tr('ANR group returned')], ['alert.found', tr('metric above its threshold')], ['alert.returned', tr('metric above its threshold again')], ['alert.fixed', tr('metric below its threshold again')], ['digest', tr('digest')]];
const KINDS: [kind: string, shown: string][] = [['json', 'JSON'], ['slack', 'Slack'], ['teams', 'Microsoft Teams'], ['matrix', 'Matrix (hookshot)']];
const FULL = 500; // events of a hook that may wait

/** Milliseconds until the next request; null: no active webhook has waiting events. */
function nextPoll(hooks: Hook[]): number | null {
	const waiting = hooks.filter((h) => h.waiting > 0 && !h.paused_ms);
	return waiting.length === 0 ? null : waiting.some((h) => !h.failing_ms) ? SOON_MS : LATER_MS;
}

function Form({ hook, keep, cancel }: { hook?: Hook; keep: (d: Draft) => Promise<void>; cancel: () => void }) {
	const [d, put] = useState<Draft>(hook ?? { name: '', url: '', kind: 'json', events: EVENTS.map(([e]) => e) });
	const save = (e: Event) => {
		e.preventDefault();
		void keep({ name: d.name.trim(), url: d.url.trim(), kind: d.kind, events: d.events });
	};
	const toggle = (event: string) => put({ ...d, events: d.events.includes(event) ? d.events.filter((o) => o !== event) : [...d.events, event] });
	return (
		<form class="rule" onSubmit={save} aria-label={hook ? tr('Edit the webhook') : tr('A new webhook')}>
			<div class="row">
				<label class="inline">{tr('Name')}{' '}<input name="name" maxLength={100} value={d.name} placeholder={tr('perf channel')} ref={hook ? undefined : focused} onInput={(e) => put({ ...d, name: e.currentTarget.value })} /></label>
				<label class="inline">{tr('Kind')}{' '}<select name="kind" value={d.kind} onChange={(e) => put({ ...d, kind: e.currentTarget.value })}>{KINDS.map(([k, shown]) => <option key={k} value={k}>{shown}</option>)}</select></label>
			</div>
			<Field name="url" type="url" label={tr('Address')} hint={tr("http or https; private addresses only where the server's --webhook-private allows them")} value={d.url} put={(url) => put({ ...d, url })} placeholder="https://hooks.example.com/tracewell" />
			<details><summary>{tr('Events: {which}', { which: d.events.length === EVENTS.length ? tr('all events') : `${d.events.length} / ${EVENTS.length}` })}</summary>
				<div class="row">{EVENTS.map(([event, shown]) => <label class="inline" key={event}><input type="checkbox" name={event} checked={d.events.includes(event)} onChange={() => toggle(event)} /> {shown}</label>)}</div></details>
			<div class="row"><button class="primary" disabled={!d.url.trim() || d.events.length === 0}>{hook ? tr('Save') : tr('Add')}</button><button type="button" onClick={cancel}>{tr('Cancel')}</button></div>
		</form>
	);
}

function State({ h }: { h: Hook }) {
	if (h.secret_lost) return <><span class="state failed">{tr('no secret')}</span> <span class="quiet">{tr('It was encrypted with a key that this server does not have. Create a new secret.')}</span></>;
	if (h.paused_ms) return <><span class="state failed">{tr('paused')}</span> <span class="quiet">{tr('{paused_ms}{paused_why}. Events in the meantime are not sent.', { paused_ms: when(h.paused_ms), paused_why: h.paused_reason ? `: ${h.paused_reason}` : tr(', manually') })}</span></>;
	if (h.failing_ms) return <><span class="state queued">{tr('failing')}</span> <span class="quiet">{tr('since {failing_ms}, {fails} attempts in a row', { failing_ms: when(h.failing_ms), fails: count(h.consecutive_failures) })}</span></>;
	if (h.delivered_ms) return <><span class="state ready">{tr('active')}</span> <span class="quiet">{tr('last delivery {delivered_ms}', { delivered_ms: when(h.delivered_ms) })}</span></>;
	return <span class="quiet">{tr('no deliveries yet')}</span>;
}

/** Of an address; the whole of one that the browser cannot read, though the server could. */
function partOf(address: string, part: 'host' | 'origin'): string {
	try {
		return new URL(address)[part];
	} catch {
		return address;
	}
}

interface Acts { edit: () => void; request: (method: string, path: string, body?: object) => void }

function Row({ h, open, edit, request }: { h: Hook; open: boolean } & Acts) {
	const path = `/api/v1/webhooks/${h.id}`;
	const name = h.name || partOf(h.url, 'host');
	return <>
		<tr data-hook={h.id}>
			<td><button class="plain" aria-expanded={open} onClick={() => set({ open: open ? null : h.id })}>{name}</button><div class="quiet anywhere">{partOf(h.url, 'origin')}</div></td>
			<td class="nowrap">{KINDS.find(([k]) => k === h.kind)?.[1] ?? h.kind}</td>
			<td class="anywhere">{h.events.length === EVENTS.length ? tr('all events') : h.events.map((one) => EVENTS.find(([event]) => event === one)?.[1] ?? one).join(COMMA)}</td>
			<td><State h={h} /></td>
			<td class="num" title={h.waiting >= FULL ? tr('The queue is full: further events are dropped') : undefined}>{count(h.waiting)}{h.waiting >= FULL && <span class="loss">{' '}{tr('full')}</span>}</td>
			<td class="actions">
				<button class="small" onClick={() => { request('POST', `${path}/test`); set({ open: h.id }); }} aria-label={tr('Test {name}', { name })}>{tr('Test')}</button>
				<button class="small" onClick={() => request('PATCH', path, { paused: !h.paused_ms })} aria-label={`${h.paused_ms ? tr('Resume') : tr('Pause')} ${name}`}>{h.paused_ms ? tr('Resume') : tr('Pause')}</button>
				<button class="small" data-edits={`webhook ${h.id}`} onClick={edit} aria-label={tr('Edit {name}', { name })}>{tr('Edit')}</button>
				<Sure what={tr('Remove')} label={tr('Remove {name}', { name })} act={() => request('DELETE', path)} />
			</td>
		</tr>
		{open && <tr class="more"><td colSpan={6}>
			<Deliveries hook={h.id} sign={`${h.waiting} ${h.delivered_ms} ${h.failing_ms} ${h.consecutive_failures}`} />
			<p class="row"><button class="small" onClick={() => request('PATCH', path, { new_secret: true })}>{tr('Create a new secret')}</button><span class="quiet">{tr('The old secret stops working immediately.')}</span></p>
		</td></tr>}
	</>;
}

/** Shown once. */
function Secret({ secret, done }: { secret: string; done: () => void }) {
	return (
		<div class="notice" role="status"><strong>{tr('Signing secret, shown only once:')}</strong>
			<p class="row"><code class="anywhere">{secret}</code><Copy text={secret} /><button class="small" onClick={done}>{tr('I have copied it')}</button></p>
		</div>
	);
}

const VERIFY = `t, v1 = (p.split("=")[1] for p in headers["Tracewell-Signature"].split(","))
ours = hmac.new(secret.encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest()
ok = hmac.compare_digest(ours, v1) and abs(time.time() - int(t)) < 300`;

function Webhooks({ v, again }: { v: Hooks; again: () => void }) {
	const [error, change] = useChange(again);
	const [editing, edit] = useEditing('webhook'); // '' is a new one
	const [secret, show] = useState('');
	const request = (method: string, path: string, body?: object) => change(async () => {
		const answer = await send(method, path, body);
		const made = answer.status === 204 ? null : await answer.json() as { secret?: string };
		if (made?.secret) show(made.secret);
	});
	const put = async (d: Draft) => {
		if (await (editing ? request('PATCH', `/api/v1/webhooks/${editing}`, d) : request('POST', '/api/v1/webhooks', d))) edit(null);
	};
	const open = text('open');
	return (
		<Panel title={tr('Webhooks')} id="webhooks" aside={editing === null && v.webhooks.length < v.max_webhooks && <button data-edits="webhook " onClick={() => edit('')}>{tr('Add a webhook')}</button>}>
			{secret && <Secret secret={secret} done={() => show('')} />}
			{v.webhooks.length === 0 && editing === null && <p class="quiet">{tr('No webhooks yet. A webhook notifies a chat or a program of regressions, new ANR groups and alerts.')}</p>}
			{v.webhooks.length > 0 && <Cards>
				<thead><tr><th>{tr('Name')}</th><th>{tr('Kind')}</th><th>{tr('Events')}</th><th>{tr('State')}</th><th class="num">{tr('Waiting')}</th><th><span class="hidden">{tr('Actions')}</span></th></tr></thead>
				<tbody>{v.webhooks.map((h) => <Row key={h.id} h={h} open={open === h.id} edit={() => edit(h.id)} request={(...of) => void request(...of)} />)}</tbody>
			</Cards>}
			{editing !== null && <Form key={editing} hook={v.webhooks.find((h) => h.id === editing)} keep={put} cancel={() => edit(null)} />}
			{error && <Failure error={error} />}
			{!v.public_url && <p class="quiet">{tr('Set --public-url to include links in messages.')}</p>}
			<details><summary>{tr('How a receiver checks the signature')}</summary><p class="quiet">{tr.rich('In Python. {code} is the same for every attempt of an event, so that duplicates can be recognised.', { code: <code>Tracewell-Event-Id</code> })}</p><Command>{VERIFY}</Command></details>
		</Panel>
	);
}

export function NotificationsPage() {
	const load = useLoad('webhooks', () => get<Hooks>('/api/v1/webhooks'));
	const [came, settle] = useState(false); // panels below appear after the list, so that it does not move them
	useCame(load, () => settle(true));
	usePolling(load, load.value && nextPoll(load.value.webhooks));
	return (
		<Page title={tr('Notifications')} of="notifications">
			{load.value ? <Webhooks v={load.value} again={load.again} /> : <Panel title={tr('Webhooks')}><Pending of={load} what={tr('Loading webhooks')} /></Panel>}
			{came && <AlertRules />}
			{came && <DigestPanel mail={load.value?.mail ?? false} />}
			{came && <Tracker />}
		</Page>
	);
}
