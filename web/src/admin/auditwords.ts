// Texts for entries of the audit log.
import { COMMA, percent, when } from '../i18n/format';
import { tr } from '../i18n/strings/manage';
import { FIELDS, shown } from './rules';

export interface Entry {
	id: number; at_ms: number; project: string; actor: { kind: string; id: string; name: string };
	address: string; request: string; action: string; target: string; facts: Record<string, string>;
}

export const SORTS: [action: string, shown: string][] = [['', tr('everything')], ['key', tr('keys')], ['user', tr('accounts')], ['member', tr('roles')], ['session', tr('signing in and out')],
	['identity', tr('provider links')], ['link', tr('sign-in links')], ['trace', tr('traces')], ['upload', tr('uploads')], ['decoded', tr('decoded files')], ['mapping', tr('mappings')], ['setting', tr('settings')], ['annotation', tr('annotations')],
	['filter', tr('saved lists')], ['webhook', 'Webhooks'], ['alert', tr('alert rules')], ['project', tr('projects')], ['audit', tr('this log')], ['catalogue', tr('the catalogue')]];

const KINDS: Record<string, string> = { cli: tr('command line, '), key: tr('key '), link: tr('sign-in link'), server: tr('the server itself'), nobody: tr('unknown') };

const DONE: Record<string, string> = {
	'session.start': tr('signed in'), 'session.end': tr('signed out'), 'session.end_all': tr('signed out everywhere'), 'link.create': tr('created a sign-in link'),
	'key.create': tr('created a key'), 'key.rotate': tr('rotated a key'), 'key.revoke': tr('revoked a key'),
	'user.create': tr('created an account'), 'user.change': tr('changed an account'), 'user.remove': tr('removed an account'), 'member.set': tr('granted a role'), 'member.remove': tr('removed a role'),
	'identity.link': tr('linked an account to the provider'), 'identity.unlink': tr('unlinked an account from the provider'),
	'project.create': tr('created a project'), 'project.delete': tr('deleted a project'), 'project.import': tr('imported a project'), 'mapping.set': tr('sent a mapping'), 'build.commit': tr('set the commit of a build'), 'setting.set': tr('changed a setting'), 'regression.change': tr('updated a regression'), 'anr.change': tr('updated an ANR group'),
	'trace.edit': tr('edited a trace'), 'trace.delete': tr('deleted a trace'), 'trace.requeue': tr('requested another decode of a trace'), 'upload.delete': tr('deleted an upload'),
	'annotation.create': tr('annotated a trace'), 'annotation.edit': tr('changed an annotation'), 'annotation.delete': tr('deleted an annotation'),
	'alert.create': tr('created an alert rule'), 'alert.change': tr('changed an alert rule'), 'alert.remove': tr('removed an alert rule'), 'ticket.create': tr('created a ticket'),
	'webhook.create': tr('created a webhook'), 'webhook.change': tr('changed a webhook'), 'webhook.remove': tr('removed a webhook'), 'webhook.test': tr('tested a webhook'), 'webhook.redeliver': tr('redelivered a webhook event'), 'webhook.pause': tr('paused a failing webhook'), 'digest.send': tr('sent a digest'),
	'filter.set': tr('saved a list'), 'filter.delete': tr('deleted a saved list'), 'audit.expire': tr('deleted old audit entries'), 'catalogue.migrate': tr('migrated the data'), 'catalogue.rebuild': tr('rebuilt the catalogue from records'),
};

/** Actions that came later read as they are written, without their punctuation. */
export function did(e: Entry): string {
	return DONE[e.action] ?? e.action.replace(/[._]/g, ' ');
}

export function who(e: Entry): string {
	return e.actor.kind === 'user' ? e.actor.name : `${KINDS[e.actor.kind] ?? ''}${e.actor.name || e.actor.id}`;
}

/** The entry with the names of the project's keys, which are stored as ids. */
export function named(e: Entry, keys: Map<string, string>): Entry {
	const name = e.facts.name || keys.get(e.target);
	const facts = Object.fromEntries(Object.entries(e.facts).map(([k, v]) => [k, keys.get(v) ?? v]));
	return { ...e, actor: { ...e.actor, name: e.actor.name || (keys.get(e.actor.id) ?? '') }, facts: name ? { ...facts, name } : facts };
}

/** The entry of a setting with only the members that an older entry has otherwise; one that was removed is null. */
export function since(e: Entry, older?: Entry): Entry {
	try {
		const was = JSON.parse(older!.facts.value) as Record<string, unknown>;
		const now = Object.entries({ ...Object.fromEntries(Object.keys(was).map((k) => [k, null])), ...JSON.parse(e.facts.value) as object }).filter(([k, v]) => JSON.stringify(was[k]) !== JSON.stringify(v));
		return { ...e, facts: { ...e.facts, value: now.length ? JSON.stringify(Object.fromEntries(now)) : '' } };
	} catch {
		return e; // no older entry, or a long value that was cut
	}
}

const SETTINGS: Record<string, string> = { retention: tr('retention rules'), regressions: tr('regression thresholds'), capture: tr('capture rules'), detectors: tr('detectors'), digest: tr('digest') };

/** The subject of the change: its name, if the entry has one. */
export function target(e: Entry): string {
	if (e.action === 'setting.set') return SETTINGS[e.target] ?? e.target;
	return (/^(key|session|alert|webhook)\./.test(e.action) && e.facts.name) || (e.action === 'trace.delete' && [e.facts.app, e.facts.scenario].filter(Boolean).join(' ')) || e.target;
}

const NAMED: Record<string, string> = { scope: tr('scope'), expires_ms: tr('expires'), kind: tr('kind'), role: tr('role'), project: tr('project'), build_id: tr('build'), name: tr('name'), title: tr('title'), status: tr('status'), count: tr('count'), bytes: tr('bytes'), owner: tr('owner'), fixed_in: tr('fixed in'), muted_until_ms: tr('muted until'), created_ms: tr('created'), note: tr('note'),
	device: tr('device'), host: tr('host'), paused: tr('paused:'), sent_by: tr('sent by'), pinned: tr('pinned'), old_expires_ms: tr('old secret until'), rules: tr('rules'), keep_first_anr: tr('Keep the first trace of each ANR group'), keep_annotated: tr('Keep traces with a title or annotations'),
	min_change: tr('minimum change'), certainty: tr('minimum certainty'), min_traces: tr('minimum traces per side'), min_days: tr('minimum days per side'), window_days: tr('compared days'), min_share: tr('minimum change of a method') };

const STATES: Record<string, string> = { open: tr('open'), acknowledged: tr('acknowledged'), fixed: tr('fixed'), returned: tr('returned') };

const DIGITS = 12; // of a number: 0.1, not 0.10000000000000001

/* A member of a setting in the terms of the form that sets it; of a list of rules their names. */
function member(name: string, v: unknown): string {
	const field = FIELDS.find((f) => f.key === name);
	const words = NAMED[name] ?? name.replaceAll('_', ' ');
	if (field) return `${NAMED[name] ?? field.label}: ${v === null ? field.empty : `${shown(Number(v), field.scale)} ${field.unit}`}`;
	if (name === 'max_age_s') return tr('polled every {n} minutes', { n: Number(v) / 60 });
	if (name === 'min_change' || name === 'min_share') return `${words} ${percent(Number(v))}`;
	if (v === null || v === '') return `${words} ${tr('none')}`;
	if (Array.isArray(v)) return `${words} ${v.map((r) => (r as { name?: string }).name ?? (r as { title?: string }).title ?? JSON.stringify(r)).join(COMMA) || tr('none')}`;
	if (typeof v === 'boolean') return `${words}: ${v ? tr('yes') : tr('no')}`;
	return `${words} ${typeof v === 'number' ? Number(v.toPrecision(DIGITS)) : typeof v === 'object' ? JSON.stringify(v) : v}`;
}

/* A setting is JSON; of a long one that was cut, the names of the rules in it are shown. */
function setting(value: string): string {
	try {
		return Object.entries(JSON.parse(value) as object).map(([k, v]) => member(k, v)).join(COMMA) || value;
	} catch {
		const names = [...value.matchAll(/"(?:name|title)":"([^"]+)"/g)].map((m) => m[1]);
		return names.length ? `${tr('rules')} ${names.join(COMMA)}, …` : value;
	}
}

/* Unknown members are shown unchanged. */
function fact(name: string, value: string): string {
	const words = NAMED[name] ?? name.replace(/_ms$/, '').replaceAll('_', ' ');
	if (name === 'expires_ms' && value === '0') return tr('never expires');
	if (name.endsWith('_ms')) return `${words} ${value === '0' ? tr('never') : when(Number(value))}`;
	if (name === 'value') return setting(value);
	if (name === 'status') return `${words} ${STATES[value] ?? value}`;
	if (name === 'how') return tr('by {value}', { value });
	return value === 'true' ? words : value === 'false' ? tr('not {words}', { words }) : `${words} ${value}`;
}

/** The details, without those that target() shows. */
export function facts(e: Entry): string {
	return Object.entries(e.facts).filter(([k, v]) => v !== '' && !(k === 'name' && v === target(e)) && !(e.action === 'trace.delete' && /^(app|scenario)$/.test(k))).map(([k, v]) => fact(k, v)).join(COMMA);
}
