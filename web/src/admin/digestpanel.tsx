// The digest: when and to whom, and how it would read now.
import { useState } from 'preact/hooks';
import { call, get, send, url } from '../api/api';
import { useChange } from '../ui/change';
import { count } from '../i18n/format';
import { Invalid, useInvalid } from '../ui/invalid';
import { Choice, Failure, Panel, Pending, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/notifications';
import { Deliveries } from './deliveries';

interface Settings { every: string; hour: number; weekday: number; webhook: boolean; mail: string[] }

const DAYS = [tr('Sunday'), tr('Monday'), tr('Tuesday'), tr('Wednesday'), tr('Thursday'), tr('Friday'), tr('Saturday')];
const listed = (lines: string) => lines.split('\n').map((l) => l.trim()).filter(Boolean);

function Form({ v, mail, keep }: { v: Settings; mail: boolean; keep: (s: Settings) => Promise<boolean> }) {
	const [d, put] = useState(v);
	const [to, name] = useState(v.mail.join('\n'));
	const save = (e: Event) => {
		e.preventDefault();
		void keep({ ...d, mail: listed(to) });
	};
	return (
		<form class="rule" onSubmit={save} aria-label={tr('The digest')}>
			<div class="row">
				<label class="inline">{tr('Digest')}{' '}<select name="every" value={d.every} onChange={(e) => put({ ...d, every: e.currentTarget.value })}>
					<option value="off">{tr('off')}</option><option value="daily">{tr('every day')}</option><option value="weekly">{tr('every week')}</option></select></label>
				{d.every === 'weekly' && <label class="inline">{tr('on')}{' '}<select name="weekday" value={d.weekday} onChange={(e) => put({ ...d, weekday: Number(e.currentTarget.value) })}>{DAYS.map((day, i) => <option key={day} value={i}>{day}</option>)}</select></label>}
				{d.every !== 'off' && <label class="inline">{tr('at')}{' '}<select name="hour" value={d.hour} onChange={(e) => put({ ...d, hour: Number(e.currentTarget.value) })}>{Array.from({ length: 24 }, (_, h) => <option key={h} value={h}>{String(h).padStart(2, '0')}:00</option>)}</select>{' '}{'UTC'}</label>}
				{d.every !== 'off' && <label class="inline"><input type="checkbox" name="webhook" checked={d.webhook} onChange={(e) => put({ ...d, webhook: e.currentTarget.checked })} />{' '}{tr('to webhooks with digests enabled')}</label>}
			</div>
			{mail ? <label class="list">{tr.rich('By mail to {part}', { part: <span class="quiet">{tr('one address per line, at most 20')}</span> })}
				<textarea name="mail" rows={2} spellcheck={false} value={to} onInput={(e) => name(e.currentTarget.value)} /></label>
				: <p class="quiet">{tr.rich('This server cannot send mail: --smtp-url is not set.{mail}', { mail: v.mail.length > 0 && tr(' These addresses receive nothing until it is set: {mail}.', { mail: v.mail.join(', ') }) })}</p>}
			<div class="row"><button class="primary" disabled={JSON.stringify({ ...d, mail: listed(to) }) === JSON.stringify(v)}>{tr('Save')}</button></div>
		</form>
	);
}

interface Queued { webhooks: number; mails: number }

/** "1 webhook and 2 addresses". */
function receivers({ webhooks, mails }: Queued): string {
	const hooks = webhooks === 1 ? tr('1 webhook') : tr('{webhooks} webhooks', { webhooks: count(webhooks) });
	const addresses = mails === 1 ? tr('1 address') : tr('{mails} addresses', { mails: count(mails) });
	if (!mails) return hooks;
	return webhooks ? tr('{hooks} and {addresses}', { hooks, addresses }) : addresses;
}

function SendNow({ days, sent }: { days: string; sent: () => void }) {
	const [queued, setQueued] = useState<Queued | null>(null);
	const [busy, wait] = useState(false);
	const [error, change] = useChange(sent);
	const sendNow = async () => {
		wait(true);
		setQueued(null);
		await change(async () => setQueued(await (await send('POST', '/api/v1/digest', undefined, { days })).json() as Queued));
		wait(false);
	};
	return <>
		<button disabled={busy} onClick={() => void sendNow()}>{tr('Send it now')}</button>
		<span role="status" class="quiet">{queued && tr('Queued for {receivers}.', { receivers: receivers(queued) })}</span>
		{error && <Failure error={error} />}
	</>;
}

function Preview({ sent }: { sent: () => void }) {
	const [days, pick] = useState('1');
	const load = useLoad(`digest ${days}`, async (signal) => (await call(url('/api/v1/digest', { for: 'text', days }), { signal })).text());
	return <>
		<div class="row"><Choice label={tr('Days of the preview')} value={days} options={[['1', tr('Last day')], ['7', tr('Last week')]]} onPick={pick} /><SendNow key={days} days={days} sent={sent} /></div>
		<Pending of={load} what={tr('Preparing the digest')} />
		{load.value && <pre class="body digest" tabIndex={0} aria-label={tr('Preview of the digest')}>{load.value}</pre>}
	</>;
}

export function DigestPanel({ mail }: { mail: boolean }) {
	const load = useLoad('digest settings', () => get<Settings>('/api/v1/digest/settings'));
	const [error, change] = useChange(load.again);
	const [shown, show] = useState(false);
	const [sends, another] = useState(0);
	const v = load.value;
	const invalid = useInvalid('digest', v);
	return (
		<Panel title={tr('Digest')} id="digest" aside={<button aria-expanded={shown} onClick={() => show(!shown)}>{shown ? tr('Hide the preview') : tr('Preview')}</button>}>
			<Pending of={load} what={tr("Loading the digest's settings")} />
			<Invalid why={invalid} />
			{v && <Form key={JSON.stringify(v)} v={v} mail={mail} keep={(s) => change(() => send('PUT', '/api/v1/digest/settings', s))} />}
			{error && <Failure error={error} />}
			{v && v.mail.length > 0 && <details><summary>{tr('Mails sent')}</summary><Deliveries hook="mail" sign={String(sends)} /></details>}
			{shown && <Preview sent={() => another((n) => n + 1)} />}
		</Panel>
	);
}
