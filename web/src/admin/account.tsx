// One's own account: a new password, the provider that signs one in, and signing out in all browsers.
import { useState } from 'preact/hooks';
import { may, send, type Session } from '../api/api';
import { Page } from '../ui/page';
import { Failure, Panel } from '../ui/parts';
import { link } from './provider';
import { tr } from '../i18n/strings/manage';

function Provider({ of, fail }: { of: NonNullable<Session['oidc']>; fail: (why: Error | null) => void }) {
	const [password, putPassword] = useState('');
	const go = (e: Event) => {
		e.preventDefault();
		fail(null);
		link(password).catch(fail);
	};
	return (
		<Panel title={of.name}>
			{of.linked ? <p>{tr('{name} signs you in to this account. Signing out here does not sign you out there.', { name: of.name })}</p>
				: <form class="fields" onSubmit={go}>
					<p>{tr('After linking, {name} can sign you in to this account.', { name: of.name })}</p>
					<label>{tr('Your password here')}<input type="password" name="link-password" autoComplete="current-password" value={password} onInput={(e) => putPassword(e.currentTarget.value)} /></label>
					<div class="row"><button disabled={!password}>{tr('Link to {name}', { name: of.name })}</button></div>
				</form>}
		</Panel>
	);
}

export function AccountPage({ name, provider, out }: { name: string; provider: Session['oidc']; out: () => Promise<void> }) {
	const [old, putOld] = useState('');
	const [password, putPassword] = useState('');
	const [again, putAgain] = useState('');
	const [message, show] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const differs = again !== '' && again !== password;
	const change = async (e: Event) => {
		e.preventDefault();
		show('');
		fail(null);
		try {
			await send('PUT', '/api/v1/session/password', { old, password });
			show(tr('Changed. All other browsers are signed out.'));
			putOld(''); putPassword(''); putAgain('');
		} catch (why) {
			fail(why as Error);
		}
	};
	const everywhere = async () => {
		fail(null);
		try {
			await send('DELETE', '/api/v1/session/all');
			await out();
		} catch (why) {
			fail(why as Error);
		}
	};
	const field = (label: string, value: string, put: (v: string) => void, fill: string) => (
		<label>{label}<input type="password" autoComplete={fill} value={value} onInput={(e) => put(e.currentTarget.value)} /></label>
	);
	return (
		<Page title={tr('Account')}><div class="pair">
			<Panel title={tr('Password')}>
				<form class="fields" onSubmit={change}>
					<input class="hidden" name="name" autoComplete="username" value={name} readOnly tabIndex={-1} aria-hidden="true" />
					{field(tr('Old password'), old, putOld, 'current-password')}
					{field(tr('New password, ten characters or more'), password, putPassword, 'new-password')}
					{field(tr('Repeat the new password'), again, putAgain, 'new-password')}
					<div class="row"><button class="primary" disabled={!old || password.length < 10 || again !== password}>{tr('Change password')}</button>
						<span role="status" class={differs ? 'badtext' : 'quiet'}>{differs ? tr('The passwords differ.') : message}</span></div>
				</form>
			</Panel>
			<Panel title={name}>
				<dl class="facts"><div><dt>{tr('Role')}</dt><dd>{may.server ? tr('Admin of the server') : may.admin ? tr('admin') : may.write ? tr('editor') : tr('viewer')}</dd></div></dl>
				<p>{tr('Signs you out here and in all other browsers.')}</p>
				<div class="row"><button onClick={everywhere}>{tr('Sign out everywhere')}</button></div>
			</Panel>
			{provider && <Provider of={provider} fail={fail} />}</div>
			{error && <Failure error={error} />}
		</Page>
	);
}
