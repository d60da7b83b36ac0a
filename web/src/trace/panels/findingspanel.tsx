// Findings of the trace that is open: a click shows the call in the timeline.
import { get, named, type Thread } from '../../api/api';
import type { Findings } from './findings';
import { FindingsView, type Spot } from './findingsview';
import { around } from '../state/notekinds';
import { openAlso } from '../state/opened';
import { atTimeline } from '../state/tab';
import { Panel, Pending, useLoad } from '../../ui/parts';
import { link, set, text } from '../../ui/route';
import { tr } from '../../i18n/strings/trace';

/** The address that selects a range and shows it with its surroundings. */
export function spotOf(s: Spot, end: number, open: string, tids: Set<number>, start = 0): Record<string, string | number | null> {
	const [from, to] = around({ ts_ns: s.start_ns, dur_ns: s.dur_ns }, end, start);
	return { ...(s.tid !== null && tids.has(s.tid) ? { thread: s.tid, open: openAlso(open, s.tid) } : {}), from, to, a: s.start_ns, b: s.start_ns + Math.max(1, s.dur_ns) };
}

const distinctly = (id: string, f: Findings): Findings =>
	({ ...f, findings: f.findings.map((x) => ({ ...x, call: x.call && named(id, x.call), caller: x.caller && named(id, x.caller) })) });

export function FindingsPanel({ id, threads, start, end, turn }: { id: string; threads: Thread[]; start: number; end: number; turn: number }) {
	const load = useLoad(`${id} ${turn}`, async (s) => distinctly(id, await get<Findings>(`/api/v1/traces/${id}/findings`, {}, s)));
	const tids = new Set(threads.filter((t) => t.slices > 0).map((t) => t.tid));
	const show = (s: Spot) => set({ ...spotOf(s, end, text('open'), tids, start), ...atTimeline() }, true);
	return (
		<Panel title={tr('Findings')} id="findings" aside={<a href={link(`/detectors?trace=${id}`)}>{tr('Detectors')}</a>}>
			<Pending of={load} what={tr('Running detectors')} />
			{load.value && <FindingsView f={load.value} from={start} show={show} threads={threads} />}
		</Panel>
	);
}
