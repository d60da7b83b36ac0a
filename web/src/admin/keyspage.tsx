// Projects, and the keys of the one that is shown: made, rotated, revoked.
import { useState } from 'preact/hooks';
import { api, may, send, type Key } from '../api/api';
import { manage } from '../api/manage';
import { when } from '../i18n/format';
import { Cards } from '../ui/cards';
import { NewKey } from '../ui/makekey';
import { Page } from '../ui/page';
import { EmptyPage, Pages, useTurn } from '../ui/pages';
import { Command, Failure, Panel, Pending, useCame, useLoad } from '../ui/parts';
import { Dialog } from '../ui/popover';
import { text } from '../ui/route';
import { tr } from '../i18n/strings/manage';

const SCOPES: [scope: string, does: string][] = [
	['ingest', tr('can only send traces and mappings: for apps and build servers')],
	['read', tr('can read everything in the project: for people and scripts')],
	['write', tr('can also send, edit and delete traces')],
	['admin', tr('can also create and revoke keys')],
];
const DAY_S = 86_400;
const RECENT_MS = 1000 * DAY_S;
const LIVES: [days: number, shown: string][] = [[0, tr('until revoked')], [30, tr('30 days')], [90, tr('90 days')], [365, tr('a year')]];
const GRACES: [seconds: number, shown: string][] = [[0, tr('stop immediately')], [3600, tr('an hour')], [DAY_S, tr('a day')], [7 * DAY_S, tr('a week')], [30 * DAY_S, tr('30 days')], [90 * DAY_S, tr('90 days')]];

function Seen({ k }: { k: Key }) {
	if (k.last_used_ms === 0) return <span class="quiet">{tr('never')}</span>;
	return <span title={Date.now() - k.last_used_ms < RECENT_MS ? tr('Within a day') : undefined}>{when(k.last_used_ms)}
		{k.last_used_address && <span class="quiet">{' '}{tr('from {seen_from}', { seen_from: k.last_used_address })}</span>}</span>;
}

const ended = (k: Key) => k.expires_ms > 0 && k.expires_ms <= Date.now();

/** In use, until when, and whether the secret before the last rotation still works. */
function State({ k }: { k: Key }) {
	if (k.revoked_ms) return <span class="state">{tr('revoked {revoked_ms}', { revoked_ms: when(k.revoked_ms) })}</span>;
	if (ended(k)) return <span class="state failed">{tr('expired {expires_ms}', { expires_ms: when(k.expires_ms) })}</span>;
	const old = k.rotated_ms > 0 && k.old_expires_ms > Date.now();
	return <>
		<span class="state ready">{tr('active')}</span>
		{k.expires_ms > 0 && <span class="quiet">{' '}{tr('ends {expires_ms}', { expires_ms: when(k.expires_ms) })}</span>}
		{old && <div class="quiet">{tr('old secret until {old_expires_ms}, {old_last_used_ms}', { old_expires_ms: when(k.old_expires_ms), old_last_used_ms: k.old_last_used_ms ? tr('still used {old_last_used_ms}', { old_last_used_ms: when(k.old_last_used_ms) }) : tr('not used since') })}</div>}
	</>;
}

function Make({ made }: { made: (secret: string, name: string) => void }) {
	const [name, hold] = useState('');
	const [scope, pick] = useState('ingest');
	const [days, live] = useState(0);
	const [error, fail] = useState<Error | null>(null);
	const make = (e: Event) => {
		e.preventDefault();
		fail(null);
		manage.makeKey(name.trim(), scope, days ? Date.now() + days * DAY_S * 1000 : 0).then((k) => {
			made(k.key, name.trim());
			hold('');
		}, fail);
	};
	return <>
		<form class="row" onSubmit={make}>
			<label class="inline">{tr('Name')}{' '}<input value={name} maxLength={200} required autocomplete="off" placeholder={tr('release builds')} onInput={(e) => hold(e.currentTarget.value)} /></label>
			<label class="inline">{tr('Scope')}{' '}<select value={scope} onChange={(e) => pick(e.currentTarget.value)}>{SCOPES.map(([s]) => <option key={s} value={s}>{s}</option>)}</select></label>
			<label class="inline">{tr('Valid')}{' '}<select value={days} onChange={(e) => live(Number(e.currentTarget.value))}>{LIVES.map(([d, shown]) => <option key={d} value={d}>{shown}</option>)}</select></label>
			<button class="primary" disabled={!name.trim()}>{tr('Create a key')}</button>
			<span class="quiet">{SCOPES.find(([s]) => s === scope)![1]}</span>
		</form>
		{error && <Failure error={error} />}
	</>;
}

/** Devices in the field hold the old secret, so it works on for a while. */
function Rotate({ k, close, made }: { k: Key; close: () => void; made: (secret: string, name: string) => void }) {
	const [grace, pick] = useState(7 * DAY_S);
	const [error, fail] = useState<Error | null>(null);
	const go = () => send('POST', `/api/v1/keys/${k.id}/rotate`, { grace_s: grace }).then((r) => r.json()).then((n: { key: string }) => { made(n.key, k.name); close(); }, fail);
	return (
		<Dialog title={tr('Rotate {name}?', { name: k.name || tr('this key') })} close={close}>
			<p>{tr('The key gets a new secret. The old secret keeps working for a time, so that apps in the field continue to upload. Replace it, and check here whether it is still used.')}</p>
			<p><label class="inline">{tr('Old secret works for')}{' '}<select value={grace} onChange={(e) => pick(Number(e.currentTarget.value))}>{GRACES.map(([s, shown]) => <option key={s} value={s}>{shown}</option>)}</select></label></p>
			{error && <Failure error={error} />}
			<p class="row"><button class="primary" onClick={go}>{tr('Create the new secret')}</button><button onClick={close}>{tr('Not now')}</button></p>
		</Dialog>
	);
}

function Revoke({ k, close, done }: { k: Key; close: () => void; done: () => void }) {
	const [error, fail] = useState<Error | null>(null);
	return (
		<Dialog title={tr('Revoke {name}?', { name: k.name || tr('this key') })} close={close}>
			<p>{tr('Requests with this key are refused from now on. This cannot be undone. Traces sent with it are kept.')}</p>
			<p>{k.last_used_ms ? tr('It was last seen {last_seen_ms}.', { last_seen_ms: when(k.last_used_ms) }) : tr('It was never used.')}</p>
			{error && <Failure error={error} />}
			<p class="row"><button class="danger" onClick={() => send('DELETE', `/api/v1/keys/${k.id}`).then(done, fail)}>{tr('Revoke')}</button><button onClick={close} autofocus>{tr('Keep')}</button></p>
		</Dialog>
	);
}

function Row({ k, rotate, revoke }: { k: Key; rotate: () => void; revoke: () => void }) {
	return (
		<tr data-key={k.id}>
			<td>{k.name || <span class="quiet">{tr('(unnamed)')} <code>{k.id}</code></span>}</td>
			<td title={SCOPES.find(([s]) => s === k.scope)?.[1]}>{k.scope}</td>
			<td class="when">{when(k.created_ms)}</td>
			<td class="when"><Seen k={k} /></td>
			<td><State k={k} /></td>
			<td class="actions">{!k.revoked_ms && <>
				{!ended(k) && <button class="small" onClick={rotate} aria-label={tr('Rotate {id}', { id: k.name || k.id })}>{tr('Rotate')}</button>}
				<button class="small danger" onClick={revoke} aria-label={tr('Revoke {id}', { id: k.name || k.id })}>{tr('Revoke')}</button></>}</td>
		</tr>
	);
}

function Keys({ came }: { came: () => void }) {
	const cursor = text('cursor');
	const load = useLoad(`keys ${cursor}`, () => manage.keys({ cursor }));
	useCame(load, came);
	const [fresh, hold] = useState<{ secret: string; name: string } | null>(null);
	const [dialog, openDialog] = useState<{ what: 'rotate' | 'revoke'; k: Key } | null>(null);
	const keys = [...(load.value?.keys ?? [])].sort((a, b) => Number(a.revoked_ms > 0) - Number(b.revoked_ms > 0) || b.created_ms - a.created_ms || (a.id < b.id ? 1 : -1));
	const made = (secret: string, name: string) => {
		hold({ secret, name });
		load.again();
	};
	const close = () => openDialog(null);
	return (
		<Panel title={tr('Keys of this project')}>
			<Make made={made} />
			{fresh && <NewKey {...fresh} />}
			<Pending of={load} what={tr('Loading keys')} />
			{load.value && keys.length === 0 && (cursor ? <EmptyPage /> : <p class="quiet">{tr('No keys yet. An app needs an ingest key to send traces.')}</p>)}
			{keys.length > 0 && <Cards>
				<thead><tr><th>{tr('Name')}</th><th>{tr('Scope')}</th><th>{tr('Created')}</th><th>{tr('Last seen')}</th>
					<th>{tr('State')}</th><th><span class="hidden">{tr('Actions')}</span></th></tr></thead>
				<tbody>{keys.map((k) => <Row key={k.id} k={k} rotate={() => openDialog({ what: 'rotate', k })} revoke={() => openDialog({ what: 'revoke', k })} />)}</tbody>
			</Cards>}
			{load.value && <Pages rows={keys.length} cursor={load.value.next_cursor} of={load} />}
			{dialog?.what === 'rotate' && <Rotate k={dialog.k} close={close} made={made} />}
			{dialog?.what === 'revoke' && <Revoke k={dialog.k} close={close} done={() => { close(); load.again(); }} />}
		</Panel>
	);
}

function MakeProject({ made }: { made: () => void }) {
	const [name, hold] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const make = (e: Event) => {
		e.preventDefault();
		fail(null);
		manage.makeProject(name.trim()).then(() => {
			hold('');
			made();
		}, fail);
	};
	return <>
		<form class="row" onSubmit={make}>
			<label class="inline">{tr('New project')}{' '}<input value={name} maxLength={100} autocomplete="off" onInput={(e) => hold(e.currentTarget.value)} /></label>
			<button disabled={!name.trim()}>{tr('Create a project')}</button>
		</form>
		{error && <Failure error={error} />}
	</>;
}

/** A click alone must not delete a team's data. */
function DeleteProject({ name, close, done }: { name: string; close: () => void; done: () => void }) {
	const [typed, put] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const go = (e: Event) => {
		e.preventDefault();
		send('DELETE', `/api/v1/projects/${encodeURIComponent(name)}`).then(done, fail);
	};
	return (
		<Dialog title={tr('Delete {name}?', { name })} close={close}>
			<p>{tr('This permanently deletes all traces, builds, keys and settings of the project. Its keys stop working immediately.')}</p>
			<form onSubmit={go}>
				<p><label class="inline">{tr('Type the project name to confirm')}{' '}<input value={typed} autocomplete="off" spellcheck={false} autocapitalize="none" autofocus onInput={(e) => put(e.currentTarget.value)} /></label></p>
				{error && <Failure error={error} />}
				<p class="row"><button class="danger" disabled={typed !== name}>{tr('Delete the project')}</button><button type="button" onClick={close}>{tr('Keep')}</button></p>
			</form>
		</Dialog>
	);
}

function Projects() {
	const [cursor, turn] = useTurn();
	const load = useLoad(`projects ${cursor}`, () => manage.projects(cursor));
	const here = useLoad('session', () => api.session()).value?.project?.id;
	const list = load.value?.projects ?? [];
	const [doomed, setDoomed] = useState('');
	/* the page shows the project until it is loaded again */
	const deleted = () => (list.some((p) => p.id === here && p.name === doomed) ? location.assign('/keys') : (setDoomed(''), load.again()));
	return (
		<Panel title={tr('Projects')}>
			<Pending of={load} what={tr('Loading projects')} />
			{list.length > 0 && <Cards>
				<thead><tr><th>{tr('Name')}</th><th>{tr('Created')}</th><th>{tr('Id')}</th>{may.server && <th><span class="hidden">{tr('Actions')}</span></th>}</tr></thead>
				<tbody>{list.map((p) => (
					<tr key={p.id}><td><a href={`/?project=${p.id}`}>{p.name}</a>{p.id === here && <span class="quiet">{' '}{tr('current')}</span>}</td>
						<td class="when">{when(p.created_ms)}</td><td><code>{p.id}</code></td>
						{may.server && <td class="actions"><button class="small danger" onClick={() => setDoomed(p.name)} aria-label={tr('Delete project {name}', { name: p.name })}>{tr('Delete')}</button></td>}</tr>))}</tbody>
			</Cards>}
			{load.value && turn(load.value.next_cursor)}
			{doomed && <DeleteProject name={doomed} close={() => setDoomed('')} done={deleted} />}
			{(load.value || load.error) && <><p class="quiet">{tr.rich('A project has its own traces, builds and keys, isolated from other projects.{server}', { server: !may.server && tr(' Projects are created on the server, with a first key:') })}</p>
			{may.server ? <MakeProject made={load.again} /> : <Command>{'tracewell key create --data ./data --project NAME --new-project --scope ingest'}</Command>}</>}
		</Panel>
	);
}

export function KeysPage() {
	const [first, came] = useState(!may.admin); // the panels above the projects are loaded
	return (
		<Page title={tr('Projects and keys')}>
			{may.admin ? <Keys came={() => came(true)} /> : <div class="notice"><strong>{tr('Only project admins can see keys.')}</strong>
				<p>{tr('You can view traces{write}. Ask an admin for a key, or sign in with the link that the server prints when it starts.', { write: may.write ? tr(' and change traces') : '' })}</p></div>}
			{first && <Projects />}
		</Page>
	);
}
