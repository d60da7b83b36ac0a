// Signing in by an OpenID provider: where the page sends the browser, and what it says when that failed.
import { call, url } from './api';

/** Why nobody was signed in, by the word behind ?oidc= (oidc.h of the server has the same list). */
const WHYS: Record<string, (name: string) => [what: string, then: string]> = {
	failed: () => ['The server could not sign you in.', 'Try again; its log says more.'],
	away: (name) => [`${name} does not answer.`, 'Try again in a while. Passwords and keys work meanwhile.'],
	refused: (name) => [`${name} did not sign you in.`, 'Either that was cancelled there, or it refused. Try again, or ask whoever runs it.'],
	state: () => ['This sign-in was not begun in this browser, took more than ten minutes, was used already, or you signed out meanwhile.', 'Begin again here. Cookies must be allowed.'],
	token: (name) => [`What ${name} says of you cannot be believed.`, 'Nothing you can put right: ask an admin, whose log says what is wrong.'],
	clock: (name) => [`The clocks of ${name} and of this server differ.`, 'Ask an admin to set them right.'],
	email: () => ['Your address is not one that may sign in here.', 'It must be of the right domain, and verified.'],
	no_name: (name) => [`${name} tells no name that an account could have.`, 'Ask an admin: --oidc-name-claim says which claim is the name.'],
	name_taken: () => ['Somebody here has an account of your name.', 'If it is yours, sign in with its password and link it under your name at the top.'],
	linked: (name) => [`That person of ${name} belongs to another account, or the account to another person.`, 'An admin can put that right under People.'],
	not_invited: () => ['You have no account here.', 'Ask an admin to make one and to link it to you.'],
	disabled: () => ['Your account is disabled.', 'Ask an admin of the server.'],
	busy: () => ['Too many sign-ins at once, or too many failed tries.', 'Wait a minute, then try again.'],
	elsewhere: () => ["Another site's page sent you here to sign in.", 'If you want to, press the button yourself.'],
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
