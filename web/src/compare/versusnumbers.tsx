// Durations of both sides: number of traces, devices, quantiles with confidence intervals.
import type { ComponentChildren } from 'preact';
import { get } from '../api/api';
import { classWord } from '../api/classes';
import { count, DAY_MS, duration, percent, signed } from '../i18n/format';
import { Cards } from '../ui/cards';
import { useMore } from '../ui/panelstate';
import { narrow } from '../ui/narrow';
import { Pending, useLoad } from '../ui/parts';
import { link, text } from '../ui/route';
import { tr } from '../i18n/strings/versus';
import { axisOf, between, leftOut, positionOn, reportedIn, reportedOf, severalScenarios, verdictOf, WHERE, type Axis, type Interval, type Mix, type Reported, type Scenario, type Stat, type Versus } from './versusdoc';

const [SHOWN, STRATA] = [5, 6];
const VERDICTS = { slower: tr('slower'), faster: tr('faster'), 'may be chance': tr('may be chance'), 'too few traces': tr('too few traces') };
const CLASS = { slower: 'up', faster: 'down', 'may be chance': 'quiet', 'too few traces': 'quiet' };

const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);

const FILTERS: Record<string, string> = { app: tr('app'), build: tr('build'), class: tr('device class'), OS: 'Android' };
/** The server's description of a side. */
const labelOf = (s: string) => (s === 'all' ? tr('all') : s.replace(/(^|, )(app|build|class|OS) /g, (_, c, w) => `${c}${FILTERS[w]} `));

/** A section, folded on a phone, where the verdict and the methods come first. */
function Folded({ title, id, of, children }: { title: string; id?: string; of: string; children: ComponentChildren }) {
	return narrow.value ? <details class={of} id={id}><summary><h2>{title}</h2></summary>{children}</details>
		: <section class={of} id={id} aria-label={title}><h2>{title}</h2>{children}</section>;
}

export function SideCard({ v, side }: { v: Versus; side: 'a' | 'b' }) {
	const s = v[side];
	const why = leftOut(side, v);
	const scenario = text(`${side}.scenario`) || text('scenario');
	return (
		<section class="side" aria-label={tr('Side {toUpperCase}', { toUpperCase: side.toUpperCase() })}>
			<h2><span class="letter">{side.toUpperCase()}</span> {s.trace ? <a class="anywhere" href={link(`/traces/${s.trace}`)}>{labelOf(s.label)}</a> : <span class="anywhere">{labelOf(s.label)}</span>}</h2>
			<p class="sample"><strong class="figure">{count(s.traces)}</strong> {s.traces === 1 ? tr('trace') : tr('traces')}
				{!s.trace && <span class="quiet">{' '}{tr.rich('{scenario} {since_ms} to {day_ms}', { scenario: scenario && tr(' of {scenario},', { scenario }), since_ms: day(s.since_ms), day_ms: day(s.until_ms - DAY_MS) })}</span>}</p>
			{s.traces > 0 && s.compared < s.traces && <p class="quiet">{tr('{compared} of them are compared. {why}', { compared: count(s.compared), why })}</p>}
		</section>
	);
}

function mixText({ strata, corrected }: Mix): string {
	if (text('mix') === 'none') return tr('Each side keeps its own mix: differences between devices or scenarios show as changes.');
	if (!corrected || strata.some((c) => c.scenario === null)) return tr('No scenario is on both sides: differences between scenarios show as changes.');
	if (strata.every((c) => !c.class || c.class === 'unknown')) return tr('No known class is on both sides: differences between devices show as changes.');
	return tr('B is weighted by A’s mix, so that a different mix does not show as a change.');
}

export function MixCard({ v }: { v: Versus }) {
	const { strata, corrected } = v.mix;
	const [max, more] = useMore('strata', STRATA);
	const several = severalScenarios(v.mix);
	const share = (w: number | null, left: boolean) => (left || w === null ? '–' : percent(w));
	return (
		<Folded of="side" title={tr('Mix')}>
			<table class="mix"><thead><tr>{several && <th>{tr('Scenario')}</th>}<th>{tr('Class')}</th><th class="num">A</th><th class="num">B</th><th class="num">{tr('Counts as')}</th></tr></thead>
				<tbody>{strata.slice(0, max).map((c) => <tr key={`${c.scenario}/${c.class}`}>{several && <td class="anywhere">{c.scenario || tr('no scenario')}</td>}<td>{c.class ? classWord(c.class) : tr('not given')}</td><td class="num">{count(c.a_traces)}</td><td class="num">{count(c.b_traces)}</td>
					<td class="num">{share(c.a_weight, c.excluded)}{!corrected && !c.excluded && <span class="quiet"> / {share(c.b_weight, c.excluded)}</span>}</td></tr>)}</tbody></table>
			{strata.length > max && <div class="row"><button class="small" onClick={() => more(max * 4)}>{tr('Show more')}</button></div>}
			<p class="quiet">{mixText(v.mix)}</p>
		</Folded>
	);
}

/** The interval of a change, on an axis that all rows share. */
function Whisker({ s, x, name }: { s: Stat; x: Axis; name: string }) {
	const { low, high, value } = s.change;
	const at = (v: number) => `${(100 * positionOn(x, v)).toFixed(2)}%`;
	const kind = CLASS[verdictOf(s)];
	return (
		<svg class={`whisker ${kind}`} role="img" aria-label={`${name}: ${low === null ? tr('no interval') : between(s.change, signed)}`}>
			<line class="zero" x1={at(0)} x2={at(0)} y1="0" y2="100%" />
			{low !== null && high !== null && <rect x={at(low)} width={`${(100 * (positionOn(x, high) - positionOn(x, low))).toFixed(2)}%`} y="7" height="4" rx="2" />}
			{value !== null && <circle cx={at(value)} cy="9" r="4.5" />}
		</svg>
	);
}

function Value({ i }: { i: Interval }) {
	return <>{i.value === null ? '–' : duration(i.value)}{i.low !== null && <div class="quiet within">{between(i, duration)}</div>}</>;
}

function Row({ name, s, x, head, open }: { name: string; s: Stat; x: Axis; head?: ComponentChildren; open?: Reported }) {
	const verdict = verdictOf(s);
	const change = s.change.value === null ? '–' : signed(s.change.value);
	return (
		<tr data-stat={name}>
			{head}
			<th scope="row">{name === 'mean' ? tr('mean') : name}</th>
			<td class="num"><Value i={s.a} /></td><td class="num"><Value i={s.b} /></td>
			<td class="num">{open ? <a href={link(`/regressions?open=${encodeURIComponent(open.id)}`)} title={tr('Open regression: the mean change per device class and day')}>{change}</a> : change}{s.change.low !== null && <div class="quiet within">{between(s.change, signed)}</div>}</td>
			<td class="plot"><Whisker s={s} x={x} name={name} /></td>
			<td class={`nowrap ${CLASS[verdict]}`}>{VERDICTS[verdict]}</td>
		</tr>
	);
}

const HEADS = <><th class="num">A</th><th class="num">B</th><th class="num">{tr('Change')}</th><th>{tr.rich('95 % confidence interval {part}', { part: <span class="usual">{tr('(dashed: no change)')}</span> })}</th><th>{tr('Verdict')}</th></>;

function Head({ c }: { c: Scenario }) {
	return <th scope="rowgroup" rowSpan={Object.keys(c.stats).length} class="scenario anywhere">{c.scenario || <span class="quiet">{tr('no scenario')}</span>}
		<div class="quiet within">{tr('{a_traces} in A, {b_traces} in B', { a_traces: count(c.a_traces), b_traces: count(c.b_traces) })}</div></th>;
}

/** A value of the regression; it has no separate interval. */
const only = (value: number): Interval => ({ value, low: null, high: null });

export function Quantiles({ v }: { v: Versus }) {
	const [max, more] = useMore('scenarios', SHOWN);
	const list = [...v.scenarios].sort((x, y) => Math.min(y.a_traces, y.b_traces) - Math.min(x.a_traces, x.b_traces));
	const both = list.filter((c) => c.a_traces > 0 && c.b_traces > 0);
	const alone = list.filter((c) => !both.includes(c));
	const statsOf = (c: Scenario) => Object.entries(c.stats).map(([name, s]): [string, Stat, Reported | undefined] => {
		const open = reportedOf(v, c.scenario, name);
		return [name, open ? { ...s, a: only(open.before_ns), b: only(open.after_ns), change: { value: open.change, low: open.low, high: open.high } } : s, open];
	});
	const x = axisOf(both.slice(0, max).flatMap((c) => statsOf(c).map(([, s]) => s)));
	return (
		<Folded of="panel" title={tr('Durations')} id="lengths">
			{both.length > 0 && <Cards of="stats" label={tr('Durations')}>
				<thead><tr><th>{tr('Scenario')}</th><th><span class="hidden">{tr('Percentile')}</span></th>{HEADS}</tr></thead>
				{both.slice(0, max).map((c) => <tbody key={c.scenario} data-scenario={c.scenario}>{statsOf(c).map(([name, s, open], i) => <Row key={name} name={name} s={s} x={x} open={open} head={i === 0 && <Head c={c} />} />)}</tbody>)}
			</Cards>}
			{both.length > max && <div class="row"><button class="small" onClick={() => more(max * 4)}>{tr('Show more of {both} scenarios', { both: count(both.length) })}</button></div>}
			{alone.length > 0 && <p class="quiet anywhere">{tr.rich('Only on one side: {alone}{alone2}.', { alone: alone.slice(0, 20).map((c) => `${c.scenario || tr('no scenario')} (${c.a_traces ? tr('{a_traces} in A', { a_traces: count(c.a_traces) }) : tr('{b_traces} in B', { b_traces: count(c.b_traces) })})`).join(', '), alone2: alone.length > 20 && tr(' and more') })}</p>}
			<p class="quiet">{tr('Percentiles are accurate to within {error}. A change is called slower or faster when its interval excludes 0. A change with a link is that of the open regression: the mean change per device class and day, not the change of all traces together.', { error: percent(v.error) })}</p>
		</Folded>
	);
}

/** Open regressions of a method, with the figures of the list of regressions. */
export function ReportedIn({ of }: { of: Reported[] }) {
	return <>{of.map((r) => <a key={r.id} class="up" href={link(`/regressions?open=${encodeURIComponent(r.id)}`)} title={tr('Open regression: the mean change per device class and day')}>{tr('{change} in {scenario}', { change: signed(r.change), scenario: r.scenario || tr('traces without a scenario') })}</a>)}</>;
}

/** Quantiles of one method, in the traces that have it. */
export function OneMethod({ v, params, of, name, descriptor }: { v: Versus; params: Record<string, string | number>; of: string; name: string; descriptor: string }) {
	const load = useLoad(`method ${of} ${name}${descriptor}`, (s) => get<Versus>(WHERE, { ...params, method: name + descriptor, tree: '0', limit: 1 }, s));
	const open = reportedIn(v, name, descriptor);
	const one = load.value?.method;
	if (!load.value || load.error) return <div class="one"><Pending of={load} what={tr('Loading percentiles of the method')} /></div>;
	if (!one) return <p class="quiet">{tr('Neither side has a method with this name.')}</p>;
	return (
		<div class={`one${load.busy ? ' stale' : ''}`} data-one={load.busy ? undefined : one.name}>
			{open.length > 0 && <p class="row">{tr('Open regressions:')} <ReportedIn of={open} /></p>}
			<p>{tr.rich('In {a_share} of A’s traces and {b_share} of B’s{share_margin}. Wall time in a trace that has it:', { a_share: percent(one.a_share), b_share: percent(one.b_share), share_margin: one.share_margin !== null && <span class="quiet">{' '}{tr('(the difference may be {share_margin} more or less)', { share_margin: percent(one.share_margin) })}</span> })}</p>
			<Cards of="stats" label={tr('Durations')}><thead><tr><th><span class="hidden">{tr('Percentile')}</span></th>{HEADS}</tr></thead>
				<tbody>{Object.entries(one.stats).map(([k, s]) => <Row key={k} name={k} s={s} x={axisOf(Object.values(one.stats))} />)}</tbody></Cards>
		</div>
	);
}
