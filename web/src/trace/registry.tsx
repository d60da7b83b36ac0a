// The panels below the timeline, in the order of their tabs. A new one is a file, and a line here and in state/tab.ts.
import type { ComponentProps, ComponentType } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Reports } from '../anr/reports';
import type { NoteSum, Thread, Trace } from '../api/api';
import { wordsOf } from '../api/source';
import { count } from '../i18n/format';
import { tr } from '../i18n/strings/trace';
import { later } from '../ui/later';
import { Choice, Panel } from '../ui/parts';
import { set, text } from '../ui/route';
import { FlamePanel } from './panels/flame';
import { MethodsPanel } from './panels/methods';
import { StepBar, useSteps } from './parts/stepbar';
import { annotations, draft } from './state/annotations';
import type { AnnotationPanel } from './panels/annotationpanel';
import type { CallsPanel } from './panels/calls';
import type { NotesPanel } from './panels/notes';
import type { RangePanel } from './panels/range';
import type { StatesPanel } from './panels/states';
import type { Span } from './state/axis';
import { hasStates } from './state/statelines';
import { format } from './state/steps';
import { nameOfThread } from './parts/threadname';
import type { Range } from './timeline/scene';

/* Panels that are loaded when first shown. */

const callList = later<ComponentProps<typeof CallsPanel>>('calls', async () => (await import('./panels/calls')).CallsPanel, tr('Calls'));

const selected = later<ComponentProps<typeof RangePanel>>('range', async () => (await import('./panels/range')).RangePanel, tr('Selected range'));

const findings = later<{ id: string; threads: Thread[]; start: number; end: number; turn: number }>('findings', async () => (await import('./panels/findingspanel')).FindingsPanel, tr('Findings'));

const anr = later<{ t: Trace; reports: Reports }>('anr', async () => (await import('../anr/anr')).AnrPanel, 'ANR');

const notes = later<ComponentProps<typeof NotesPanel>>('notes', async () => (await import('./panels/notes')).NotesPanel, tr('Events'));

const states = later<ComponentProps<typeof StatesPanel>>('states', async () => (await import('./panels/states')).StatesPanel, tr('Thread states'));

const written = later<ComponentProps<typeof AnnotationPanel>>('annotations', async () => (await import('./panels/annotationpanel')).AnnotationPanel, tr('Annotations'));

const sql = later<{ id: string; threads: Thread[]; whole: Span; turn: number }>('sql', async () => (await import('./panels/sql')).SqlPanel, 'SQL');

const report = later<{ t: Trace }>('report', async () => (await import('./panels/report')).Report, tr('Report'));

/** What panels show: the trace, and the part of it that is selected. */
export interface Shown {
	t: Trace;
	turn: number; // names that are known: a mapping that comes changes every name
	whole: Span;
	threads: Thread[];
	busy: Thread[]; // with calls
	listed: Thread[];
	thread: Thread | null; // the current one
	range: Range | null;
	tids: Set<number> | null; // null: all
	sums: NoteSum[];
	names: string[];
	matches: Uint8Array | null;
	reports: Reports;
	reload: () => void; // annotations
}

export interface PanelKind {
	id: string;
	title: string;
	needs: (s: Shown) => boolean;
	Component: ComponentType<Shown>;
}

/** Numbers with commas. */
export const tidsOf = (list: string) => new Set(list.split(',').filter((v) => /^\d{1,16}$/.test(v)).map(Number));

/** Of which threads a panel is; `standard` without a word in the address. */
function Scope({ busy, thread, standard = 'one' }: Shown & { standard?: string }) {
	const sel = text('sel');
	if (busy.length < 2 || !thread) return null;
	return <Choice label={tr('Threads')} value={text('threads') || standard}
		options={[['one', nameOfThread(thread.tid, [thread])], ...(sel.includes(',') ? [['sel', tr('{text} threads', { text: count(tidsOf(sel).size) })] as [string, string]] : []), ['all', tr('All threads')]]}
		onPick={(v) => set({ threads: v === standard ? null : v, root: null, skip: null })} />;
}

/** Query parameters of the call panels. */
function useCalls(s: Shown) {
	const { t, busy, tids, range, matches, names, turn } = s;
	const chosen = useMemo(() => (tids ? busy.filter((x) => tids.has(x.tid)) : busy), [busy, tids]);
	const times = useMemo<[number, number] | null>(() => (range ? [range.from, range.to] : null), [range?.from, range?.to]);
	const thread = !tids ? 'all' : chosen.map((x) => x.tid).join(',');
	return { none: chosen.length === 0, of: { id: t.id, thread, range: times, names, matches, mappingTurn: turn, scope: <Scope {...s} />, words: wordsOf(chosen), hasCpu: t.has_cpu === true, timed: timed(s) } };
}

function NoCalls(s: Shown & { title: string }) {
	return <Panel title={s.title} aside={<Scope {...s} />}><p class="quiet">{s.tids?.size === 1 && s.thread ? tr('{name} has no calls.', { name: nameOfThread(s.thread.tid, [s.thread]) }) : tr('The selected threads have no calls.')}</p></Panel>;
}

function Merged(s: Shown & { tree: boolean }) {
	const { none, of } = useCalls(s);
	return none ? <NoCalls {...s} title={tr('Merged flame graph')} /> : <FlamePanel {...of} tree={s.tree} />;
}

function Methods(s: Shown) {
	const { none, of } = useCalls(s);
	const transform = format(useSteps(s.names).steps);
	return none ? <NoCalls {...s} title={tr('Methods')} /> : <MethodsPanel {...of} steps={<StepBar names={s.names} />} transform={transform} onFind={(n) => set({ find: n })} />;
}

function Calls(s: Shown) {
	const { none, of } = useCalls(s);
	return none ? <NoCalls {...s} title={tr('Calls')} /> : <callList.Page {...of} threads={s.threads} whole={s.whole} turn={s.turn} />;
}

function Selected(s: Shown) {
	const times = useMemo<[number, number]>(() => [s.range!.from, s.range!.to], [s.range?.from, s.range?.to]);
	return <selected.Page id={s.t.id} range={times} tids={s.tids} threads={s.threads} start={s.whole.from} hasCalls={s.busy.length > 0} turn={s.turn} />;
}

function States(s: Shown) {
	const { of } = useCalls(s);
	return <states.Page id={s.t.id} threads={s.listed} tids={text('threads') ? s.tids : null} range={of.range ?? [s.whole.from, s.whole.to]} scope={<Scope {...s} standard="all" />} />;
}

const calls = (s: Shown) => s.busy.length > 0 && s.thread !== null;
const timed = (s: Shown) => s.t.summary?.timed !== false;

export const PANELS: PanelKind[] = [
	{ id: 'anr', title: 'ANR', needs: (s) => s.reports.length > 0, Component: (s) => <anr.Page t={s.t} reports={s.reports} /> },
	{ id: 'flame', title: tr('Flame graph'), needs: calls, Component: (s) => <Merged {...s} tree={false} /> },
	{ id: 'tree', title: tr('Call tree'), needs: calls, Component: (s) => <Merged {...s} tree /> },
	{ id: 'range', title: tr('Selected range'), needs: (s) => s.range !== null, Component: Selected },
	{ id: 'methods', title: tr('Methods'), needs: calls, Component: Methods },
	{ id: 'calls', title: tr('Calls'), needs: (s) => calls(s) && timed(s), Component: Calls },
	{ id: 'events', title: tr('Events'), needs: (s) => s.sums.length > 0, Component: (s) => <notes.Page id={s.t.id} threads={s.threads} shown={s.thread ?? undefined} tids={s.tids} start={s.whole.from} end={s.whole.to} timed={timed(s)} scope={(standard) => <Scope {...s} busy={s.listed} standard={standard} />} /> },
	{ id: 'states', title: tr('Thread states'), needs: (s) => hasStates(s.sums), Component: States },
	{ id: 'findings', title: tr('Findings'), needs: (s) => s.thread !== null, Component: (s) => <findings.Page id={s.t.id} threads={s.threads} start={s.whole.from} end={s.whole.to} turn={s.turn} /> },
	{ id: 'annotations', title: tr('Annotations'), needs: () => annotations.value.length > 0 || draft.value !== null, Component: (s) => <written.Page id={s.t.id} threads={s.threads} names={s.names} whole={s.whole} again={s.reload} /> },
	{ id: 'sql', title: 'SQL', needs: (s) => s.busy.length > 0, Component: (s) => <sql.Page id={s.t.id} threads={s.threads} whole={s.whole} turn={s.turn} /> },
	{ id: 'report', title: tr('Report'), needs: () => true, Component: (s) => <report.Page t={s.t} /> },
];
