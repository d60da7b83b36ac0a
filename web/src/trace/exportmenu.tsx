// The menu that opens a trace in other tools, and downloads it in their formats.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { api, tools, type Trace } from '../api/api';
import { duration } from '../i18n/format';
import { Choice } from '../ui/parts';
import { firefoxAddress, perfettoAddress, scopeQuery, speedscopeAddress, type PerfettoView, type Scope } from './opening';
import { Blocked } from './perfetto';
import { tr } from '../i18n/strings/trace';

const DOWNLOADS: [kind: string, label: string, more?: Record<string, string>][] = [
	['speedscope', 'speedscope'],
	['firefox', 'Firefox Profiler'],
	['chrome', tr('Chrome trace events')],
	['pprof', 'pprof'],
	['folded', tr('Folded stacks, wall time')],
	['folded', tr('Folded stacks, calls'), { metric: 'count' }],
	['svg', tr('Flame graph as SVG')],
	['d3', tr('Flame graph as JSON')],
	['sqlite', tr('SQLite database')],
	['csv', tr('Methods as CSV')],
];

/** Opens a window during the click, as browsers require, and sets its address later. The window must not access this page. */
async function openLater(address: () => Promise<string>): Promise<void> {
	const w = window.open('', '_blank');
	if (!w) throw new Blocked();
	w.opener = null;
	try {
		w.location.replace(await address());
	} catch (why) {
		w.close();
		throw why;
	}
}

/** An absolute address from which another tool can fetch a file for some minutes. */
async function ticket(id: string, kind: string, query: Record<string, string>): Promise<string> {
	return location.origin + (await api.ticket(id, kind, new URLSearchParams(query).toString())).path;
}

export function ExportMenu({ t, name, view, range, run }: {
	t: Trace; name: string; view: PerfettoView; range: [number, number] | null; run: (what: () => Promise<void>) => void;
}) {
	const box = useRef<HTMLDivElement>(null);
	const { tid } = view;
	const [one, pickOne] = useState(false);
	const [part, pickPart] = useState(range !== null);
	const [sanitize, pickSanitize] = useState(false);
	const [copied, setCopied] = useState('');
	const scope: Scope = { tid: one ? tid : null, range: part ? range : null, sanitize };
	const items = () => [...(box.current?.querySelectorAll<HTMLElement>('button, a') ?? [])];
	useLayoutEffect(() => items()[0]?.focus(), []); // it is loaded after the box opens
	const key = (e: KeyboardEvent) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
		const all = items();
		const at = all.indexOf(document.activeElement as HTMLElement);
		if (step) all[(at + step + all.length) % all.length]?.focus();
		else if (e.key === 'Home') all[0]?.focus();
		else if (e.key === 'End') all.at(-1)?.focus();
		else return;
		e.preventDefault();
		e.stopPropagation();
	};
	const go = (what: () => Promise<void>) => () => run(what);
	const copy = async () => {
		await navigator.clipboard.writeText(perfettoAddress(tools.perfetto, view, await ticket(t.id, 'perfetto', scopeQuery(scope))));
		setCopied(tr('Copied. The link is valid for a few minutes.'));
	};
	return (
		<div class="tools" ref={box} onKeyDown={key}>
			{(tid !== null || range) && <div class="row">
				{tid !== null && <Choice label={tr('Threads')} value={one ? 'one' : 'all'} options={[['all', tr('All threads')], ['one', tr('Thread {tid}', { tid })]]} onPick={(v) => pickOne(v === 'one')} />}
				{range && <Choice label={tr('Time')} value={part ? 'part' : 'all'} options={[['part', tr('Selection, {range}', { range: duration(range[1] - range[0]) })], ['all', tr('Whole trace')]]} onPick={(v) => pickPart(v === 'part')} />}
			</div>}
			<label class="check" title={tr('Without texts of events, counters, reports, device, date, ids and addresses')}><input type="checkbox" checked={sanitize} onChange={(e) => pickSanitize(e.currentTarget.checked)} />{' '}{tr('Without private data')}</label>
			<h2>{tr('Open in')}</h2>
			<button class="item" onClick={go(() => openLater(async () => speedscopeAddress(tools.speedscope, await ticket(t.id, 'speedscope', scopeQuery(scope)), one ? tr('{name}, thread {tid}', { name, tid }) : name)))}>speedscope</button>
			<button class="item" onClick={go(() => openLater(async () => firefoxAddress(tools.firefox, await ticket(t.id, 'firefox', scopeQuery(scope)))))}>Firefox Profiler</button>
			<button class="item" onClick={go(() => openLater(async () => perfettoAddress(tools.perfetto, view, await ticket(t.id, 'perfetto', scopeQuery(scope)))))}>{tr('Perfetto UI (by link)')}</button>
			<button class="item" onClick={go(copy)}>{tr('Copy a link for the Perfetto UI')}</button>
			<output class="quiet">{copied}</output>
			<h2>{tr('Download')}</h2>
			<a class="item" download href={api.perfettoUrl(t.id, scopeQuery(scope))}>Perfetto</a>
			{DOWNLOADS.map(([kind, label, more]) =>
				<a class="item" key={label} download href={api.exportUrl(t.id, kind, scopeQuery(scope, more))}>{label}</a>)}
		</div>
	);
}
