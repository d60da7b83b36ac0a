// The digest: when and to whom, and how it would read now; and where issues are made.
import { useState } from 'preact/hooks';
import { call, get, send, url } from './api';
import { useChange } from './change';
import { Choice, Failure, Panel, Pending, useLoad } from './parts';
import { Deliveries } from './webhookslog';

interface Settings { every: string; hour: number; weekday: number; webhook: boolean; mail: string[] }

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const listed = (lines: string) => lines.split('\n').map((l) => l.trim()).filter(Boolean);

function Form({ v, mail, keep }: { v: Settings; mail: boolean; keep: (s: Settings) => Promise<boolean> }) {
	const [d, put] = useState(v);
	const [to, name] = useState(v.mail.join('\n'));
	const save = (e: Event) => {
		e.preventDefault();
		void keep({ ...d, mail: listed(to) });
	};
	return (
		<form class="rule" onSubmit={save} aria-label="The digest">
			<div class="row">
				<label class="inline">Digest <select name="every" value={d.every} onChange={(e) => put({ ...d, every: e.currentTarget.value })}>
					<option value="off">off</option><option value="daily">every day</option><option value="weekly">every week</option></select></label>
				{d.every === 'weekly' && <label class="inline">on <select name="weekday" value={d.weekday} onChange={(e) => put({ ...d, weekday: Number(e.currentTarget.value) })}>{DAYS.map((day, i) => <option key={day} value={i}>{day}</option>)}</select></label>}
				{d.every !== 'off' && <label class="inline">at <select name="hour" value={d.hour} onChange={(e) => put({ ...d, hour: Number(e.currentTarget.value) })}>{Array.from({ length: 24 }, (_, h) => <option key={h} value={h}>{String(h).padStart(2, '0')}:00</option>)}</select> UTC</label>}
				<label class="inline"><input type="checkbox" name="webhook" checked={d.webhook} onChange={(e) => put({ ...d, webhook: e.currentTarget.checked })} /> to the webhooks that want digests</label>
			</div>
			{mail ? <label class="list">By mail to <span class="quiet">one address a line, at most 20</span>
				<textarea name="mail" rows={2} spellcheck={false} value={to} onInput={(e) => name(e.currentTarget.value)} /></label>
				: <p class="quiet">This server cannot mail: it was given no --smtp-url.{v.mail.length > 0 && ` Until it is, nobody gets it of those named: ${v.mail.join(', ')}.`}</p>}
			<div class="row"><button class="primary" disabled={JSON.stringify({ ...d, mail: listed(to) }) === JSON.stringify(v)}>Save</button></div>
		</form>
	);
}

function Preview() {
	const [days, pick] = useState('1');
	const load = useLoad(`digest ${days}`, async (signal) => (await call(url('/api/v1/digest', { for: 'text', days }), { signal })).text());
	return <>
		<div class="row"><Choice label="Days of the preview" value={days} options={[['1', 'Last day'], ['7', 'Last week']]} onPick={pick} /></div>
		<Pending of={load} what="Making the digest" />
		{load.value && <pre class="body digest" tabIndex={0} aria-label="The digest as it would read now">{load.value}</pre>}
	</>;
}

export function DigestPanel({ mail }: { mail: boolean }) {
	const load = useLoad('digest settings', () => get<Settings>('/api/v1/digest/settings'));
	const [error, change] = useChange(load.again);
	const [shown, show] = useState(false);
	const v = load.value;
	return (
		<Panel title="Digest" id="digest" aside={<button aria-expanded={shown} onClick={() => show(!shown)}>{shown ? 'Hide the preview' : 'Preview'}</button>}>
			<Pending of={load} what="Loading the digest's settings" />
			{v && <Form key={JSON.stringify(v)} v={v} mail={mail} keep={(s) => change(() => send('PUT', '/api/v1/digest/settings', s))} />}
			{error && <Failure error={error} />}
			{v && v.mail.length > 0 && <details><summary>Mails sent</summary><Deliveries hook="mail" /></details>}
			{shown && <Preview />}
		</Panel>
	);
}

const EXAMPLES: Record<string, string> = {
	github: 'https://github.com/OWNER/REPO/issues/new?title={title}&body={body}',
	gitlab: 'https://gitlab.com/GROUP/PROJECT/-/issues/new?issue[title]={title}&issue[description]={body}',
	jira: 'https://jira.example.com/secure/CreateIssueDetails!init.jspa?pid=10000&issuetype=1&summary={title}&description={body}',
};

interface TrackerOf { for: string; template: string }

function TrackerForm({ v, keep }: { v: TrackerOf; keep: (t: TrackerOf) => Promise<boolean> }) {
	const [d, put] = useState(v);
	const save = (e: Event) => {
		e.preventDefault();
		void keep({ for: d.for, template: d.template.trim() });
	};
	return (
		<form class="rule" onSubmit={save} aria-label="Issue tracker">
			<label class="inline">Issues are made in <select name="for" value={d.for} onChange={(e) => put({ ...d, for: e.currentTarget.value })}><option value="github">GitHub</option><option value="gitlab">GitLab</option><option value="jira">Jira</option></select></label>
			<label class="list">Address of a new issue <span class="quiet">with {'{title}'} and {'{body}'}; empty: none</span>
				<input name="template" class="mono wide" maxLength={1000} spellcheck={false} value={d.template} placeholder={EXAMPLES[d.for]} onInput={(e) => put({ ...d, template: e.currentTarget.value })} /></label>
			<div class="row"><button class="primary" disabled={d.for === v.for && d.template.trim() === v.template}>Save</button></div>
		</form>
	);
}

export function Tracker() {
	const load = useLoad('tracker', () => get<TrackerOf>('/api/v1/tracker'));
	const [error, change] = useChange(load.again);
	return (
		<Panel title="Issue tracker" id="tracker">
			<Pending of={load} what="Loading the tracker" />
			{load.value && <TrackerForm key={JSON.stringify(load.value)} v={load.value} keep={(t) => change(() => send('PUT', '/api/v1/tracker', t))} />}
			{error && <Failure error={error} />}
			{load.value && <p class="quiet">Regressions and groups of ANRs have a button that opens a new issue there, filled in.</p>}
		</Panel>
	);
}
