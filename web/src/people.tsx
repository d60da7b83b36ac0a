// People: who has which role in the project, and for admins of the server all accounts.
import { useEffect, useState } from 'preact/hooks';
import { get, may, send } from './api';
import { Sure, useChange } from './change';
import { when } from './format';
import { Failure, Panel, Pending, useCame, useLoad } from './parts';

type Role = 'viewer' | 'editor' | 'admin';
interface Member { name: string; role: Role; last_seen_ms: number }
interface User { name: string; admin: boolean; password: boolean; oidc: boolean; disabled: boolean; created_ms: number; last_seen_ms: number }

const ROLES: [Role, string][] = [['viewer', 'viewer: sees'], ['editor', 'editor: also sends, deletes, changes rules'], ['admin', 'admin: also keeps keys and members']];
const member = (name: string) => `/api/v1/members/${encodeURIComponent(name)}`;
const user = (name: string) => `/api/v1/users/${encodeURIComponent(name)}`;
const seen = (ms: number) => (ms ? when(ms) : 'never');

function RoleSelect({ label, value, pick }: { label: string; value: Role; pick: (r: Role) => void }) {
	return (
		<select aria-label={label} value={value} onChange={(e) => pick(e.currentTarget.value as Role)}>
			{ROLES.map(([r, what]) => <option key={r} value={r}>{what}</option>)}
		</select>
	);
}

function Members({ project, came }: { project: string; came: () => void }) {
	const [after, page] = useState('');
	const load = useLoad(`members ${after}`, () => get<{ members: Member[]; after: string | null }>('/api/v1/members', { after }));
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
		<Panel title={`In project ${project}`} id="members">
			<Pending of={load} what="Loading members" />
			{v && v.members.length === 0 && <p class="quiet">Nobody has a role here yet. Admins of the server reach every project.</p>}
			{v && v.members.length > 0 && <div class="scroll"><table>
				<thead><tr><th scope="col">Name</th><th scope="col">Role</th><th scope="col">Last seen</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
				<tbody>{v.members.map((m) => <tr key={m.name}>
					<td>{m.name}</td>
					<td><RoleSelect label={`Role of ${m.name}`} value={m.role} pick={(r) => void change(() => send('PUT', member(m.name), { role: r }))} /></td>
					<td class="when">{seen(m.last_seen_ms)}</td>
					<td class="actions"><Sure what="Remove" label={`Remove ${m.name} from the project`} act={() => void change(() => send('DELETE', member(m.name)))} /></td>
				</tr>)}</tbody>
			</table></div>}
			{v?.after && <div class="row"><button onClick={() => page(v.after!)}>More</button></div>}
			{(v || load.error) && <form class="row" onSubmit={add}>
				<label class="inline">Name <input name="member" spellcheck={false} autocapitalize="none" value={name} onInput={(e) => put(e.currentTarget.value)} /></label>
				<label class="inline">Role <RoleSelect label="Role" value={role} pick={pick} /></label>
				<button disabled={!name.trim()}>Give the role</button>
			</form>}
			{error && <Failure error={error} />}
		</Panel>
	);
}

function NewPassword({ name, done }: { name: string; done: (password: string | null) => void }) {
	const [password, put] = useState('');
	return (
		<form class="inlineform" onSubmit={(e) => { e.preventDefault(); done(password); }}>
			<input type="password" aria-label={`New password of ${name}`} placeholder="ten characters or more" autoComplete="new-password" value={password} autofocus onInput={(e) => put(e.currentTarget.value)} />
			<button class="small" disabled={password.length < 10}>Set</button>
			<button class="small" type="button" onClick={() => done(null)}>Cancel</button>
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
			<td>{u.name}{u.disabled && <span class="quiet"> (disabled)</span>}</td>
			<td><label class="inline"><input type="checkbox" checked={u.admin} aria-label={`${u.name} is admin of the server`}
				onChange={(e) => void change(() => send('PUT', user(u.name), { admin: e.currentTarget.checked }))} /> all projects and accounts</label></td>
			<td>{setting ? <NewPassword name={u.name} done={given} />
				: <button class="small" onClick={() => set(true)} aria-label={`Set a password for ${u.name}`}>{u.password ? 'Set another' : 'Set one'}</button>}</td>
			{provider && <td><Linked u={u} change={change} /></td>}
			<td class="when">{seen(u.last_seen_ms)}</td>
			<td class="when">{when(u.created_ms)}</td>
			<td class="actions"><button class="small" aria-label={`${u.disabled ? 'Enable' : 'Disable'} the account ${u.name}`}
				onClick={() => void change(() => send('PUT', user(u.name), { disabled: !u.disabled }))}>{u.disabled ? 'Enable' : 'Disable'}</button>{' '}
				<Sure what="Remove" label={`Remove the account ${u.name}`} act={() => void change(() => send('DELETE', user(u.name)))} /></td>
		</tr>
	);
}

/** Whom at the provider the account is for: by what it calls them for ever, which its refusals in the log tell. */
function LinkTo({ name, done }: { name: string; done: (subject: string | null) => void }) {
	const [subject, put] = useState('');
	return (
		<form class="inlineform" onSubmit={(e) => { e.preventDefault(); done(subject.trim()); }}>
			<input aria-label={`Subject of ${name} at the provider`} placeholder="subject, as the log tells" spellcheck={false} autocapitalize="none" value={subject} autofocus onInput={(e) => put(e.currentTarget.value)} />
			<button class="small" disabled={!subject.trim()}>Link</button>
			<button class="small" type="button" onClick={() => done(null)}>Cancel</button>
		</form>
	);
}

function Linked({ u, change }: { u: User; change: (c: () => Promise<unknown>) => Promise<boolean> }) {
	const [linking, link] = useState(false);
	const to = (subject: string) => void change(() => send('PUT', user(u.name), { subject }));
	if (u.oidc) return <Sure what="Unlink" label={`Unlink ${u.name} from the provider`} act={() => to('')} />;
	if (!linking) return <button class="small" onClick={() => link(true)} aria-label={`Link ${u.name} to a person at the provider`}>Link</button>;
	return <LinkTo name={u.name} done={(subject) => { link(false); if (subject) to(subject); }} />;
}

function Accounts({ changed, provider }: { changed: () => void; provider: string }) {
	const [after, page] = useState('');
	const load = useLoad(`users ${after}`, () => get<{ users: User[]; after: string | null }>('/api/v1/users', { after }));
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
		<Panel title="Accounts on this server" id="accounts">
			<Pending of={load} what="Loading accounts" />
			{v && v.users.length === 0 && <p class="quiet">There is no account yet. You are signed in by a link, which works once: make an account for yourself.</p>}
			{v && v.users.length > 0 && <div class="scroll"><table>
				<thead><tr><th scope="col">Name</th><th scope="col">Admin of the server</th><th scope="col">Password</th>{provider && <th scope="col">{provider}</th>}
					<th scope="col">Last seen</th><th scope="col">Made</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
				<tbody>{v.users.map((u) => <Account key={u.name} u={u} provider={provider} change={change} />)}</tbody>
			</table></div>}
			{v?.after && <div class="row"><button onClick={() => page(v.after!)}>More</button></div>}
			{(v || load.error) && <form class="row" onSubmit={add}>
				<label class="inline">Name <input name="account" spellcheck={false} autocapitalize="none" autoComplete="off" value={name} onInput={(e) => putName(e.currentTarget.value)} /></label>
				<label class="inline">Password <input name="new-password" type="password" autoComplete="new-password" placeholder="ten characters or more" value={password} onInput={(e) => putPassword(e.currentTarget.value)} /></label>
				<button disabled={!name.trim() || password.length < 10}>Make the account</button>
			</form>}
			{error && <Failure error={error} />}
		</Panel>
	);
}

export function PeoplePage({ project, provider }: { project: string; provider: string }) {
	const [turn, again] = useState(0); // who loses an account loses the roles
	const [first, came] = useState(!project); // what is above the accounts is there
	useEffect(() => {
		document.title = 'People · tracewell';
	}, []);
	return (
		<main>
			<div class="row head"><h1>People</h1></div>
			{project && <Members key={turn} project={project} came={() => came(true)} />}
			{may.server && first && <Accounts changed={() => again((n) => n + 1)} provider={provider} />}
		</main>
	);
}
