// People: the roles in the project, and for server admins all accounts.
import { useState } from 'preact/hooks';
import { get, may, send } from '../api/api';
import { Cards } from '../ui/cards';
import { Sure, useChange } from '../ui/change';
import { when } from '../i18n/format';
import { Page } from '../ui/page';
import { useTurn } from '../ui/pages';
import { Failure, focused, Panel, Pending, useCame, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/manage';

type Role = 'viewer' | 'editor' | 'admin';
interface Member { name: string; role: Role; last_seen_ms: number }
interface User { name: string; admin: boolean; password: boolean; oidc: boolean; disabled: boolean; created_ms: number; last_seen_ms: number }

const ROLES: [Role, string, string][] = [['viewer', tr('viewer'), tr('can read')], ['editor', tr('editor'), tr('can also send and delete traces and change rules')], ['admin', tr('admin'), tr('can also manage keys and members')]];
const member = (name: string) => `/api/v1/members/${encodeURIComponent(name)}`;
const user = (name: string) => `/api/v1/users/${encodeURIComponent(name)}`;
const seen = (ms: number) => (ms ? when(ms) : tr('never'));

function RoleSelect({ label, value, pick }: { label: string; value: Role; pick: (r: Role) => void }) {
	return <>
		<select aria-label={label} value={value} onChange={(e) => pick(e.currentTarget.value as Role)}>
			{ROLES.map(([r, name]) => <option key={r} value={r}>{name}</option>)}
		</select>
		{' '}<span class="quiet">{ROLES.find(([r]) => r === value)![2]}</span>
	</>;
}

function Members({ project, came }: { project: string; came: () => void }) {
	const [cursor, turn] = useTurn();
	const load = useLoad(`members ${cursor}`, () => get<{ members: Member[]; next_cursor: string | null }>('/api/v1/members', { cursor }));
	useCame(load, came);
	const [error, change] = useChange(load.again);
	const [name, put] = useState('');
	const [role, pick] = useState<Role>('viewer');
	const add = async (e: Event) => {
		e.preventDefault();
		if (await change(() => send('PUT', member(name.trim()), { role }))) put('');
	};
	const v = load.value;
	return (
		<Panel title={tr('In project {project}', { project })} id="members">
			<Pending of={load} what={tr('Loading members')} />
						{v && v.members.length > 0 && <Cards>
				<thead><tr><th>{tr('Name')}</th><th>{tr('Role')}</th><th>{tr('Last seen')}</th><th><span class="hidden">{tr('Actions')}</span></th></tr></thead>
				<tbody>{v.members.map((m) => <tr key={m.name}>
					<td>{m.name}</td>
					<td><RoleSelect label={tr('Role of {name}', { name: m.name })} value={m.role} pick={(r) => void change(() => send('PUT', member(m.name), { role: r }))} /></td>
					<td class="when">{seen(m.last_seen_ms)}</td>
					<td class="actions"><Sure what={tr('Remove')} label={tr('Remove {name} from the project', { name: m.name })} act={() => void change(() => send('DELETE', member(m.name)))} /></td>
				</tr>)}</tbody>
			</Cards>}
			{v && turn(v.next_cursor)}
			{v && <p class="quiet">{v.members.length === 0 && tr('No members yet.')} {tr('Server admins have access to every project.')}</p>}
			{(v || load.error) && <form class="row" onSubmit={add}>
				<label class="inline">{tr('Name')}{' '}<input name="member" list="names" spellcheck={false} autocapitalize="none" value={name} onInput={(e) => put(e.currentTarget.value)} /></label>
				<label class="inline">{tr('Role')}{' '}<RoleSelect label={tr('Role')} value={role} pick={pick} /></label>
				<button disabled={!name.trim()}>{tr('Grant the role')}</button>
			</form>}
			{error && <Failure error={error} />}
		</Panel>
	);
}

/** An inline prompt for one text of at least `least` characters; null: cancelled. */
function Ask({ verb, least, done, ...field }: { verb: string; least: number; done: (text: string | null) => void; type?: string; placeholder: string; 'aria-label': string }) {
	const [typed, put] = useState('');
	return (
		<form class="inlineform" onSubmit={(e) => { e.preventDefault(); done(typed); }}>
			<input {...field} autoComplete="new-password" spellcheck={false} autocapitalize="none" value={typed} ref={focused} onInput={(e) => put(e.currentTarget.value)} />
			<button class="small" disabled={typed.length < least}>{verb}</button>
			<button class="small" type="button" onClick={() => done(null)}>{tr('Cancel')}</button>
		</form>
	);
}

function Account({ u, provider, change }: { u: User; provider: string; change: (c: () => Promise<unknown>) => Promise<boolean> }) {
	const [setting, set] = useState(false);
	const given = (password: string | null) => {
		set(false);
		if (password !== null) void change(() => send('PUT', user(u.name), { password }));
	};
	return (
		<tr>
			<td>{u.name}{u.disabled && <span class="quiet">{' '}{tr('(disabled)')}</span>}</td>
			<td><input type="checkbox" checked={u.admin} aria-label={tr('{name} is admin of the server', { name: u.name })}
				onChange={(e) => void change(() => send('PUT', user(u.name), { admin: e.currentTarget.checked }))} /></td>
			<td>{setting ? <Ask type="password" aria-label={tr('New password of {name}', { name: u.name })} placeholder={tr('ten characters or more')} least={10} verb={tr('Set')} done={given} />
				: <button class="small" onClick={() => set(true)} aria-label={u.password ? tr('Change password of {name}', { name: u.name }) : tr('Set a password for {name}', { name: u.name })}>{u.password ? tr('Change password') : tr('Set a password')}</button>}</td>
			{provider && <td><Linked u={u} change={change} /></td>}
			<td class="when">{seen(u.last_seen_ms)}</td>
			<td class="when">{when(u.created_ms)}</td>
			<td class="actions"><button class="small" aria-label={tr('{disabled} the account {name}', { disabled: u.disabled ? tr('Enable') : tr('Disable'), name: u.name })}
				onClick={() => void change(() => send('PUT', user(u.name), { disabled: !u.disabled }))}>{u.disabled ? tr('Enable') : tr('Disable')}</button>{' '}
				<Sure what={tr('Remove')} label={tr('Remove the account {name}', { name: u.name })} act={() => void change(() => send('DELETE', user(u.name)))} /></td>
		</tr>
	);
}

function Linked({ u, change }: { u: User; change: (c: () => Promise<unknown>) => Promise<boolean> }) {
	const [linking, link] = useState(false);
	const to = (subject: string) => void change(() => send('PUT', user(u.name), { subject }));
	if (u.oidc) return <Sure what={tr('Unlink')} label={tr('Unlink {name} from the provider', { name: u.name })} act={() => to('')} />;
	if (!linking) return <button class="small" onClick={() => link(true)} aria-label={tr('Link {name} to an identity at the provider', { name: u.name })}>{tr('Link')}</button>;
	/* the permanent id, which is in the log of a refused sign-in */
	return <Ask aria-label={tr('Subject of {name} at the provider', { name: u.name })} placeholder={tr('subject, from the log')} least={1} verb={tr('Link')} done={(subject) => { link(false); if (subject?.trim()) to(subject.trim()); }} />;
}

function Accounts({ changed, provider }: { changed: () => void; provider: string }) {
	const [cursor, turn] = useTurn();
	const load = useLoad(`users ${cursor}`, () => get<{ users: User[]; next_cursor: string | null }>('/api/v1/users', { cursor }));
	const [error, change] = useChange(() => { load.again(); changed(); });
	const [name, putName] = useState('');
	const [password, putPassword] = useState('');
	const add = async (e: Event) => {
		e.preventDefault();
		if (!await change(() => send('POST', '/api/v1/users', { name: name.trim(), password }))) return;
		putName('');
		putPassword('');
	};
	const v = load.value;
	return (
		<Panel title={tr('Accounts on this server')} id="accounts">
			<Pending of={load} what={tr('Loading accounts')} />
			{v && v.users.length === 0 && <p class="quiet">{tr('No accounts yet. You are signed in with a one-time link: create an account for yourself.')}</p>}
			{v && v.users.length > 0 && <Cards>
				<thead><tr><th>{tr('Name')}</th><th title={tr('all projects and accounts')}>{tr('Admin of the server')}</th><th>{tr('Password')}</th>{provider && <th>{provider}</th>}
					<th>{tr('Last seen')}</th><th>{tr('Created')}</th><th><span class="hidden">{tr('Actions')}</span></th></tr></thead>
				<tbody>{v.users.map((u) => <Account key={u.name} u={u} provider={provider} change={change} />)}</tbody>
			</Cards>}
			{v && turn(v.next_cursor)}
			<datalist id="names">{v?.users.map((u) => <option key={u.name} value={u.name} />)}</datalist>
			{(v || load.error) && <form class="row" onSubmit={add}>
				<label class="inline">{tr('Name')}{' '}<input name="account" spellcheck={false} autocapitalize="none" autoComplete="off" value={name} onInput={(e) => putName(e.currentTarget.value)} /></label>
				<label class="inline">{tr('Password')}{' '}<input name="new-password" type="password" autoComplete="new-password" placeholder={tr('ten characters or more')} value={password} onInput={(e) => putPassword(e.currentTarget.value)} /></label>
				<button disabled={!name.trim() || password.length < 10}>{tr('Create the account')}</button>
			</form>}
			{error && <Failure error={error} />}
		</Panel>
	);
}

export function PeoplePage({ project, provider }: { project: string; provider: string }) {
	const [turn, again] = useState(0); // who loses an account loses the roles
	const [first, came] = useState(!project); // the panels above the accounts are loaded
	return (
		<Page title={tr('People')}>
			{project && <Members key={turn} project={project} came={() => came(true)} />}
			{may.server && first && <Accounts changed={() => again((n) => n + 1)} provider={provider} />}
		</Page>
	);
}
