// A method's place in the source, its owners and its last changes, requested when the box opens.
import { render } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { api, get, Refusal, type Meta } from '../api/api';
import { sentence } from '../i18n/format';
import { ended, serverText } from '../i18n/servertext';
import { Cards } from '../ui/cards';
import { Dialog } from '../ui/popover';
import { Busy, Failure, MethodName, useLoad } from '../ui/parts';
import { link, path } from '../ui/route';
import { ageOf, dayOf, fromOf, namesOf, numbersOf, safe, shortOf, type Source } from './sourcedoc';
import type { About } from './sourcelater';
import { tr } from '../i18n/strings/sources';

const paramsOf = (p: Record<string, string | undefined>) => Object.fromEntries(Object.entries(p).filter(([, v]) => v)) as Record<string, string>;

export const askSource = (p: { method: string; app?: string; version?: string; build?: string }, signal?: AbortSignal) => get<Source>('/api/v1/source', paramsOf(p), signal);

/** Opens in a new tab; anything other than an http address is shown as text. */
export function Out({ to, children }: { to: string | null | undefined; children: preact.ComponentChildren }) {
	return safe(to) ? <a href={safe(to)} target="_blank" rel="noopener noreferrer">{children}</a> : <>{children}</>;
}

/** File, lines and owners, or why not. */
export function SourceFacts({ v }: { v: Source }) {
	return <>
		{v.path && <p class="anywhere"><Out to={v.link}><span class="mono">{v.path}{numbersOf(v)}</span></Out>{!v.found && <span class="quiet">{' '}{tr('from package and class, not verified')}</span>}{v.found && !v.link && !v.reason && <>{' · '}<a href={link('/source')}>{tr('Set a link to this file')}</a></>}</p>}
		{v.note && <p class="quiet">{tr('Approximate: {note}.', { note: serverText(v.note) })}</p>}
		{namesOf(v) && <p>{tr.rich('Owned by {v} {owners_file}', { v: <strong>{namesOf(v)}</strong>, owners_file: <span class="quiet">{tr('by {owners_file}', { owners_file: v.owners_file })}</span> })}</p>}
		{v.owners_error && <p class="quiet">{tr('Owners unknown: {owners_why}.', { owners_why: serverText(v.owners_error) })}</p>}
		{v.found && v.owners_file && !namesOf(v) && <p class="quiet">{tr('{owners_file} names no owner.', { owners_file: v.owners_file })}</p>}
		{v.reason && <p class="quiet">{ended(sentence(serverText(v.reason)))}</p>}
		{v.repository === null && <p><a href={link('/source')}>{tr('Set up repositories')}</a></p>}
	</>;
}

function Commits({ v }: { v: Source }) {
	if (!v.commits) return null;
	if (v.commits.length === 0) return v.more ? null : <p class="quiet">{tr('No commit in this range changed its lines. Its callees or its arguments may have changed.')}</p>;
	return <>
		<Cards of="commits">
			<thead><tr><th>{tr('Commit')}</th><th>{tr('Subject')}</th><th>{tr('Author')}</th><th>{tr('When')}</th></tr></thead>
			<tbody>{v.commits.map((c) => <tr key={c.id} data-commit={c.id}>
				<td class="mono nowrap"><Out to={c.link}>{shortOf(c.id)}</Out></td><td class="anywhere">{c.summary}</td>
				<td class="anywhere">{c.author}{c.email && <span class="quiet"> {c.email}</span>}</td><td class="nowrap">{dayOf(c.time_ms)}</td></tr>)}</tbody>
		</Cards>
		{v.more && <p class="quiet">{tr('There may be earlier changes.')}</p>}
	</>;
}

/** Authors of its lines; loaded by the button. */
function Changes({ method, app, base, head }: { method: string; app: string; base: string; head: string }) {
	const [on, ask] = useState(false);
	const between = base && head ? tr('between {base} and {head}', { base, head }) : head ? tr('up to {head}', { head }) : tr('so far');
	useLayoutEffect(() => ask(false), [method, app, base, head]);
	if (!on) return <p><button class="small" onClick={() => ask(true)}>{tr('Last changes {between}', { between })}</button></p>;
	return <Asked method={method} app={app} base={base} head={head} between={between} />;
}

function Asked({ method, app, base, head, between }: { method: string; app: string; base: string; head: string; between: string }) {
	const load = useLoad(`blame ${method} ${app} ${base} ${head}`, (signal) => get<Source>('/api/v1/source/blame', paramsOf({ method, app, base, head }), signal));
	const v = load.value;
	return (
		<section class="blame" aria-label={tr('Last changes')}>
			<h4>{tr('Last changes {between}', { between })}</h4>
			{load.error && <Failure error={load.error} retry={load.again} title={tr('The changes could not be loaded.')} />}
			{!v && load.busy && <Busy what={tr('Reading the history')} />}
			{v && <Commits v={v} />}
			{v?.reason && <p class="quiet" role="status">{ended(sentence(serverText(v.reason)))}</p>}
			{v?.base_note && <p class="quiet" role="status">{ended(sentence(serverText(v.base_note)))}</p>}
			{v && fromOf(v) && <p class="quiet">{fromOf(v)}</p>}
			{v?.newest_ms !== undefined && <p class="quiet">{ageOf(v.newest_ms)}</p>}
		</section>
	);
}

/** Native code, sections and the like have no place in Java or Kotlin. */
const isNoMethod = (why: Error) => why instanceof Refusal && why.status === 400;

/** The source of a method. Nothing without a repository. */
export function SourceBox({ method, app = '', base = '', head = '', onOwners }: About) {
	const load = useLoad(`source ${method} ${app} ${head}`, (signal) => askSource({ method, app, version: head }, signal));
	const v = load.value;
	useEffect(() => {
		if (v) onOwners?.(v.repository === null ? null : namesOf(v));
	}, [v]);
	if (load.error) return isNoMethod(load.error) ? null : <Failure error={load.error} retry={load.again} title={tr('The source could not be loaded.')} />;
	if (!v || v.repository === null) return null;
	return <section class="source-box" aria-label={tr('Source')}><h3>{tr('Source')}</h3><SourceFacts v={v} /><Changes method={method} app={app} base={base} head={head} /></section>;
}

/** Opened by "Source" in a method's menu; the open trace determines the version. */
export function showSource(method: string): void {
	const root = document.body.appendChild(document.createElement('div'));
	const close = () => {
		render(null, root);
		root.remove();
	};
	render(<SourceDialog method={method} close={close} />, root);
}

const ofTrace = (): Promise<Meta | null> => {
	const id = /^\/traces\/([0-9A-Z]{26})$/.exec(path.value)?.[1];
	return id ? api.trace(id).then((t) => t.meta) : Promise.resolve(null);
};

function SourceDialog({ method, close }: { method: string; close: () => void }) {
	const load = useLoad(`source ${method}`, async (signal) => {
		const of = await ofTrace();
		return { app: of?.app ?? '', version: of?.version_name ?? '', v: await askSource({ method, app: of?.app, version: of?.version_name, build: of?.build_id }, signal) };
	});
	const v = load.value?.v;
	return (
		<Dialog title={tr('Source')} close={close}>
			<p class="mono anywhere"><MethodName name={method} /></p>
			{load.error && (isNoMethod(load.error) ? <p>{tr('Not a Java or Kotlin method: it has no source location.')}</p> : <Failure error={load.error} retry={load.again} title={tr('The source could not be loaded.')} />)}
			{!v && load.busy && <Busy what={tr('Finding its source')} />}
			{v && <><SourceFacts v={v} />{v.repository !== null && <Changes method={method} app={load.value!.app} base="" head={load.value!.version} />}</>}
			<div class="row"><span class="grow" /><button autofocus onClick={close}>{tr('Close')}</button></div>
		</Dialog>
	);
}
