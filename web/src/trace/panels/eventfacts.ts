// Details of an event beside its text.
import type { Note } from '../../api/api';
import { bytes, count } from '../../i18n/format';
import { tr } from '../../i18n/strings/trace';

const says = (v: unknown): string => (typeof v === 'string' ? v : JSON.stringify(v));

/** Label and value; `named` names a thread. */
export function factsOf(n: Note, named: (tid: number) => string): [string, string][] {
	const held = n.kind === 'contention' && n.value > 0; // its owner is shown by name
	const facts: [string, string][] = Object.entries(n.detail ?? {}).filter(([k]) => !held || k !== 'owner').map(([k, v]) => [k.replaceAll('_', ' '), says(v)]);
	if (held) facts.unshift([tr('held by'), named(n.value)]);
	if (n.kind === 'binder' && n.value > 0) facts.unshift([tr('answered by'), named(n.value)]);
	if (n.kind === 'thread_created' || n.kind === 'wakeup' || (n.kind === 'flow' && n.value > 0)) facts.unshift([tr('to'), named(n.value)]);
	if (n.kind === 'counter') facts.unshift([tr('value'), count(n.value)]);
	if (n.kind === 'io' && n.value >= 0) facts.unshift([tr('size'), bytes(n.value)]);
	if (n.kind === 'state' && n.text === 'running' && n.value >= 0) facts.unshift([tr('on CPU'), String(n.value)]);
	return facts;
}
