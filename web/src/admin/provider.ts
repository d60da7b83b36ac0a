// Signing in by an OpenID provider: where the page sends the browser, and what it says when that failed.
import { call, url } from '../api/api';
import { tr } from '../i18n/strings/frame';

/** Why nobody was signed in, by the word behind ?oidc= (oidc.h of the server has the same list). */
const WHYS: Record<string, (name: string) => [what: string, then: string]> = {
	failed: () => [tr('The server could not sign you in.'), tr('Try again; its log says more.')],
	away: (name) => [tr('{name} does not answer.', { name }), tr('Try again in a while. Passwords and keys work meanwhile.')],
	refused: (name) => [tr('{name} did not sign you in.', { name }), tr('Either that was cancelled there, or it refused. Try again, or ask whoever runs it.')],
	state: () => [tr('This sign-in was not begun in this browser, took more than ten minutes, was used already, or you signed out meanwhile.'), tr('Begin again here. Cookies must be allowed.')],
	token: (name) => [tr('What {name} says of you cannot be believed.', { name }), tr('Nothing you can put right: ask an admin, whose log says what is wrong.')],
	clock: (name) => [tr('The clocks of {name} and of this server differ.', { name }), tr('Ask an admin to set them right.')],
	email: () => [tr('Your address is not one that may sign in here.'), tr('It must be of the right domain, and verified.')],
	no_name: (name) => [tr('{name} tells no name that an account could have.', { name }), tr('Ask an admin: --oidc-name-claim says which claim is the name.')],
	name_taken: () => [tr('Somebody here has an account of your name.'), tr('If it is yours, sign in with its password and link it under your name at the top.')],
	linked: (name) => [tr('That person of {name} belongs to another account, or the account to another person.', { name }), tr('An admin can put that right under People.')],
	not_invited: () => [tr('You have no account here.'), tr('Ask an admin to make one and to link it to you.')],
	disabled: () => [tr('Your account is disabled.'), tr('Ask an admin of the server.')],
	busy: () => [tr('Too many sign-ins at once, or too many failed tries.'), tr('Wait a minute, then try again.')],
	elsewhere: () => [tr("Another site's page sent you here to sign in."), tr('If you want to, press the button yourself.')],
};

export function refusal(word: string, name: string): [what: string, then: string] {
	return (Object.hasOwn(WHYS, word) ? WHYS[word] : WHYS.failed)(name);
}

/** A visit, not a request: the provider's own page comes next. `next` is where it goes on afterwards. */
export function beginAddress(next: string): string {
	return `/api/v1/oidc/begin?next=${encodeURIComponent(next)}`;
}

/** Links the account of that password to the person whom the provider signs in next. */
export async function link(password: string): Promise<void> {
	const answer = await call(url('/api/v1/oidc/link', { next: '/account' }), { method: 'POST', body: JSON.stringify({ password }) });
	location.assign(((await answer.json()) as { location: string }).location);
}
