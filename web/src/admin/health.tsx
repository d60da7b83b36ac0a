// The state of the server: checks, queue, waiting stages, disk, memory, refused and slow requests.
import { may, Refusal, type Stage } from '../api/api';
import { stageName } from '../api/stages';
import { manage } from '../api/manage';
import { increase, type MetricHistory } from '../api/history';
import { byLabel, parseMetrics, sumOf, timedRoutes, type Sample } from '../api/metrics';
import { bytes, count, duration, HOUR_MS, percent, sentence, when } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { Cards } from '../ui/cards';
import { invalidSettings, type InvalidSetting } from '../ui/invalid';
import { Page } from '../ui/page';
import { Failure, Panel, Pending, useLoad } from '../ui/parts';
import { usePolling } from '../ui/polling';
import { link } from '../ui/route';
import { tr } from '../i18n/strings/health';
import { Trends } from './healthtrends';

interface Check { ok: boolean; since_ms: number; message: string; engine?: string }
interface Ready { status: string; node?: string; role: string; checks: Record<string, Check> }
/** Null: not available. `elsewhere`: metrics are served at another address (--metrics-listen). */
interface State { ready: Ready; invalid: InvalidSetting[]; stages: Stage[] | null; all: Sample[] | null; history: MetricHistory | null; elsewhere: boolean; at_ms: number }

const DAMAGED = 'tracewell_catalogue_damaged_pages';
const AGAIN_MS = 10_000;
const LONG_WAIT_S = 300;
const SLOW_S = 1;
const ROUTES = 12;

const CHECKS: Record<string, string> = {
	reading: tr('Catalogue is readable'), catalogue: tr('Catalogue is writable'), running: tr('Server is not shutting down'), disk: tr('Disk has space'),
	uploads: tr('Uploads can be stored'), jobs: tr('Decoders work'), storage: tr('Stored files are reachable'), analytics: 'ClickHouse',
};
const SAVED_AT: Record<string, Problem['to']> = { // the form that saves a new one
	retention: ['/retention', tr('Retention')], capture: ['/capture', tr('Capture')], detectors: ['/detectors', tr('Detectors')], source: ['/source', tr('Source')], regressions: ['/regressions', tr('Regressions')],
	anr_rules: ['/anrs', tr('ANR groups')], digest: ['/notifications', tr('Notifications')], tracker: ['/notifications', tr('Notifications')],
};
const LIMITS: Record<string, string> = {
	size: tr('body too large'), target: tr('address too long'), rate: tr('rate limit'), headers: tr('headers too large'), busy: tr('server busy'), deadline: tr('query took too long'),
	disk: tr('disk full'), slow_body: tr('body arrived too slowly'), slow_headers: tr('headers arrived too slowly'),
};

const refusal = (answer: Response) => new Refusal(answer.status, tr('The server returned {status}.', { status: answer.status }));

/** A 503 has the same body as a 200. */
async function readiness(signal: AbortSignal): Promise<Ready> {
	const answer = await fetch('/readyz', { signal });
	if (answer.status !== 200 && answer.status !== 503) throw refusal(answer);
	return answer.json() as Promise<Ready>;
}

/** Only the checks are required: while one fails, the server may refuse the rest. */
async function stateOf(signal: AbortSignal): Promise<State> {
	const [ready, invalid, stages, text, history] = await Promise.all([readiness(signal), invalidSettings(signal).catch(() => []), manage.stages(signal).then((v) => v.stages).catch(() => null), fetch('/metrics', { signal }).catch(() => null),
		fetch('/metrics/history', { signal }).then((answer) => (answer.ok ? answer.json() as Promise<MetricHistory> : null)).catch(() => null)]);
	return { ready, invalid, stages, all: text?.ok ? await text.text().then(parseMetrics, () => null) : null, history, elsewhere: text?.status === 404, at_ms: Date.now() };
}

function Facts({ of }: { of: [string, string | null][] }) {
	return <dl class="roomfacts">{of.filter(([, v]) => v !== null).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>;
}

const counted = (n: number | null) => (n === null ? null : count(n));
const sized = (n: number | null) => (n === null ? null : bytes(n));
const lasted = (s: number | null) => (s === null ? null : duration(s * 1e9));

interface Problem { key: string; text: string; fails: boolean; since_ms?: number; to?: [string, string] }

/** Failed checks, and what needs an operator although the server works. */
function problemsOf({ ready, invalid, stages, all, history }: State): Problem[] {
	const of = (name: string) => (all ? sumOf(all, name) ?? 0 : 0);
	const lately = (name: string) => (history ? increase(history, name, HOUR_MS) : 0);
	const [oldest_s, paused, crashed, failed, errors, refused] = [of('tracewell_queue_oldest_seconds'), of('tracewell_webhook_paused_hooks'), of('tracewell_quarantine_traces'), lately('failed'), lately('errors'), lately('refused')];
	const warning = (key: string, is: boolean, text: string, to?: Problem['to'], since_ms?: number): Problem[] => (is ? [{ key, text, fails: false, to, since_ms }] : []);
	return [
		...(of(DAMAGED) > 0 ? [{ key: 'damaged', text: tr('The catalogue is damaged.'), fails: true }] : []),
		...Object.entries(ready.checks).filter(([, c]) => !c.ok).map(([key, c]) => ({ key, text: c.message ? sentence(serverText(c.message)) : CHECKS[key] ?? key, fails: true, since_ms: c.since_ms })),
		...invalid.map(({ key, reason }) => ({ key: `setting ${key}`, text: tr('The stored setting {key} is invalid: {reason}.', { key, reason: serverText(reason) }), fails: false, to: SAVED_AT[key] })),
		...warning('wait', oldest_s > LONG_WAIT_S, tr('The oldest queued trace has been waiting for {time}.', { time: duration(oldest_s * 1e9) }), ['/traces?state=queued', tr('Queued traces')]),
		...(stages ?? []).filter((s) => s.postponed.length > 0).flatMap((s) => warning(s.stage, true, tr('{stage}: some traces are postponed.', { stage: stageName(s.stage) }), undefined, s.oldest_ms || undefined)),
		...warning('failed', failed > 0, tr.many(failed, '{n} decode failed in the last hour.', '{n} decodes failed in the last hour.'), ['/traces?state=failed', tr('Failed traces')]),
		...warning('errors', errors > 0, tr.many(errors, '{n} request failed with a server error in the last hour.', '{n} requests failed with a server error in the last hour.')),
		...warning('refused', refused > 0, tr.many(refused, '{n} request was refused by a limit in the last hour.', '{n} requests were refused by a limit in the last hour.')),
		...warning('crashed', crashed > 0, tr.many(crashed, '{n} upload that crashed its decoder is in quarantine.', '{n} uploads that crashed their decoder are in quarantine.'), may.admin ? ['/quarantine', tr('Quarantine')] : undefined),
		...warning('hooks', paused > 0, tr.many(paused, '{n} webhook is paused.', '{n} webhooks are paused.'), may.admin ? ['/notifications', tr('Notifications')] : undefined),
	];
}

/** Current problems with start and link, then the passing checks. */
function Now({ v }: { v: State }) {
	const problems = problemsOf(v);
	const failed = problems.filter((p) => p.fails).length;
	return (
		<Panel title={tr('Current state')} id="checks" aside={<span class={`state ${failed ? 'failed' : problems.length ? 'queued' : 'ready'}`}>{failed ? tr.many(failed, '{n} check fails', '{n} checks fail') : tr('All checks pass')}</span>}>
			{problems.length > 0 && <ul class="problems">{problems.map((p) => (
				<li key={p.key} data-problem={p.key}><span class={p.fails ? 'state failed' : 'state queued'}>{p.fails ? tr('fails') : tr('warning')}</span><span class="anywhere">{p.text}</span>
					<span class="quiet">{p.since_ms ? tr('since {time}', { time: when(p.since_ms) }) : ''}</span>{p.to && <a href={link(p.to[0])}>{p.to[1]}</a>}</li>))}</ul>}
			<ul class="checks">{Object.entries(v.ready.checks).filter(([, c]) => c.ok).map(([name, c]) => (
				<li key={name} data-check={name}><span aria-hidden="true">✓</span> {CHECKS[name] ?? name}{c.engine && <code class="quiet"> {c.engine}</code>}<span class="hidden">{tr('passes')}</span></li>))}</ul>
		</Panel>
	);
}

function Queue({ all }: { all: Sample[] }) {
	const deaths = sumOf(all, 'tracewell_decoder_crashes_total');
	return (
		<Panel title={tr('Queue')} id="queue" aside={<a href={link('/traces?state=queued')}>{tr('Queued traces')}</a>}>
			<Facts of={[
				[tr('Waiting traces'), counted(sumOf(all, 'tracewell_queue_traces'))], [tr('Being decoded'), counted(sumOf(all, 'tracewell_decoding_traces'))],
				[tr('Longest wait'), lasted(sumOf(all, 'tracewell_queue_oldest_seconds'))], [tr('Size of waiting uploads'), sized(sumOf(all, 'tracewell_queue_bytes'))],
				[tr('Waiting mappings'), counted(sumOf(all, 'tracewell_queue_mappings'))], [tr('In quarantine'), counted(sumOf(all, 'tracewell_quarantine_traces'))],
				[tr('Decoders crashed since the server started'), counted(deaths)], [tr('Uploads refused since the server started'), counted(sumOf(all, 'tracewell_queue_refused_total'))],
				[tr('Events waiting for webhooks'), counted(sumOf(all, 'tracewell_webhook_waiting_events'))]]} />
		</Panel>
	);
}

function Stages({ stages, all }: { stages: Stage[] | null; all: Sample[] | null }) {
	const everywhere = new Map(all ? byLabel(all, 'tracewell_stage_waiting_traces', 'stage') : []);
	return (
		<Panel title={tr('Background stages')} id="stages">
			{!stages ? <p class="quiet">{tr('Not available: the request failed.')}</p> : <Cards label={tr('Background stages')}>
				<thead><tr><th>{tr('Stage')}</th><th class="num">{tr('Waiting traces')}</th><th class="num">{tr('All projects')}</th><th>{tr('Oldest since')}</th><th>{tr('Postponed because')}</th></tr></thead>
				<tbody>{stages.map((s) => (
					<tr key={s.stage} data-stage={s.stage}><td>{stageName(s.stage)}</td><td class="num">{count(s.waiting)}</td><td class="num">{counted(everywhere.get(s.stage) ?? null) ?? '–'}</td>
						<td class="when">{s.oldest_ms > 0 ? when(s.oldest_ms) : <span class="quiet">–</span>}</td>
						<td class="anywhere">{s.postponed.length ? s.postponed.map((p) => tr('{reason} ({n})', { reason: serverText(p.message), n: count(p.traces) })).join('; ') : <span class="quiet">–</span>}</td></tr>))}</tbody>
			</Cards>}
		</Panel>
	);
}

function Bar({ used, of, label }: { used: number; of: number; label: string }) {
	const share = of > 0 ? Math.min(1, used / of) : 0;
	return <div class="roombar" role="img" aria-label={label}><span class={share > 0.9 ? 'full' : 'used'} style={{ width: `${share * 100}%` }} /></div>;
}

function Space({ all }: { all: Sample[] }) {
	const size = sumOf(all, 'tracewell_disk_size_bytes') ?? 0;
	const free = sumOf(all, 'tracewell_disk_free_bytes') ?? 0;
	const memory = sumOf(all, 'tracewell_response_memory_bytes') ?? 0;
	const limit = sumOf(all, 'tracewell_response_memory_limit_bytes') ?? 0;
	const disk = tr('{used} of {size} used, {free} free', { used: bytes(size - free), size: bytes(size), free: bytes(free) });
	const answers = tr('{used} of {limit} reserved for responses', { used: bytes(memory), limit: bytes(limit) });
	return (
		<Panel title={tr('Disk and memory')} id="space" aside={<a href={link('/retention')}>{tr('Retention')}</a>}>
			{size > 0 && <><p>{disk}</p><Bar used={size - free} of={size} label={disk} /></>}
			{limit > 0 && <><p>{answers}</p><Bar used={memory} of={limit} label={answers} /></>}
			<Facts of={[
				[tr('Server memory'), sized(sumOf(all, 'tracewell_resident_bytes'))], [tr('Cached files'), sized(sumOf(all, 'tracewell_cache_bytes'))],
				[tr('Damaged catalogue pages'), counted(sumOf(all, DAMAGED))], [tr('Backup age'), lasted(sumOf(all, 'tracewell_backup_age_seconds')) ?? tr('none yet')]]} />
		</Panel>
	);
}

function Slots({ all }: { all: Sample[] }) {
	const hit = byLabel(all, 'tracewell_limits_hit_total', 'limit').filter(([, n]) => n > 0);
	return (
		<Panel title={tr('Requests')} id="slots">
			<Facts of={[
				[tr('Requests in progress'), counted(sumOf(all, 'tracewell_requests_open'))], [tr('Uploads in progress'), counted(sumOf(all, 'tracewell_uploads_open'))],
				[tr('Resumable uploads open'), counted(sumOf(all, 'tracewell_resumable_open'))], [tr('Connections'), counted(sumOf(all, 'tracewell_connections_open'))],
				[tr('Quota refusals'), counted(sumOf(all, 'tracewell_quota_refused_total'))], [tr('Signed in'), counted(sumOf(all, 'tracewell_sessions'))]]} />
			{hit.length === 0 ? <p class="quiet">{tr('No request was refused by a limit since the server started.')}</p>
				: <p>{tr('Refused since the server started: {list}.', { list: hit.map(([l, n]) => `${LIMITS[l] ?? l} ${count(n)}`).join(', ') })}</p>}
		</Panel>
	);
}

function Slow({ all }: { all: Sample[] }) {
	const routes = timedRoutes(all, SLOW_S);
	const shown = routes.slice(0, ROUTES);
	const slow = routes.reduce((n, r) => n + r.over, 0);
	return (
		<Panel title={tr('Slow requests')} id="slow" aside={<span class="quiet">{tr.many(slow, '{n} request over 1 s', '{n} requests over 1 s')}</span>}>
			{shown.length === 0 ? <p class="quiet">{tr('No requests yet.')}</p> : <Cards label={tr('Slow requests')}>
				<thead><tr><th>{tr('Request')}</th><th class="num">{tr('Count')}</th><th class="num">{tr('Over 1 s')}</th><th class="num">{tr('Mean')}</th><th class="num">{tr('p95')}</th></tr></thead>
				<tbody>{shown.map((r) => (
					<tr key={`${r.method} ${r.route}`} data-route={r.route}><td class="mono anywhere">{r.method} {r.route}</td><td class="num">{count(r.count)}</td>
						<td class="num">{r.over ? <>{count(r.over)} <span class="quiet">{percent(r.over / r.count)}</span></> : '0'}</td><td class="num">{duration(r.mean_s * 1e9)}</td>
						<td class="num">{Number.isFinite(r.p95_s) ? `≤ ${duration(r.p95_s * 1e9)}` : tr('over 10 s')}</td></tr>))}</tbody>
			</Cards>}
			<p class="quiet">{tr('Since the server started, from headers to response. Uploads include the time to send the body.')}</p>
		</Panel>
	);
}

export function HealthPage() {
	const load = useLoad('health', stateOf);
	const v = load.value;
	usePolling(load, AGAIN_MS);
	return (
		<Page title={tr('Server health')} head={<>{v && <span class="quiet">{[v.ready.node, ...(v.all ? byLabel(v.all, 'tracewell_build_info', 'version').map(([n]) => `tracewell ${n}`) : []), tr('as of {time}', { time: when(v.at_ms) })].filter(Boolean).join(' · ')}</span>}
				<span class="grow" /><button class="small" disabled={load.busy} onClick={load.again}>{tr('Refresh')}</button></>}>
			{v && load.error && <Failure error={load.error} retry={load.again} />}
			{!v && <Pending of={load} what={tr('Loading the state')} />}
			{v && <>
				<Now v={v} />
				{v.all && (sumOf(v.all, DAMAGED) ?? 0) > 0 && <div class="notice bad" role="alert"><strong>{tr('The catalogue is damaged.')}</strong>
					<p>{tr.rich('Pages with a wrong checksum were read. {code} lists the damage. Stop the server, restore the catalogue from a backup, and check the disk.', { code: <code>tracewell check --data DIR</code> })}</p></div>}
				{!v.all && <p class="notice">{v.elsewhere ? tr('The metrics are served at the address of --metrics-listen, which this page cannot read.') : tr('Metrics are not available: the request failed.')}</p>}
				{v.history ? <Trends h={v.history} /> : !v.elsewhere && <Panel title={tr('Last 24 hours')} id="trends"><p class="quiet">{tr('Not available: the request failed.')}</p></Panel>}
				{v.all && <Queue all={v.all} />}
				<Stages stages={v.stages} all={v.all} />
				{v.all && <div class="pair"><Space all={v.all} /><Slots all={v.all} /></div>}
				{v.all && <Slow all={v.all} />}
			</>}
		</Page>
	);
}
