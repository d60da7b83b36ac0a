// Time in each state, by thread: scheduler states and lock waits in the selected range.
import { useMemo } from 'preact/hooks';
import { api, type Thread } from '../../api/api';
import { duration, percent } from '../../i18n/format';
import { kindTitle } from '../state/notekinds';
import { Cards } from '../../ui/cards';
import { Busy, Copy, Failure, Panel, useLoad } from '../../ui/parts';
import { linesOf, STATE_NAMES, STATES, WAITS, type Line } from '../state/statelines';
import { tr } from '../../i18n/strings/trace';
import { ThreadName } from '../parts/threadname';

function Bar({ line, most }: { line: Line; most: number }) {
	return <div class="statebar" aria-hidden="true">{line.states.map((v, i) => v > 0 &&
		<span key={i} style={{ width: `${(100 * v) / most}%`, background: `var(--state-${STATES[i]})` }} />)}</div>;
}

/** Columns that some thread has something in. */
const used = (lines: Line[], of: 'states' | 'waits', names: string[]) => names.map((_, i) => i).filter((i) => lines.some((l) => l[of][i] > 0));

function Table({ lines }: { lines: Line[] }) {
	const states = used(lines, 'states', STATES);
	const waits = used(lines, 'waits', WAITS);
	const most = Math.max(1, ...lines.map((l) => l.known));
	return (
		<Cards of="states">
			<thead><tr><th>{tr('Thread')}</th>{states.length > 0 && <th class="wide">{tr('Share of the time')}</th>}
				{states.map((i) => <th key={i} class="num"><i class="swatch" style={{ background: `var(--state-${STATES[i]})` }} />{STATE_NAMES[i]}</th>)}
				{waits.map((i) => <th key={i} class="num">{kindTitle(WAITS[i])}</th>)}</tr></thead>
			<tbody>{lines.map((l) => (
				<tr key={l.thread.thread_id}>
					<th scope="row"><ThreadName {...l.thread} /></th>
					{states.length > 0 && <td class="plot"><Bar line={l} most={most} /></td>}
					{states.map((i) => <td key={i} class="num" title={l.known ? percent(l.states[i] / l.known) : ''}>{l.states[i] > 0 ? duration(l.states[i]) : ''}</td>)}
					{waits.map((i) => <td key={i} class="num">{l.waits[i] > 0 ? duration(l.waits[i]) : ''}</td>)}
				</tr>))}</tbody>
		</Cards>
	);
}

function tsv(lines: Line[]): string {
	return [['thread', 'tid', ...STATES.map((s) => `${s}_ns`), ...WAITS.map((w) => `${w}_ns`)].join('\t'),
		...lines.map((l) => [l.thread.name, l.thread.tid, ...l.states, ...l.waits].join('\t'))].join('\n');
}

export function StatesPanel({ id, threads, tids, range, scope }: {
	id: string; threads: Thread[]; tids: Set<number> | null; range: [number, number]; scope: preact.ComponentChild;
}) {
	const chosen = useMemo(() => (tids ? threads.filter((t) => tids.has(t.tid)) : threads), [threads, tids]);
	const load = useLoad(JSON.stringify([id, range]), (s) => api.noteSums(id, { from: range[0], to: range[1] }, s));
	const of = load.value?.sums;
	const lines = useMemo(() => linesOf(of ?? [], chosen), [of, chosen]);
	return (
		<Panel title={tr('Thread states')} aside={<>{scope}{lines.length > 0 && <Copy text={tsv(lines)} label={tr('Copy as TSV')} />}</>}>
			{load.error && <Failure error={load.error} retry={load.again} />}
			{!of && !load.error && <Busy what={tr('Summing')} retry={load.again} />}
			{of && lines.length === 0 && <p class="quiet">{tr('The trace has no data for {chosen} here.', { chosen: chosen.length === 1 ? tr('this thread') : tr('these threads') })}</p>}
			{lines.length > 0 && <div class={load.busy ? 'stale' : ''}><Table lines={lines} /></div>}
			{load.value?.partial && <p class="quiet">{tr('Incomplete: the time limit was reached.')}</p>}
		</Panel>
	);
}
