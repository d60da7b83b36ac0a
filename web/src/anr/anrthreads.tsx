// All threads of a dump: by state, by words, each with its stack.
import { useMemo } from 'preact/hooks';
import { order, shows, stackText, stateOf, statesOf, threadName, type AnrProcess } from './anrdoc';
import { Method, Stack } from './anrparts';
import { count, duration } from '../i18n/format';
import { openAlso } from '../trace/state/opened';
import { Cards } from '../ui/cards';
import { Copy } from '../ui/parts';
import { number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/anr';

const ROWS = 40;

function Row({ p, i, open, timed }: { p: AnrProcess; i: number; open: boolean; timed: boolean }) {
	const t = p.threads[i];
	const holder = t.wants && t.wants.holder !== null ? threadName(p.threads[t.wants.holder]) : '';
	return <>
		<tr id={`anr-thread-${i}`}>
			<td><button class="plain" aria-expanded={open} onClick={() => set({ stack: open ? null : i })}>{threadName(t)}</button>
				{i === p.main && <em class="tag">{tr('main')}</em>}{t.daemon && <span class="quiet">{' '}{tr('daemon')}</span>}</td>
			<td class="num quiet">{t.sys_tid ?? ''}</td>
			<td><span class={`state ${t.wants ? 'loss' : ''}`}>{stateOf(t)}</span></td>
			<td>{t.held.map((l) => <div key={l.id} class="mono">{l.type ?? tr('unknown')} <span class="quiet">{l.id}</span></div>)}
				{(t.victims ?? 0) > 0 && <span class="badtext">{tr.many(t.victims!, 'blocks {n} thread', 'blocks {n} threads')}</span>}</td>
			<td>{t.wants && <><span class="mono">{t.wants.type ?? tr('unknown')} <span class="quiet">{t.wants.id}</span></span>{holder && <div>{tr('held by {holder}', { holder })}</div>}</>}</td>
			<td>{t.top ? <Method f={t.top} track={t.track} /> : <span class="quiet">{t.channel ? tr('kernel: {channel}', { channel: t.channel }) : tr('no stack')}</span>}</td>
		</tr>
		{open && <tr class="opened"><td colSpan={6}>
			<p class="row"><Copy text={stackText(t)} label={tr('Copy the stack')} />
				{t.frames.length > 0 && <button class="small" onClick={() => set({ thread: t.track, open: openAlso(text('open'), t.track), from: null, to: null, a: null, b: null, root: null, row: null, ...(!timed && { tab: 'flame', threads: null }) }, true)}>{timed ? tr('Show in the chart') : tr('Show in the flame graph')}</button>}
				{t.run_ns !== undefined && <span class="quiet">{tr('{run_ns} on a CPU, {queue_ns} waiting for one in total', { run_ns: duration(t.run_ns), queue_ns: duration(t.queue_ns ?? 0) })}</span>}</p>
			<Stack t={t} /></td></tr>}
	</>;
}

/** How many threads are in each state; a click shows these. */
function States({ p, chosen }: { p: AnrProcess; chosen: string }) {
	const states = useMemo(() => statesOf(p), [p]);
	if (states.length < 2) return null;
	const pick = (state: string | null) => set({ anrstate: state, anrrows: null });
	return (
		<div class="row chips" role="group" aria-label={tr('States')}>
			<button class="small" aria-pressed={!chosen} onClick={() => pick(null)}>{tr('All {threads}', { threads: count(p.threads.length) })}</button>
			{states.map(([state, n]) => <button key={state} class="small" aria-pressed={state === chosen} onClick={() => pick(state === chosen ? null : state)}>{state} {count(n)}</button>)}
		</div>
	);
}

export function Threads({ p, timed }: { p: AnrProcess; timed: boolean }) {
	const filter = text('anr');
	const requested = text('anrstate');
	const open = number('stack');
	const limit = Math.max(ROWS, number('anrrows') ?? ROWS);
	const all = useMemo(() => order(p), [p]);
	const state = p.threads.some((t) => stateOf(t) === requested) ? requested : ''; // another process may have none in it
	const found = useMemo(() => all.filter((i) => (!state || stateOf(p.threads[i]) === state) && shows(p.threads[i], filter)), [all, state, filter]);
	if (p.threads.length === 0) return null;
	return (
		<section aria-label={tr('Threads in the dump')}>
			<div class="row"><h3>{tr('Threads in the dump')}</h3><span class="quiet">{filter || state ? tr('{found} of ', { found: count(found.length) }) : ''}{count(p.threads.length)}
				{p.threads_left_out > 0 ? tr(', {threads_left_out} more omitted', { threads_left_out: count(p.threads_left_out) }) : ''}</span>
				<States p={p} chosen={state} /><span class="grow" />
				<label class="inline">{tr('Filter')}<input type="search" size={28} value={filter} placeholder={tr('name, state, class or method')} onInput={(e) => set({ anr: e.currentTarget.value, anrrows: null })} /></label></div>
			{found.length === 0 ? <p class="quiet">{tr('No thread{state} has this text in its name, state, locks or stack.', { state: state ? tr(' that is {state}', { state }) : '' })}</p>
				: <Cards of="anrthreads" label={tr('Threads in the dump')}>
					<thead><tr><th>{tr('Thread')}</th><th class="num">{tr('Id')}</th><th>{tr('State')}</th><th>{tr('Holds')}</th><th>{tr('Waits for')}</th><th>{tr('Top frame')}</th></tr></thead>
					<tbody>{found.slice(0, limit).map((i) => <Row key={i} p={p} i={i} open={open === i} timed={timed} />)}</tbody>
				</Cards>}
			{found.length > limit && <p><button class="small" onClick={() => set({ anrrows: p.threads.length })}>{tr('Show all {found}', { found: count(found.length) })}</button></p>}
		</section>
	);
}
