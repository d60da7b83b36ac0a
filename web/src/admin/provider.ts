// Sign-in by an OpenID provider: the address to visit, and the messages for failures.
import { send } from '../api/api';
import { tr } from '../i18n/strings/frame';

/** Messages for failed sign-ins, by the value of ?oidc= (the server's oidc.h has the same list). */
const WHYS: Record<string, (name: string) => [what: string, then: string]> = {
	failed: () => [tr('The server could not sign you in.'), tr('Try again. The server log has details.')],
	away: (name) => [tr('{name} is not responding.', { name }), tr('Try again later. Passwords and keys still work.')],
	refused: (name) => [tr('{name} did not sign you in.', { name }), tr('The sign-in was cancelled or refused there. Try again, or ask its administrator.')],
	state: () => [tr('This sign-in was not started in this browser, took more than ten minutes, was already used, or you signed out in the meantime.'), tr('Start again here. Cookies must be allowed.')],
	token: (name) => [tr('The response from {name} could not be verified.', { name }), tr('Ask an admin: the server log has the reason.')],
	clock: (name) => [tr('The clocks of {name} and of this server differ.', { name }), tr('Ask an admin to correct them.')],
	email: () => [tr('Your email address is not allowed to sign in here.'), tr('It must belong to an allowed domain and be verified.')],
	no_name: (name) => [tr('{name} sends no name that can be used for an account.', { name }), tr('Ask an admin: --oidc-name-claim sets the claim that holds the name.')],
	name_taken: () => [tr('An account with your name already exists.'), tr('If it is yours, sign in with its password and link it from the menu with your name.')],
	linked: (name) => [tr('This {name} identity is linked to another account, or the account is linked to another identity.', { name }), tr('An admin can correct this under People.')],
	not_invited: () => [tr('You do not have an account here.'), tr('Ask an admin to create one and link it to you.')],
	disabled: () => [tr('Your account is disabled.'), tr('Ask an admin of the server.')],
	busy: () => [tr('Too many concurrent sign-ins, or too many failed attempts.'), tr('Wait a minute, then try again.')],
	elsewhere: () => [tr("A page of another site sent you here to sign in."), tr('To sign in, press the button.')],
};

export function refusal(word: string, name: string): [what: string, then: string] {
	return (Object.hasOwn(WHYS, word) ? WHYS[word] : WHYS.failed)(name);
}

/** Navigates, because the provider's page follows. `next`: the address after the sign-in. */
export function beginAddress(next: string): string {
	return `/api/v1/oidc/begin?next=${encodeURIComponent(next)}`;
}

/** Links the account of that password to the person whom the provider signs in next. */
export async function link(password: string): Promise<void> {
	const answer = await send('POST', '/api/v1/oidc/link', { password }, { next: '/account' });
	location.assign(((await answer.json()) as { location: string }).location);
}
