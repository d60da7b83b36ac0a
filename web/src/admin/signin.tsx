// Signing in: by an OpenID provider, by name and password, by the one-time link (its token follows #),
// or with a key.
import { useEffect, useState } from 'preact/hooks';
import { api, Refusal } from '../api/api';
import { Failure } from '../ui/parts';
import { beginAddress, refusal } from './provider';
import { go, text } from '../ui/route';
import { tr } from '../i18n/strings/frame';

/** Away to the provider, and why it did not work last time. */
function ByProvider({ name }: { name: string }) {
	const why = text('oidc');
	const [what, then] = refusal(why, name);
	const here = location.pathname === '/signin' ? '/' : location.pathname + location.search;
	return <>
		{why && <div class="notice bad" role="alert"><strong>{what}</strong> <p>{then}</p></div>}
		<p class="byprovider"><a class="button primary" href={beginAddress(here)} target="_self">{tr('Sign in with {name}', { name })}</a></p>
		<p class="quiet or"><span>{tr('or with a password')}</span></p>
	</>;
}

export function SignIn({ done, provider, ended = false }: { done: () => Promise<void>; provider?: string; ended?: boolean }) {
	const [name, putName] = useState('');
	const [password, putPassword] = useState('');
	const [token, putToken] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const [busy, work] = useState(false);

	// where a link leads, on this page alone
	const target = text('next');
	const next = /^\/(?![/\\])/.test(target) ? target : '/';

	const enter = async (by: Parameters<typeof api.signIn>[0]) => {
		work(true);
		fail(null);
		try {
			await api.signIn(by);
			if (location.pathname === '/signin') go(next); // the session is requested with the project of a trace
			await done();
		} catch (why) {
			fail(why as Error);
		}
		putPassword('');
		work(false);
	};

	useEffect(() => {
		document.title = tr('Sign in · tracewell');
		const fromLink = location.hash.slice(1);
		if (!fromLink) return;
		history.replaceState(null, '', location.pathname); // not left in the history
		void enter({ token: fromLink });
	}, []);

	return (
		<main class="narrow">
			<h1>{tr('Sign in')}</h1>
			{ended && <p class="notice warn" role="alert">{tr.rich('{bold} Sign in again to continue where you were.', { bold: <strong>{tr('Your session has ended.')}</strong> })}</p>}
			{provider && <ByProvider name={provider} />}
			<form onSubmit={(e) => { e.preventDefault(); void enter({ name: name.trim(), password }); }}>
				<label>{tr('Name')}
					<input name="name" autoComplete="username" autocapitalize="none" spellcheck={false} value={name} autofocus
						onInput={(e) => putName(e.currentTarget.value)} />
				</label>
				<label>{tr('Password')}
					<input name="password" type="password" autoComplete="current-password" value={password}
						onInput={(e) => putPassword(e.currentTarget.value)} />
				</label>
				<button class={provider ? undefined : 'primary'} disabled={busy || !name.trim() || !password}>{busy ? tr('Signing in') : tr('Sign in')}</button>
			</form>
			{error && <Failure title={tr('Sign-in failed.')} error={error instanceof Refusal && error.status === 401 ? new Error(error.message) : error} />}
			<details>
				<summary>{tr('With a key')}</summary>
				<form onSubmit={(e) => { e.preventDefault(); void enter({ token: token.trim() }); }}>
					<label>{tr('A read, write or admin key')}
						<input name="token" type="password" autoComplete="off" value={token} onInput={(e) => putToken(e.currentTarget.value)} />
					</label>
					<div class="row"><button disabled={busy || !token.trim()}>{tr('Sign in with the key')}</button></div>
				</form>
			</details>
			<p class="quiet">{tr.rich('No account yet? On the machine of the server, {code}, or {admin} with the Debian package, prints a link that signs in an admin once.', { code: <code>tracewell link create --data DIR</code>, admin: <code>tracewell-admin link create</code> })}</p>
		</main>
	);
}
