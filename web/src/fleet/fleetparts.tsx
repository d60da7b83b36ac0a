// Shared parts of the fleet pages: the filter and links that keep it, a change, the error of numbers, missing mappings.
import { get, may } from '../api/api';
import { changeOf, LABEL, unsure, type FleetMethodRow, type Keyed } from './fleetdoc';
import { KEPT, NoRows, useDays, useFleet } from './fleetfilter';
import { percent, signed } from '../i18n/format';
import { useLoad } from '../ui/parts';
import { link, query, set, text } from '../ui/route';
import { tr } from '../i18n/strings/fleet';
import { several } from '../api/traces';

/** An address with the filter of this one; `more` overrides it, '' removes a parameter. */
export function withFilter(to: string, more: Record<string, string> = {}): string {
	const q = new URLSearchParams();
	for (const k of KEPT) if (query.value.get(k) && more[k] === undefined) q.set(k, query.value.get(k)!);
	for (const [k, v] of Object.entries(more)) if (v) q.set(k, v);
	const s = q.toString();
	return s ? `${to}?${s}` : to;
}

/** The page of one method over the fleet. */
export const methodLink = (name: string, more: Record<string, string> = {}): string => withFilter('/fleet/methods', { method: name, ...more });

/** The fleet's calls of the method, with the parts of the filter that Search supports. */
export function searchLink(name: string): string {
	const q = new URLSearchParams({ method: name });
	for (const k of ['version_name', 'scenario', 'class', 'os']) if (text(k)) q.set(k, text(k));
	return link(`/search?${q}`);
}

/** The filter, and the label that traces are counted by; the server refuses label and class together. */
export function useFleetQuery(): { params: Record<string, string | number>; key: string; days: number } {
	const fleet = useFleet();
	const label = text('label');
	return { params: { ...fleet.params, ...(label && { label }) }, key: `${fleet.key} ${label}`, days: fleet.days };
}

/** On which kind of thread, in the address: main, others, or a name with # for digits. */
export function OnThread() {
	return <label class="inline" title={tr('main, others, or a name with # for digits, such as pool-#-thread-#')}>{tr('on thread')}{' '}
		<input name="thread" list="threadkinds" value={text('thread')} placeholder={tr('any, main or others')} onChange={(e) => set({ thread: e.currentTarget.value.trim() || null, rows: null }, true)} />
		<datalist id="threadkinds"><option value="main" /><option value="others" /></datalist></label>;
}

/** The labels that traces are counted by. */
const useLabels = (): string[] => useLoad('fleet labels', () => get<{ labels: string[] }>('/api/v1/fleet/labels')).value?.labels ?? [];

/** What groups can differ by, and how it is called. */
const BYS: [string, string][] = [['version', tr('version')], ['day', tr('day')], ['class', tr('devices')], ['os', 'Android'], ['scenario', tr('scenario')], ['app', tr('app')], ['build', tr('build')]];
export const byName = (by: string): string => (by.startsWith(LABEL) ? by.slice(LABEL.length) : BYS.find(([b]) => b === by)?.[1] ?? by);

/** The filter of a group's key; a day is not a filter. */
const FILTER: Record<string, string> = { version: 'version_name', class: 'class', os: 'os', scenario: 'scenario', app: 'app', build: 'build_id' };
/** The filter that leaves only a group; null: there is none. */
export function filterOf(by: string, g: Keyed): Record<string, string> | null {
	if (by.startsWith(LABEL)) return g.values === 1 ? { label: `${byName(by)}=${g.key}` } : g.values === 0 ? { label: `${byName(by)}=` } : null;
	return g.key && FILTER[by] ? { [FILTER[by]]: g.key } : null;
}

/** The dimension in the address, among those that fit its filter; without `not`. */
export function useBy(not: string[] = []): { by: string; bys: string[] } {
	const label = text('label');
	const labels = useLabels().filter((l) => !label || label.startsWith(`${l}=`)).map((l) => LABEL + l);
	const fixed = BYS.map(([b]) => b).filter((b) => !not.includes(b) && !(label && (b === 'class' || b === 'os'))); // rollups of a label know neither
	const requested = text('by');
	// an uncounted label is requested, too: the server's error has the remedy
	const bys = [...fixed, ...(requested.startsWith(LABEL) && !labels.includes(requested) ? [...labels, requested] : labels)];
	return { by: bys.includes(requested) ? requested : 'version', bys };
}

export function PickBy({ by, bys }: { by: string; bys: string[] }) {
	const pick = (to: string) => set({ by: to === 'version' ? null : to, ...(to.startsWith(LABEL) && { class: null, os: null }) }, true);
	return (
		<label class="inline">{tr('By')}{' '}<select name="by" value={by} onChange={(e) => pick(e.currentTarget.value)}>
			{bys.map((b) => <option key={b} value={b}>{b.startsWith(LABEL) ? tr('label {b}', { b: byName(b) }) : byName(b)}</option>)}</select></label>
	);
}

/** What groups by a label leave out. */
export function Uncounted({ n }: { n: number | undefined }) {
	return n ? <p class="quiet">{tr.rich('Not included: {traces} counted before this label was added to the settings. {code} counts them again.', { traces: several(n, 'trace'), code: <code>tracewell rollup --rebuild</code> })}</p> : null;
}

/** Filters that FleetFilter has no field for: they are named, and can be left. */
export function Narrowed() {
	const os = text('os'), build = text('build_id'), label = text('label');
	const chips: [string, string][] = [['os', os && tr('Android {os}', { os })], ['build_id', build && tr('build {build}', { build })], ['label', label]];
	const labels = useLabels();
	const submit = (e: SubmitEvent) => {
		e.preventDefault();
		const form = new FormData(e.currentTarget as HTMLFormElement);
		const value = String(form.get('value')).trim();
		if (value) set({ label: `${form.get('name')}=${value}`, class: null, os: null }, true); // rollups of a label know neither
	};
	return <>
		{labels.length > 0 && !label && <form class="inlineform" aria-label={tr('Traces with a label')} onSubmit={submit}>
			<label class="inline">{tr('Label')}{' '}<select name="name">{labels.map((l) => <option key={l} value={l}>{l}</option>)}</select></label>
			<input name="value" aria-label={tr('Value of the label')} placeholder={tr('is')} /><button class="small">{tr('Set')}</button>
		</form>}
		{chips.filter(([, shown]) => shown).map(([name, shown]) => <span key={name} class="step">{shown}<button class="plain" aria-label={tr('Any {name}', { name: name === 'os' ? tr('system') : name === 'label' ? tr('label') : tr('build') })} onClick={() => set({ [name]: null }, true)}>×</button></span>)}
	</>;
}

/** How much a quantile moved; quiet where that may be the error of both, or where a comparison would have no interval. */
/** Of the numbers as they are: another mix of devices makes one too, so it has no colour of good or bad; `to`: the link to its confidence. */
export function Change({ now, before, error, few = false, to }: { now: number; before: number | undefined; error: number; few?: boolean; to?: string }) {
	const c = changeOf(now, before);
	if (c !== null && few) return <span class="quiet" title={tr('{change} with too few traces to compare', { change: signed(c) })}>{tr('too few traces')}</span>;
	if (c === null) return <span class="quiet">–</span>;
	if (Math.abs(c) <= unsure(error)) return <span class="quiet" title={tr('Within the error of the numbers')}>{signed(c)}</span>;
	return to ? <a href={to} title={tr('Compared for the same device mix, with confidence interval')}>{signed(c)}</a> : <span>{signed(c)}</span>;
}

/** The stated error of every quantile here. */
export function Stated({ error, more }: { error: number; more?: string }) {
	return <p class="quiet">{tr('Percentiles are accurate to within {error}; counts, sums, means and maxima are exact. {more}', { error: percent(error), more })}</p>;
}

/** In place of numbers about traces, if there are none: the reason, and the next step. */
export function NoTraces() {
	const days = useDays();
	return <NoRows unmatched={tr('No traces match this filter.')} none={tr.rich('No traces to show for the last {days} days. {next}', { days, next: may.write ? tr.rich('Drop a trace file anywhere on this page, or {link}.', { link: <a href={link('/')}>{tr('send one from a device')}</a> }) : tr('Traces appear here shortly after they are decoded.') })} />;
}

const OBFUSCATED = /^(\w{1,2}\.)+\w{1,3}$/; // as R8 names methods

/** Links to the builds whose mapping is missing. */
export function MissingMappings({ of }: { of: FleetMethodRow[] }) {
	const raw = of.filter((m) => !m.resolved);
	if (raw.length === 0 && of.filter((m) => OBFUSCATED.test(m.name)).length * 2 <= of.length) return null;
	const builds = [...new Set(raw.length ? raw.map((m) => m.build_id) : [''])].slice(0, 3).map((b) => <> <a key={b} href={link(b ? `/builds?build=${encodeURIComponent(b)}` : '/builds')}>{b || tr('Builds')}</a></>);
	return <p class="unnamed">{raw.length === 0 ? tr('Method names look obfuscated. Send the R8 mapping of their build:') : raw.some((m) => m.build_id) ? tr('Some methods have no name. Send the mapping of their build:') : tr('Some methods have no name, and their traces no build_id. Send traces with a build_id, and the mapping of their build:')}{builds}</p>;
}

const ABOVE = 1.2; // the suggested threshold, times the current value
const MS = 1e6;

/** A new alert rule for a scenario's duration or a method's self time, filled in. */
export const alertLink = (scenario: string, app: string, percentile: number, now_ns: number, method = ''): string =>
	link(`/notifications?${new URLSearchParams({ alert: method ? 'method_self' : 'duration', app, scenario, method, percentile: String(percentile), threshold: String(Number((now_ns * ABOVE / MS).toPrecision(2))) })}`);
