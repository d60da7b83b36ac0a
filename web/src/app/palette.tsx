// Search results while typing: methods, traces, builds, ANR groups, regressions and pages, selected by keys.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { get, type Session } from '../api/api';
import type { ComponentChildren } from 'preact';
import { when } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { tr } from '../i18n/strings/search';
import { MethodName, useLoad } from '../ui/parts';
import { go, link, path } from '../ui/route';
import type { Early } from './find';
import { traceOf, PLACES, allowed } from './pages';
import { searchTerm } from './pasted';

const TYPING_MS = 120;

interface Found {
	methods: { name: string; raw: string }[]; methods_are_similar: boolean;
	traces: { id: string; title: string; app: string; version_name: string; scenario: string; device: string; created_ms: number }[]; traces_total: number; traces_total_is_capped: boolean;
	builds: { build_id: string; app: string; version_name: string; traces: number }[];
	anrs: { key: string; kind: string; name: string; title: string; count: number }[];
	regressions: { id: string; method: string; scenario: string; head: string; status: string }[];
	partial: boolean;
}

interface Option { to: string; shown: ComponentChildren; aside?: string }
interface Group { title: string; options: Option[]; exact?: boolean } // `exact`: an exact match: listed first

/** An address with names in its query. */
const at = (to: string, q: Record<string, string>) => link(`${to}?${new URLSearchParams(q)}`);

function groupsOf(v: Found | null, asked: string, s: Session): Group[] {
	const word = asked.toLowerCase();
	const is = (name: string) => name.toLowerCase() === word;
	const pages = PLACES.filter((p) => p.label && allowed(p, s) && p.label.toLowerCase().includes(word));
	const exact = pages.some((p) => p.label!.toLowerCase().startsWith(word)) && (!v || v.methods_are_similar || v.methods.length === 0);
	const groups: Group[] = [{ title: tr('Pages'), exact, options: pages.map((p) => ({ to: link(p.at), shown: p.label })) }];
	if (v) {
		const methods = v.methods.map((m) => ({ to: at('/fleet/methods', { method: m.name }), shown: <MethodName name={m.name} />, aside: m.raw }));
		groups.unshift(
			{ title: tr('Methods'), options: v.methods_are_similar ? [] : methods },
			{ title: tr('Traces'), options: [...(asked.indexOf('=') > 0 ? [{ to: at('/traces', { label: asked }), shown: tr('Traces with the label {label}', { label: asked }) }] : []), ...v.traces.map((t) => ({ to: link(`/traces/${t.id}`), shown: t.title || [t.app, t.version_name, t.scenario].filter(Boolean).join(' ') || t.id, aside: `${[t.device, when(t.created_ms)].filter(Boolean).join(' · ')}` })),
				...(v.traces_total > v.traces.length ? [{ to: at('/traces', { q: asked }), shown: v.traces_total_is_capped ? tr('All traces') : tr.many(v.traces_total, 'All traces', 'All {n} traces') }] : [])] },
			{ title: tr('ANR groups'), options: v.anrs.map((g) => ({ to: link(`/anrs/${g.key}`), shown: g.name || serverText(g.title), aside: tr.many(g.count, '{n} report', '{n} reports') })) },
			{ title: tr('Regressions'), options: v.regressions.map((r) => ({ to: at('/regressions', { open: r.id, status: 'all' }), shown: r.method ? <MethodName name={r.method} /> : r.scenario, aside: r.head })) },
			{ title: tr('Builds'), exact: v.builds.some((b) => is(b.build_id) || is(b.version_name)), options: v.builds.map((b) => ({ to: at('/traces', { build_id: b.build_id }), shown: b.build_id, aside: [b.app, b.version_name].filter(Boolean).join(' ') })) });
		if (v.methods_are_similar) groups.push({ title: tr('Similar methods'), options: methods }); // after all that has the text itself
		groups.push({ title: tr('Calls'), options: [{ to: at('/search', { method: asked }), shown: tr('Calls of {name} by duration', { name: asked }) }] });
	}
	return groups.filter((g) => g.options.length > 0).sort((a, b) => Number(b.exact ?? false) - Number(a.exact ?? false));
}

/** The typed text, after a pause. */
function useSettled(value: string): string {
	const [settled, settle] = useState(value);
	useEffect(() => {
		const timer = setTimeout(() => settle(value), TYPING_MS);
		return () => clearTimeout(timer);
	}, [value]);
	return settled;
}

export function Palette({ s, early, close }: { s: Session; early: Early; close: () => void }) {
	const box = useRef<HTMLDialogElement>(null);
	const [value, hold] = useState(early.text);
	const asked = useSettled(searchTerm(value));
	const load = useLoad(`find ${asked}`, (signal) => (asked ? get<Found>('/api/v1/search', { q: asked, limit: 6 }, signal) : Promise.resolve(null)));
	const groups = groupsOf(load.value, asked, s);
	const options = groups.flatMap((g) => g.options);
	const [picked, pick] = useState(0);
	const here = Math.min(picked, options.length - 1);
	useLayoutEffect(() => pick(0), [load.value]);
	useLayoutEffect(() => {
		const before = document.activeElement as HTMLElement | null;
		box.current?.showModal();
		return () => before?.focus({ preventScroll: true });
	}, []);
	useEffect(() => document.getElementById(`found-${here}`)?.scrollIntoView({ block: 'nearest' }), [here, load.value]);
	const open = (o: Option | undefined) => {
		if (!o) return;
		close();
		go(o.to);
	};
	useEffect(() => {
		if (!early.enter || load.busy || asked !== searchTerm(value)) return;
		early.enter = false;
		open(options[here]);
	}, [load.busy, asked]);
	const key = (e: KeyboardEvent) => {
		const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
		if (step && options.length > 0) pick((here + step + options.length) % options.length);
		else if (e.key === 'Enter' && asked === searchTerm(value) && !load.busy) open(options[here]);
		else if (e.key === 'Enter') early.enter = true; // opens the first one once it is found
		else return;
		e.preventDefault();
	};
	let n = 0;
	return (
		<dialog ref={box} class="palette" aria-label={tr('Search')} onCancel={(e) => { e.preventDefault(); close(); }} onClick={(e) => e.target === box.current && close()}>
			<input type="text" class="mono" role="combobox" aria-expanded={options.length > 0} aria-controls="found" aria-activedescendant={options.length > 0 ? `found-${here}` : undefined} aria-autocomplete="list"
				aria-label={tr('Search methods, traces, builds, ANRs')} placeholder={tr('Search methods, traces, builds, ANRs')} maxLength={200} autocomplete="off" spellcheck={false} autofocus
				value={value} onInput={(e) => { early.enter = false; hold(e.currentTarget.value); }} onKeyDown={key} />
			<div id="found" role="listbox" aria-label={tr('Results')} aria-busy={load.busy}>
				{groups.map((g) => (
					<div key={g.title} role="group" aria-label={g.title}>
						<p class="quiet" aria-hidden="true">{g.title}</p>
						{g.options.map((o) => {
							const mine = n++;
							return <a key={o.to} id={`found-${mine}`} role="option" aria-selected={mine === here} tabIndex={-1} href={o.to} onPointerMove={() => mine !== here && pick(mine)} onClick={close}>
								<span class="shown">{o.shown}</span>{o.aside && <span class="quiet">{o.aside}</span>}</a>;
						})}
					</div>))}
			</div>
			<p class="quiet hint" role="status">{load.error ? load.error.message : load.value?.partial ? tr('Not all names could be searched in time.') : asked && !load.busy && load.value && options.length === 1 ? tr('No matches.') : load.value?.methods_are_similar ? tr('No method has this name. Similar names are shown.') : traceOf(path.value) ? tr('In this trace only: close this and press /.') : tr('↑ ↓ and Enter open. Words are combined; * stands for any text.')}</p>
		</dialog>
	);
}
