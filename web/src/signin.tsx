// Signing in: by the one-time link (its token stands behind #), or by pasting a read token.
import { useEffect, useState } from 'preact/hooks';
import { api } from './api';
import { Failure } from './parts';
import { go } from './route';

export function SignIn({ done }: { done: () => Promise<void> }) {
	const [token, put] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const [busy, work] = useState(false);

	const enter = async (t: string) => {
		work(true);
		fail(null);
		try {
			await api.signIn(t.trim());
			await done();
			if (location.pathname === '/signin') go('/');
		} catch (why) {
			fail(why as Error);
		}
		work(false);
	};

	useEffect(() => {
		const fromLink = location.hash.slice(1);
		if (!fromLink) return;
		history.replaceState(null, '', location.pathname); // not left in the history
		void enter(fromLink);
	}, []);

	return (
		<main class="narrow">
			<h1>Sign in</h1>
			<p>Open the sign-in link that the server printed when it started, or paste a read token.</p>
			<form onSubmit={(e) => { e.preventDefault(); void enter(token); }}>
				<label>Token
					<input type="password" autoComplete="off" value={token} autofocus
						onInput={(e) => put(e.currentTarget.value)} />
				</label>
				<button class="primary" disabled={busy || !token.trim()}>{busy ? 'Signing in' : 'Sign in'}</button>
			</form>
			{error && <Failure error={error} />}
			<p class="quiet">A new link: <code>tracewell link create --data DIR</code>.<br />
				A read token: <code>tracewell key create --data DIR --project NAME --scope read</code>.</p>
		</main>
	);
}
