// Calls of two ranges of one trace as a differential flame graph: A is the stored range, B the selected one.
import { useMemo } from 'preact/hooks';
import { api, Refusal, type ComparedTree } from '../api/api';
import { Below, DiffGraph, Focus, Legend, openNode } from './comparegraph';
import { Crumbs } from '../trace/graph/graphparts';
import { change, pairOf, relative } from './comparedoc';
import { duration } from '../i18n/format';
import { tr } from '../i18n/strings/compare';
import { nodesOf } from '../trace/graph/graphparts';
import { afresh, useTable } from '../ui/panelstate';
import { Busy, Choice, Failure, useLoad } from '../ui/parts';
import { number, set, text } from '../ui/route';
import type { Base } from '../trace/state/base';

const NODES_MAX = 200000;

/** Request of a side. */
const part = (side: 'a' | 'b', id: string, { from, to, tids }: Base) =>
	({ [side]: id, [`${side}_from`]: from, [`${side}_to`]: to, [`${side}_thread`]: tids ? [...tids].join(',') : 'all' });

export function RangeGraph({ id, base, here, turn }: { id: string; base: Base; here: Base; turn: number }) {
	const rootText = text('droot');
	const root = useMemo(() => (rootText ? rootText.split('.').map(Number) : []), [rootText]);
	const side = text('dwidth') === 'a' ? 'a' : 'b';
	const [listed, list] = useTable('children');
	const query = { ...part('a', id, base), ...part('b', id, here), focus: text('dfocus'), root: root.join('.'), max_nodes: number('dnodes') };
	const load = useLoad<ComparedTree>(JSON.stringify(query) + turn, (s) => api.compare(query, s));
	const go = (to: number[]) => set({ droot: to.join('.'), dnodes: null, ...afresh() }, true);
	const focus = (name: string) => set({ dfocus: name || null, droot: null, dnodes: null, ...afresh() }, true);
	const c = load.value;
	const gone = load.error instanceof Refusal && load.error.status === 404 && (root.length > 0 || text('dfocus') !== '');
	if (gone) return <div class="notice"><strong>{tr('This path does not exist here.')}</strong><p>{tr('Neither range has a call on this path.')}</p><button onClick={() => focus('')}>{tr('Show the whole comparison')}</button></div>;
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	if (!c) return <Busy what={tr('Comparing')} retry={load.again} />;
	const all = pairOf(c, 0, 'ns');
	const more = () => set({ dnodes: Math.min(NODES_MAX, c.shown_nodes * 4) }, true);
	return <div class={load.busy ? 'stale' : ''} data-diff={load.busy ? undefined : side}>
		<div class="row">
			<span role="status">{tr('Calls: {a} before, {b} now', { a: duration(all.a), b: duration(all.b) })}{all.a !== all.b && ` (${[change(all), relative(all)].filter(Boolean).join(', ')})`}</span>
			<span class="grow" />
			<Choice label={tr('Widths')} value={side} options={[['b', tr('As B, the selected range')], ['a', tr('As A, with removed calls')]]} onPick={(v) => set({ dwidth: v === 'a' ? v : null }, true)} />
		</div>
		<Focus name={text('dfocus')} of={focus} />
		<Crumbs names={(m) => c.names.find((n) => n.method === m)?.name} path={root} go={go} />
		<Legend />
		{all[side] === 0 ? <p class="quiet">{side === 'b' ? tr('B does not call this. Choose the widths of A to see it.') : tr('A does not call this. Choose the widths of B to see it.')}</p>
			: <DiffGraph c={c} side={side} root={root} go={go} more={more} focus={focus} find={(find) => set({ find })} />}
		<div class="row under">
			<span class="quiet">{nodesOf(c)}</span>
			<span class="grow" />
			<button class="small" aria-expanded={listed} onClick={list}>{listed ? tr('Hide the table') : tr('Children as a table')}</button>
		</div>
		{listed && <Below key={rootText} c={c} open={(node) => openNode(c, node, root, go, more)} />}
	</div>;
}
