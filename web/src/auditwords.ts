// What entries of the audit say, in words for people.
import { when } from './format';

export interface Entry {
	id: number; at_ms: number; project: string; by: { kind: string; id: string; name: string };
	address: string; request: string; action: string; target: string; facts: Record<string, string>;
}

export const SORTS: [action: string, shown: string][] = [['', 'everything'], ['key', 'keys'], ['user', 'accounts'], ['member', 'roles'], ['session', 'signing in and out'],
	['identity', 'links to the provider'], ['link', 'sign-in links'], ['trace', 'traces'], ['upload', 'uploads'], ['decoded', 'decoded files'], ['mapping', 'mappings'], ['setting', 'settings'], ['annotation', 'annotations'],
	['filter', 'saved lists'], ['webhook', 'webhooks'], ['project', 'projects'], ['audit', 'this record'], ['catalogue', 'the catalogue']];

const KINDS: Record<string, string> = { cli: 'command line, ', key: 'key ', link: 'sign-in link', server: 'the server itself', nobody: 'nobody known' };

const DONE: Record<string, string> = {
	'session.start': 'signed in', 'session.end': 'signed out', 'session.end_all': 'signed out everywhere', 'link.create': 'made a sign-in link',
	'key.create': 'made a key', 'key.rotate': 'rotated a key', 'key.revoke': 'revoked a key',
	'user.create': 'made an account', 'user.change': 'changed an account', 'user.remove': 'removed an account', 'member.set': 'gave a role', 'member.remove': 'took a role',
	'identity.link': 'linked an account to the provider', 'identity.unlink': 'took an account off the provider',
	'project.create': 'made a project', 'project.import': 'imported a project', 'mapping.set': 'sent a mapping', 'build.commit': 'said what a build is made of', 'setting.set': 'changed a setting', 'regression.change': 'answered a regression',
	'trace.mark': 'marked a trace', 'trace.delete': 'deleted a trace', 'trace.requeue': 'had a trace decoded again', 'upload.delete': 'deleted an upload',
	'annotation.create': 'annotated a trace', 'annotation.edit': 'changed an annotation', 'annotation.delete': 'deleted an annotation',
	'webhook.create': 'made a webhook', 'webhook.change': 'changed a webhook', 'webhook.remove': 'removed a webhook', 'webhook.test': 'tested a webhook', 'webhook.redeliver': 'told a webhook once more', 'webhook.pause': 'paused a webhook that fails',
	'filter.set': 'saved a list', 'filter.delete': 'deleted a saved list', 'audit.expire': 'forgot old changes', 'catalogue.migrate': 'copied everything to another place',
};

/** Actions that came later read as they are written, without their punctuation. */
export function did(e: Entry): string {
	return DONE[e.action] ?? e.action.replace(/[._]/g, ' ');
}

export function who(e: Entry): string {
	return e.by.kind === 'user' ? e.by.name : `${KINDS[e.by.kind] ?? ''}${e.by.name || e.by.id}`;
}

/** What it was done to: the name, where the entry knows one. */
export function target(e: Entry): string {
	return (e.action.startsWith('key.') && e.facts.name) || e.target;
}

function fact(name: string, value: string): string {
	const words = name.replaceAll('_', ' ');
	if (name.endsWith('_ms')) return `${words.slice(0, -3)} ${value === '0' ? 'never' : when(Number(value))}`;
	if (name === 'how') return `by ${value}`;
	return value === 'true' ? words : value === 'false' ? `not ${words}` : `${words} ${value}`;
}

/** The rest of what it says; what target() told already is left out. */
export function facts(e: Entry): string {
	return Object.entries(e.facts).filter(([k, v]) => v !== '' && !(k === 'name' && v === target(e))).map(([k, v]) => fact(k, v)).join(', ');
}
