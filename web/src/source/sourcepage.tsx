// The repositories of the project's source: a form, and a test with a method's name.
import { useEffect, useState } from 'preact/hooks';
import { get, may, send } from '../api/api';
import { Cards } from '../ui/cards';
import { Sure, useChange, useEditing } from '../ui/change';
import { Invalid, useInvalid } from '../ui/invalid';
import { Busy, Command, Failure, focused, Panel, useLoad } from '../ui/parts';
import { askSource, SourceFacts } from './sourcebox';
import { ageOf, draftOf, repositoryOf, type Draft, type Repository, type Source } from './sourcedoc';
import { tr } from '../i18n/strings/sources';

interface Settings { repositories: Repository[]; updated_ms: number; clones_folder: string | null }

const TEXTS: [keyof Draft, string, string, string][] = [
	['link', tr('Link to a file'), 'https://git.example.com/app/blob/{commit}/{path}#L{line}', tr('{names} are filled in', { names: '{commit}, {path}, {line}, {end}, {version}' })],
	['commit_link', tr('Link to a commit'), 'https://git.example.com/app/commit/{commit}', tr('for last changes; empty: no links')],
];
const LISTS: [keyof Draft, string, string, string][] = [
	['packages', tr('Packages'), 'com.example.', tr('one per line; empty: everything that no other repository has')],
	['roots', tr('Folders of sources'), 'app/src/main/java', tr('one per line, with * and ** for folders; empty: anywhere')],
	['refs', tr('Git tag of a version'), 'v{version}', tr('one per line, {names}; empty: {usual}', { names: '{version} / {build}', usual: 'v{version}, {version}' })],
];

function Form({ of, where, keep, cancel }: { of?: Repository; where: string | null; keep: (r: Repository) => void; cancel: () => void }) {
	const [d, put] = useState(draftOf(of));
	const text = (key: keyof Draft) => ({ name: key, spellcheck: false, autocapitalize: 'none' as const, value: String(d[key]), onInput: (e: { currentTarget: { value: string } }) => put({ ...d, [key]: e.currentTarget.value }) });
	const save = (e: Event) => {
		e.preventDefault();
		keep(repositoryOf(d));
	};
	return (
		<form class="rule" onSubmit={save} aria-label={of ? tr('Edit {name}', { name: of.name }) : tr('A new repository')}>
			<div class="row">
				<label class="inline">{tr('Name')}{' '}<input {...text('name')} ref={of ? undefined : focused} /></label>
				<label class="inline">{tr('Clone')}{' '}<input {...text('clone')} placeholder={tr('none')} /></label>
				<span class="quiet">{where === null ? tr('This server has no clones: links are derived from package and class until it is started with --repositories.') : tr("Clones of this project are in the folder {where} of --repositories.", { where })}</span>
			</div>
			{TEXTS.map(([key, label, example, hint]) => <label class="list" key={key}>{label} <span class="quiet">{hint}</span><input class="mono" placeholder={example} {...text(key)} /></label>)}
			<details open={!!of}><summary>{tr('Packages, folders, tags and owners')}</summary>
				<div class="lists">{LISTS.map(([key, label, example, hint]) => <label class="list" key={key}>{label} <span class="quiet">{hint}</span><textarea rows={3} class="mono" placeholder={example} {...text(key)} /></label>)}</div>
				<div class="row">
					<label class="inline">{tr('Code owners')}{' '}<input {...text('owners')} placeholder=".github/CODEOWNERS" /></label>
					<label class="inline"><input type="checkbox" checked={d.emails} onChange={(e) => put({ ...d, emails: e.currentTarget.checked })} />{' '}{tr("show authors' addresses")}</label>
				</div></details>
			<div class="row"><button class="primary" disabled={!d.name.trim()}>{of ? tr('Save') : tr('Add')}</button><button type="button" onClick={cancel}>{tr('Cancel')}</button></div>
		</form>
	);
}

function Table({ list, edit, keep }: { list: Repository[]; edit: (name: string) => void; keep: (all: Repository[]) => void }) {
	return (
		<Cards>
			<thead><tr><th>{tr('Repository')}</th><th>{tr('Packages')}</th><th>{tr('Link')}</th><th>{tr('Clone')}</th>{may.admin && <th><span class="hidden">{tr('Actions')}</span></th>}</tr></thead>
			<tbody>{list.map((r) => <tr key={r.name} data-repository={r.name}>
				<td>{r.name}</td><td class="mono anywhere">{r.packages?.join(' ') ?? <span class="quiet">{tr('all others')}</span>}</td><td class="mono anywhere">{r.link ?? <span class="quiet">{tr('none')}</span>}</td><td class="mono">{r.clone ?? <span class="quiet">{tr('none')}</span>}</td>
				{may.admin && <td class="actions"><button class="small" data-edits={`repository ${r.name}`} onClick={() => edit(r.name)} aria-label={tr('Edit {name}', { name: r.name })}>{tr('Edit')}</button><Sure what={tr('Remove')} label={tr('Remove {name}', { name: r.name })} act={() => keep(list.filter((o) => o !== r))} /></td>}
			</tr>)}</tbody>
		</Cards>
	);
}

/** The response that a method's menu shows. */
function Try() {
	const [method, put] = useState('');
	const [version, choose] = useState('');
	const [result, setResult] = useState<Source | Error | null>(null);
	const [busy, work] = useState(false);
	const ask = async (e: Event) => {
		e.preventDefault();
		work(true);
		setResult(await askSource({ method: method.trim(), version: version.trim() }).catch((why: Error) => why));
		work(false);
	};
	return (
		<Panel title={tr('Try it')} id="try">
			<form class="row" onSubmit={(e) => void ask(e)} aria-label={tr('Try a method')}>
				<label class="inline grow">{tr('Method')}{' '}<input class="mono wide" name="method" placeholder="com.example.feed.FeedAdapter.load" value={method} onInput={(e) => put(e.currentTarget.value)} /></label>
				<label class="inline">{tr('Version')}{' '}<input name="version" placeholder={tr('newest')} value={version} onInput={(e) => choose(e.currentTarget.value)} /></label>
				<button disabled={busy || !method.trim()}>{busy ? tr('Finding') : tr('Find')}</button>
			</form>
			{result instanceof Error && <Failure error={result} />}
			{result && !(result instanceof Error) && <div class="instructions" role="status"><SourceFacts v={result} />{result.newest_ms !== undefined && <p class="quiet">{ageOf(result.newest_ms)}</p>}</div>}
		</Panel>
	);
}

export function SourcePage() {
	const load = useLoad('source', () => get<Settings>('/api/v1/source/repositories'));
	const [error, change] = useChange(load.again);
	const [editing, edit] = useEditing('repository'); // '' is a new one
	const v = load.value;
	const invalid = useInvalid('source', v);
	useEffect(() => {
		document.title = tr('Source · tracewell');
	}, []);
	const keep = (repositories: Repository[]) => change(() => send('PUT', '/api/v1/source/repositories', { repositories }));
	const put = async (r: Repository) => {
		const list = v!.repositories;
		if (await keep(editing ? list.map((o) => (o.name === editing ? r : o)) : [...list, r])) edit(null, r.name === editing ? editing : ''); // a renamed repository gets another row
	};
	return (
		<main>
			<div class="row head"><h1>{tr('Source')}</h1></div>
			<Panel title={tr('Repositories')} id="repositories" aside={v && may.admin && editing === null && <button data-edits="repository " onClick={() => edit('')}>{tr('Add a repository')}</button>}>
				{load.error && <Failure error={load.error} retry={load.again} />}
				{!v && load.busy && <Busy what={tr('Loading repositories')} />}
				<Invalid why={invalid} />
				{v && v.repositories.length === 0 && editing === null && <p class="quiet">{tr('No repositories yet. With one, every method links to its source; with a clone on the server, also to its lines, owners and last changes.')}</p>}
				{v && v.repositories.length > 0 && <Table list={v.repositories} edit={edit} keep={(all) => void keep(all)} />}
				{v && editing !== null && <Form key={editing} of={v.repositories.find((r) => r.name === editing)} where={v.clones_folder} keep={(r) => void put(r)} cancel={() => edit(null)} />}
				{error && <Failure error={error} />}
			</Panel>
			{v && v.repositories.length > 0 && <Try />}
			{v && may.admin && <Panel title={tr('On the server')}>
				<p>{tr('The server only reads clones. Create one there and let cron fetch into it.')}</p>
				<Command>{`git clone --mirror https://git.example.com/app.git "$REPOSITORIES/${v.clones_folder ?? 'PROJECT'}/app"\n*/10 * * * * git -C "$REPOSITORIES/${v.clones_folder ?? 'PROJECT'}/app" fetch --quiet --prune`}</Command>
			</Panel>}
		</main>
	);
}
