// What can be done with the traces that are picked.
import { useState } from 'preact/hooks';
import { api, call, may, type Trace } from '../api/api';
import { manage } from '../api/manage';
import { count } from '../i18n/format';
import { Failure, useLoad } from '../ui/parts';
import { Dialog, Popover } from '../ui/popover';
import { sidesOf } from '../compare/comparedoc';
import { link } from '../ui/route';
import { tr } from '../i18n/strings/list';
import { loss, nameOf, several } from '../api/traces';

const MERGE_MAX = 16;
const FORMATS: [kind: string, label: string][] = [
	['perfetto', 'Perfetto'], ['speedscope', 'speedscope'], ['firefox', 'Firefox Profiler'], ['chrome', tr('Chrome trace events')], ['pprof', 'pprof'],
	['folded', tr('Folded stacks')], ['svg', tr('Flame graph as SVG')], ['csv', tr('Methods as CSV')], ['raw', tr('Original upload')],
];
const BETWEEN_DOWNLOADS_MS = 300; // browsers drop concurrent downloads

function addressOf(t: Trace, kind: string): string {
	return kind === 'perfetto' ? api.perfettoUrl(t.id) : kind === 'raw' ? api.rawUrl(t.id) : api.exportUrl(t.id, kind, {});
}

function download(href: string): void {
	const a = document.createElement('a');
	a.href = href;
	a.download = '';
	document.body.append(a);
	a.click();
	a.remove();
}

/** One after another; the first failure ends it, and earlier changes remain. */
async function each(list: Trace[], verb: string, show: (s: string) => void, one: (t: Trace) => Promise<unknown>): Promise<void> {
	for (const [i, t] of list.entries()) {
		if (list.length > 1) show(tr('{verb} {i} of {list}', { verb, i: i + 1, list: list.length }));
		try {
			await one(t);
		} catch (why) {
			throw new Error(`${nameOf(t)}: ${(why as Error).message}${i > 0 ? tr.many(i, ' The trace before it is done.', ' The {n} traces before it are done.') : ''}`);
		}
	}
}

function Deletion({ list, close, done }: { list: Trace[]; close: () => void; done: () => void }) {
	const [busy, show] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const remove = () => {
		fail(null);
		show(tr('Deleting'));
		each(list, tr('Deleting'), show, (t) => api.remove(t.id)).then(done, fail).finally(() => show(''));
	};
	return (
		<Dialog title={tr('Delete {list}?', { list: list.length === 1 ? tr('this trace') : several(list.length, 'trace') })} close={close}>
			<ul class="names">{list.slice(0, 8).map((t) => <li key={t.id}>{nameOf(t)} <span class="quiet">{t.meta.device}</span></li>)}
				{list.length > 8 && <li class="quiet">{tr('and {list} more', { list: count(list.length - 8) })}</li>}</ul>
			{loss(list).map((s) => <p key={s}>{s}</p>)}
			{error && <Failure error={error} />}
			<p class="row">
				<button class="danger" disabled={busy !== ''} onClick={remove}>{busy || tr('Delete permanently')}</button>
				<button onClick={close} autofocus>{tr('Keep')}</button>
			</p>
		</Dialog>
	);
}

function Tags({ list, run }: { list: Trace[]; run: (verb: string, one: (t: Trace) => Promise<unknown>) => void }) {
	const [tag, hold] = useState('');
	const known = useLoad('tags', () => manage.facets('tag')).value?.values ?? [];
	const used = [...new Set(list.flatMap((t) => t.tags))].sort();
	const add = (e: Event) => {
		e.preventDefault();
		const one = tag.trim();
		hold('');
		run(tr('Tagging'), (t) => (t.tags.includes(one) ? Promise.resolve() : api.mark(t.id, { add_tags: [one] })));
	};
	return <>
		<form class="row" onSubmit={add}>
			<label class="inline">{tr('Add')}
				<input value={tag} list="known-tags" maxLength={64} autocomplete="off" onInput={(e) => hold(e.currentTarget.value.replaceAll(',', ''))} /></label>
			<datalist id="known-tags">{known.map((v) => <option key={v.value} value={v.value} />)}</datalist>
			<button class="small" disabled={!tag.trim()}>{tr('Tag')}</button>
		</form>
		{used.length > 0 && <div class="row">{used.map((u) => (
			<span class="tag" key={u}>{u}<button class="plain" aria-label={tr('Remove the tag {u}', { u })}
				onClick={() => run(tr('Tagging'), (t) => (t.tags.includes(u) ? api.mark(t.id, { remove_tags: [u] }) : Promise.resolve()))}>×</button></span>))}</div>}
	</>;
}

/** Two traces, the older as A, or those of two versions. */
function Comparing({ list }: { list: Trace[] }) {
	const sides = sidesOf(list);
	const hint = tr('Compares two ready traces, or the traces of two versions (at most 16 each)');
	if (!sides) return <button disabled title={hint}>{tr('Compare')}</button>;
	return <a class="button" title={hint} href={link(`/compare?a=${sides.a.join()}&b=${sides.b.join()}`)}>{tr('Compare')}</a>;
}

export function PickedBar({ list, clear, changed, asking, ask }: {
	list: Trace[]; clear: () => void; changed: () => void; asking: boolean; ask: (on: boolean) => void;
}) {
	const [busy, show] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const ready = list.filter((t) => t.state === 'ready');
	const task = (job: Promise<void>) => {
		fail(null);
		job.catch(fail).finally(() => show(''));
	};
	const run = (verb: string, one: (t: Trace) => Promise<unknown>) => task(each(list, verb, show, one).finally(changed));
	const merge = async () => {
		show(tr('Loading'));
		const to = manage.mergeUrl(ready.map((t) => t.id));
		await call(to, { method: 'HEAD' }).catch(async (why: Error) => {
			await call(to); // a refusal to HEAD has no words
			throw why;
		});
		download(to);
	};
	const save = (kind: string) => task((async () => {
		for (const [i, t] of ready.entries()) {
			if (i > 0) await new Promise((ok) => setTimeout(ok, BETWEEN_DOWNLOADS_MS));
			download(addressOf(t, kind));
		}
	})());
	const all = list.every((t) => t.pinned);
	return (
		<section class="picked" aria-label={tr('Selected traces')}>
			<div class="row">
				<strong role="status">{tr('{list} selected', { list: several(list.length, 'trace') })}</strong>
				{ready.length < list.length && <span class="quiet">{tr('{ready} ready', { ready: count(ready.length) })}</span>}
				<span class="grow" />
				{busy && <span class="quiet" role="status">{busy}</span>}
				<Comparing list={list} />
				<button disabled={ready.length < 2 || ready.length > MERGE_MAX} title={ready.length > MERGE_MAX ? tr('A file can hold at most {merge_max} traces', { merge_max: MERGE_MAX }) : tr('One Perfetto file with all of them on a common time axis')}
					onClick={() => task(merge())}>{tr('Merge into one file')}</button>
				<Popover label={tr('Export')} title={tr('Export')}>{(close) => <>
					{ready.length === 0 && <p class="quiet">{tr('None of them is ready.')}</p>}
					{ready.length > 0 && FORMATS.map(([kind, label]) => <button class="item" key={kind} onClick={() => { close(); save(kind); }}>{label}</button>)}
				</>}</Popover>
				{may.write && <>
					<button onClick={() => run(all ? tr('Unpinning') : tr('Pinning'), (t) => (t.pinned === !all ? Promise.resolve() : api.mark(t.id, { pinned: !all })))}>{all ? tr('Unpin') : tr('Pin')}</button>
					<Popover label={tr('Tags')} title={tr('Tags')}>{() => <Tags list={list} run={run} />}</Popover>
					<button class="danger" onClick={() => ask(true)}>{tr('Delete')}</button>
				</>}
				<button onClick={clear}>{tr('Clear')}</button>
			</div>
			{error && <Failure error={error} />}
			{asking && <Deletion list={list} close={() => { ask(false); changed(); }} done={() => { ask(false); clear(); changed(); }} />}
		</section>
	);
}
