// Compares two sides of the fleet: versions, filters or single traces.  The selection is in the address.
import { useEffect } from 'preact/hooks';
import { get, may, Refusal, url, type ComparedTree } from '../api/api';
import { sentence, withoutParameters } from '../i18n/format';
import { ended, serverText } from '../i18n/servertext';
import { LinkCheck } from '../trace/state/linkcheck';
import { Page } from '../ui/page';
import { Busy, Failure, useLoad } from '../ui/parts';
import { link, number, set, text } from '../ui/route';
import { SourceBox } from '../source/sourcelater';
import { tr } from '../i18n/strings/versus';
import { QUERY_PARAMS, daysOf, isSingleTrace, named, paramsOf, SIDES, swapped, treeOf, WHERE, type FleetTree, type Reported, type Versus } from './versusdoc';
import { rootOf } from './comparegraph';
import { VersusGraph } from './versusgraph';
import { MixCard, OneMethod, Quantiles, SideCard } from './versusnumbers';
import { compareWith, Picker, useSuggestion, useValues } from './versuspick';
import { METHODS_MAX, ONLY, VersusTable } from './versustable';

const DAYS_MAX = 400;

type Params = Record<string, string | number>;

const startOver = () => compareWith({ ...Object.fromEntries(QUERY_PARAMS.map((name) => [name, null])), method: null });

function Nothing({ none, only }: { none: boolean; only: string | undefined }) {
	return (
		<div class="notice">
			<strong>{none ? tr('No traces to compare yet.') : only ? tr('Only {only} has traces in the last {days} days.', { only, days: daysOf(text('days')) }) : tr('Choose A and B.')}</strong>
			<p>{only && `${tr('Send traces of another version, or choose other sides above.')} `}{!none ? tr('Each side is a version, a scenario, a device class, a range of days, or one trace. Filters common to both are set once.')
				: may.write ? tr.rich('Drop trace files of two versions anywhere on this page, or {link}.', { link: <a href={link('/')}>{tr('send them from devices')}</a> })
				: tr('Two versions can be compared here once their traces are decoded.')}</p>
		</div>
	);
}

/** The server's error, and its remedies. */
function Refused({ error, retry }: { error: Error; retry: () => void }) {
	const status = error instanceof Refusal ? error.status : 0;
	const alone = SIDES.filter((s) => text(s).startsWith('trace:'));
	if (status !== 400 && status !== 404 && status !== 409) return <Failure error={error} retry={retry} title={tr('These traces cannot be compared.')} />;
	return (
		<div class="notice bad" role="alert">
			<strong>{status === 404 ? tr('Trace not found') : tr('These traces cannot be compared.')}</strong>
			<p class="anywhere">{status === 404 ? tr('It was deleted, belongs to another project, or its id is incomplete.') : ended(sentence(error.message))}</p>
			<p class="row">{alone.map((s) => <button key={s} onClick={() => compareWith({ [s]: null })}>{tr('Remove the trace from {toUpperCase}', { toUpperCase: s.toUpperCase() })}</button>)}
				<button onClick={startOver}>{tr('Start over')}</button><button onClick={retry}>{tr('Try again')}</button></p>
		</div>
	);
}

function Empty({ v }: { v: Versus }) {
	const days = daysOf(text('days'));
	const filters = ['app', 'scenario', 'class', 'os'].filter((w) => text(w));
	const common = v.a.traces > 0 && v.b.traces > 0;
	return (
		<div class="notice warn">
			<strong>{tr('Nothing can be compared.')}</strong>
			<p>{tr('{common} Choose others above, or:', { common: common ? tr('Both sides have traces, but no device class is on both.') : tr('One side has no traces.') })}</p>
			<p class="row">
				{days < DAYS_MAX && <button onClick={() => compareWith({ days: DAYS_MAX })}>{tr('Use {days_max} days', { days_max: DAYS_MAX })}</button>}
				{filters.length > 0 && <button onClick={() => compareWith(Object.fromEntries(filters.map((w) => [w, null])))}>{tr('Clear the common filters')}</button>}
				{common && text('mix') !== 'none' && <button onClick={() => compareWith({ mix: 'none' })}>{tr('Compare without device correction')}</button>}
				<button onClick={startOver}>{tr('Start over')}</button>
			</p>
		</div>
	);
}

/** The version of a side, '' if it is not a version. */
function versionOf(side: 'a' | 'b'): string {
	const own = text(`${side}.version_name`) || text(side);
	return own.includes(':') ? '' : own;
}

function useTree(params: Params | null, key: string) {
	const root = rootOf(text('root')).join('.');
	const own = { thread: text('thread'), frames: text('frames') === 'app' ? 'app' : '', focus: text('focus'), root, max_nodes: number('nodes') };
	return useLoad<ComparedTree | null>(`tree ${key} ${JSON.stringify(own)}`, async (s) =>
		(params ? treeOf((await get<{ tree: FleetTree }>(WHERE, { ...params, ...own, limit: 1 }, s)).tree) : null));
}

/** Open regressions from version A to version B. Empty if other filters are set: a regression covers all traces of a version. */
async function reported(params: Params, s: AbortSignal): Promise<Reported[]> {
	const [base, head] = SIDES.map(versionOf);
	const { app = '', scenario = '', since: _, a: _a, b: _b, ...others } = params;
	if (!base || !head || Object.keys(others).length > 0) return [];
	const { regressions } = await get<{ regressions: Reported[] }>('/api/v1/regressions', { status: 'live', app, scenario, version_name: head, limit: 1000 }, s);
	return regressions.filter((r) => r.base === base && r.head === head && r.kind === 'slower');
}

function useNumbers(params: Params | null, key: string) {
	const own = { only: ONLY.some(([k]) => k === text('only')) ? text('only') : '' };
	return useLoad<Versus | null>(`numbers ${key} ${JSON.stringify(own)}`, async (s) => {
		if (!params) return null;
		const [v, open] = await Promise.all([get<Omit<Versus, 'reported'>>(WHERE, { ...params, ...own, tree: '0', limit: METHODS_MAX }, s), reported(params, s)]);
		return { ...named(v), reported: open };
	});
}

function Body({ params, of }: { params: Params; of: string }) {
	const load = useNumbers(params, of);
	const tree = useTree(params, of);
	const v = load.value;
	if (load.error) return <Refused error={load.error} retry={load.again} />;
	if (!v) return <Busy what={tr('Comparing')} />;
	return (
		<div class={`versus${load.busy ? ' stale' : ''}`} data-versus={load.busy ? undefined : '1'}>
			<p class="verdict" role="status">{serverText(v.summary)}</p>
			<div class="sides"><SideCard v={v} side="a" /><SideCard v={v} side="b" />{v.comparable && !isSingleTrace(v) && <MixCard v={v} />}</div>
			{!v.comparable && <Empty v={v} />}
			{v.comparable && <>
				{!isSingleTrace(v) && <Quantiles v={v} />}
				<VersusTable v={v} busy={load.busy} detail={(name, descriptor) => <><OneMethod v={v} params={params} of={of} name={name} descriptor={descriptor} /><SourceBox method={name} app={text('app')} base={versionOf('a')} head={versionOf('b')} /></>} />
				<VersusGraph tree={tree as Parameters<typeof VersusGraph>[0]['tree']} />
			</>}
		</div>
	);
}

function Links({ params }: { params: Params }) {
	const other = () => compareWith(swapped(text));
	return <>
		<button onClick={other}>{tr('Swap A and B')}</button>
		<a class="button" href={url(WHERE, { ...params, method: withoutParameters(text('method')), format: 'markdown' })}>Markdown</a>
		<a class="button" href={url(WHERE, { ...params, method: withoutParameters(text('method')) })}>JSON</a>
		<button onClick={startOver}>{tr('Start over')}</button>
	</>;
}

export function VersusPage() {
	for (const name of QUERY_PARAMS) text(name); // the address's names, known from now on
	const values = useValues();
	const params = paramsOf(text, Date.now());
	const of = JSON.stringify(params);
	const { sides, versions, only, busy } = useSuggestion(values, !params);
	const needed = !params && !sides && !busy;
	useEffect(() => {
		if (sides) set({ ...sides, app: sides.app || null });
	}, [sides?.a, sides?.b]);
	return (
		<Page title={tr('Compare')} of="wide" head={<><span class="grow" />{params && <Links params={params} />}</>}>
			<LinkCheck />
			{!(values.none && needed) && <Picker values={values} needed={needed} />}
			{params ? <Body params={params} of={of} /> : needed ? <>{versions.error && <Failure error={versions.error} retry={versions.again} title={tr('The versions could not be loaded.')} />}<Nothing none={values.none} only={only} /></> : <Busy what={tr('Comparing')} />}
		</Page>
	);
}
