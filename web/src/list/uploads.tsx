// Sending files from the page: how they are chosen, and how far each of them is.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refusal } from '../api/api';
import { manage } from '../api/manage';
import { bytes, COMMA, count, sentence } from '../i18n/format';
import { ended } from '../i18n/servertext';
import { tr } from '../i18n/strings/uploads';
import { Dialog } from '../ui/popover';
import { useLoad } from '../ui/parts';
import { path } from '../ui/route';
import { addressOf, dismiss, dismissEnded, isBusy, mayRetry, nameBuild, retry, take } from './upload';
import { details, uploads, type Details, type Upload } from './uploadstate';

export { take };

/** A button that opens the browser's choice of files. */
export function Choose({ primary, done }: { primary?: boolean; done?: () => void }) {
	const input = useRef<HTMLInputElement>(null);
	const chosen = () => {
		const files = [...(input.current?.files ?? [])];
		if (input.current) input.current.value = '';
		if (files.length > 0) void take(files.map((file) => ({ file, folder: '' })));
		if (files.length > 0) done?.();
	};
	return <>
		<input ref={input} type="file" multiple class="hidden" tabIndex={-1} aria-label={tr('Files to upload')} onChange={chosen} />
		<button class={primary ? 'primary' : ''} onClick={() => input.current?.click()}>{tr('Choose files')}</button>
	</>;
}

/** The drop area; files can be dropped anywhere on the page. */
export function DropZone({ done }: { done?: () => void }) {
	return (
		<div class="dropzone">
			<strong>{tr('Drop trace files anywhere on this page')}</strong>
			<p class="quiet">{tr('Any format tracewell reads, plain or compressed, several at once. A mapping dropped with its traces names their methods, a .so file native frames.')}</p>
			<Choose primary done={done} />
		</div>
	);
}

const FIELDS: [keyof Details, string][] = [['app', tr('App')], ['version_name', tr('Version')], ['scenario', tr('Scenario')], ['device', tr('Device')], ['build_id', tr('Build')]];

export function UploadDialog({ close, details: open }: { close: () => void; details?: boolean }) {
	useEffect(() => {
		const dropped = (e: DragEvent) => e.dataTransfer?.types.includes('Files') && close();
		addEventListener('drop', dropped); // the first ready trace is opened, and the dialog would cover it
		return () => removeEventListener('drop', dropped);
	}, []);
	const change = (name: keyof Details, value: string) => (details.value = { ...details.value, [name]: value.trim() });
	return (
		<Dialog title={tr('Upload traces')} close={close}>
			<DropZone done={close} />
			<details open={open}>
				<summary>{tr('Details for these files')}</summary>
				<form class="fields" onSubmit={(e) => e.preventDefault()}>
					{FIELDS.map(([name, label]) => <label key={name}>{label}<input value={details.value[name]} maxLength={200} autocomplete="off" onInput={(e) => change(name, e.currentTarget.value)} /></label>)}
				</form>
				<p class="quiet">{tr('Comparisons and regressions need app, version and scenario. They apply to all files sent from this window.')}</p>
			</details>
			<p class="row"><button onClick={close}>{tr('Close')}</button></p>
		</Dialog>
	);
}

/** What to do about a refusal, by its status; the server cannot know that the file was dropped on a page. */
const REMEDIES: Record<number, string> = {
	403: tr('Ask an admin for the editor role.'),
	413: tr('Compress the file (gzip or zstd), or ask the operator to raise --max-body.'),
	415: tr('Choose a recording, a mapping or a .so file; the guide "Formats" lists all supported formats.'),
	507: tr('Ask the operator to free disk space.'),
};
const remedyOf = (why: Error): string => (why instanceof Refusal ? REMEDIES[why.status] ?? '' : '');

/** Prompts for the build of a mapping if it is unknown. */
function NameBuild({ u }: { u: Upload }) {
	const builds = useLoad('builds to name', () => manage.builds('')).value?.builds ?? [];
	const [build, hold] = useState('');
	return (
		<form class="row" onSubmit={(e) => { e.preventDefault(); if (build.trim()) nameBuild(u.id, build.trim()); }}>
			<label class="inline">{tr('Build')}<input value={build} list={`builds-${u.id}`} maxLength={200} autocomplete="off" onInput={(e) => hold(e.currentTarget.value)} /></label>
			<datalist id={`builds-${u.id}`}>{builds.map((b) => <option key={b.build_id} value={b.build_id} />)}</datalist>
			<button class="small" disabled={!build.trim()}>{tr('Send')}</button>
		</form>
	);
}

function stageOf(u: Upload): string {
	if (u.stage === 'waiting') return tr('Waiting');
	if (u.stage === 'sending') return u.sent < 1 ? tr('Uploading, {percent} %', { percent: Math.floor(100 * u.sent) }) : tr('Storing');
	if (u.stage === 'decoding') return u.kind === 'trace' ? tr('Decoding') : u.kind === 'symbols' ? tr('Reading the symbols') : tr('Reading the mapping');
	if (u.stage === 'unnamed') return tr('Which build does this mapping belong to?');
	return u.stage === 'failed' ? tr('Failed') : u.kind === 'trace' ? tr('Ready') : u.kind === 'symbols' ? tr('Names native frames of build id {id}', { id: u.build.replace('elf:', '') }) : tr('In use for build {build}', { build: u.build });
}

function Row({ u }: { u: Upload }) {
	const busy = isBusy(u);
	return (
		<li data-upload={u.stage}>
			<div class="row">
				{u.stage === 'ready' && u.trace ? <a class="named" href={addressOf(u)} title={u.file.name}>{u.file.name}</a> : <span class="named" title={u.file.name}>{u.file.name}</span>}
				<span class="quiet nowrap">{bytes(u.file.size)}</span>
				{!busy && <button class="plain" aria-label={tr('Dismiss {file}', { file: u.file.name })} onClick={() => dismiss(u.id)}>×</button>}
			</div>
			{busy && <progress max={1} value={u.stage === 'sending' && u.sent < 1 ? u.sent : undefined} aria-label={tr('Progress of {file}', { file: u.file.name })} />}
			<span class={u.stage === 'failed' ? 'badtext' : 'quiet'}>{stageOf(u)}{u.sides.map(([, side]) => ` · ${side.name}`)}</span>
			{u.stage === 'unnamed' && <NameBuild u={u} />}
			{u.error && <p class="anywhere">{ended(sentence(u.error.message))} {remedyOf(u.error)}{mayRetry(u.error) && <>{' '}<button class="small" onClick={() => retry(u.id)}>{tr('Try again')}</button></>}</p>}
		</li>
	);
}

/** The number of uploads in progress; once none is, the numbers of ready and failed ones. */
function summaryOf(list: Upload[], busy: number): string {
	const ready = list.filter((u) => u.stage === 'ready').length;
	const failed = list.filter((u) => u.stage === 'failed').length;
	if (busy > 0) return tr.many(busy, '{n} upload in progress', '{n} uploads in progress');
	return [ready > 0 && tr('{n} ready', { n: count(ready) }), failed > 0 && tr('{n} failed', { n: count(failed) })].filter(Boolean).join(COMMA) || tr('Uploads');
}

const needsReader = (u: Upload): boolean => u.stage === 'failed' || u.stage === 'unnamed';

/** The uploads, in the corner of every page; failed ones and those that need a choice come first. */
export function Tray() {
	const list = uploads.value;
	const busy = list.filter(isBusy).length;
	const here = path.value;
	const isShown = (u: Upload) => here === `/traces/${u.trace}`;
	const [seenId, setSeenId] = useState(0); // uploads up to this id were listed when the reader opened one of their traces
	useEffect(() => {
		if (list.some(isShown)) setSeenId(Math.max(...list.map((u) => u.id)));
	}, [here]);
	const folds = busy === 0 && here.startsWith('/traces/') && list.every((u) => !needsReader(u) && (u.id <= seenId || isShown(u))); // otherwise the list would cover the trace
	const [shown, show] = useState(false);
	useEffect(() => show(false), [folds]);
	useEffect(() => {
		if (busy === 0) return;
		const stay = (e: BeforeUnloadEvent) => e.preventDefault();
		addEventListener('beforeunload', stay);
		return () => removeEventListener('beforeunload', stay);
	}, [busy > 0]);
	if (list.length === 0) return null;
	return (
		<section class="tray" aria-label={tr('Uploads')}>
			<header class="row"><strong role="status">{summaryOf(list, busy)}</strong><span class="grow" />
				{folds && <button class="small" aria-expanded={shown} onClick={() => show(!shown)}>{shown ? tr('Hide') : tr('Show')}</button>}
				{busy < list.length && <button class="small" onClick={dismissEnded}>{tr('Clear')}</button>}</header>
			{(shown || !folds) && <ul>{[...list.filter(needsReader), ...list.filter((u) => !needsReader(u))].map((u) => <Row key={u.id} u={u} />)}</ul>}
		</section>
	);
}
