// Details of an event other than its text, as columns of the table and lines of the details pane.
import type { Note } from '../../api/api';
import { bytes, harmless } from '../../i18n/format';
import { tr } from '../../i18n/strings/trace';
import { counterValue, OUTCOMES } from '../state/notekinds';

export interface Fact {
	key: string; // of all kinds
	label: string;
	text: string;
	short: string; // in a table
	number?: boolean;
}

const plain = (v: unknown): string => (typeof v === 'string' ? v : JSON.stringify(v));

/** Details of the decoder that have other names on the page; others, which an upload may name, keep theirs. The most useful ones are first. */
const LABELS = new Map(Object.entries({
	value: tr('value'), held_by: tr('held by'), answered_by: tr('answered by'), to: tr('to'), size: tr('size'), cpu: tr('on CPU'), method: tr('waits in'), owner_method: tr('owner is in'),
	owner: tr('held by'), waiters: tr('other waiters'), outcome: tr('result'), jank: tr('jank'), presented: tr('presented'), call: tr('call'), timeout_ms: tr('timeout'), offset: tr('offset'), caller: tr('kernel function'),
	code: tr('code'), track: tr('track'), category: tr('category'), to_pid: tr('to process'), iowait: tr('waits for I/O'), process: tr('process'), pid: tr('process'),
}));
const RANK = [...LABELS.keys()];
const rankOf = (key: string) => (key === 'pid' ? RANK.length + 1 : RANK.includes(key) ? RANK.indexOf(key) : RANK.length);

/** "void com.acme.Store.put(java.lang.String, int)" → "Store.put(String, int)", "com.acme.Store.put" → "Store.put"; other texts are unchanged. */
export function shortSignature(text: string): string {
	const [, owner, method, , parameters] = /^(?:\S+ )?(?:[\w$]+\.)*([\w$]+)\.([\w$<>-]+)(\((.*)\))?$/.exec(text) ?? [];
	return !owner ? text : `${owner}.${method}${parameters === undefined ? '' : `(${parameters.split(', ').map((p) => p.replace(/^.*\./, '')).join(', ')})`}`;
}

const SOURCES = new Map([['method', 'source'], ['owner_method', 'owner_source']]);

function textOf(key: string, v: unknown, detail: Record<string, unknown>): string {
	const source = SOURCES.get(key);
	if (source && detail[source]) return `${plain(v)} ${plain(detail[source])}`;
	if (key === 'timeout_ms' && typeof v !== 'object') return `${plain(v)} ms`;
	return key === 'iowait' ? (v ? tr('yes') : tr('no')) : plain(v);
}

/** `named` names a thread. */
export function factsOf(n: Note, named: (tid: number) => string): Fact[] {
	const detail = (n.detail ?? {}) as Record<string, unknown>;
	const without = new Set(['exact', ...(n.kind === 'contention' && n.value > 0 ? ['owner'] : []), ...(Number(detail.waiters) === 0 ? ['waiters'] : []),
		...(detail.method ? ['source'] : []), ...(detail.owner_method ? ['owner_source'] : [])]);
	const facts: Fact[] = [];
	const add = (key: string, text: string, number = false, short = text) => facts.push({ key, label: LABELS.get(key) ?? harmless(key.replaceAll('_', ' ')), text: harmless(text), short: harmless(short), number });
	if (n.kind === 'counter') add('value', counterValue(n.text, Number(detail.exact ?? n.value)), true);
	if (n.outcome) add('outcome', OUTCOMES[n.outcome]);
	if (n.kind === 'contention' && n.value > 0) add('held_by', named(n.value));
	if (n.kind === 'binder' && n.value > 0) add('answered_by', named(n.value));
	if (n.kind === 'thread_created' || n.kind === 'wakeup' || (n.kind === 'flow' && n.value > 0)) add('to', named(n.value));
	if (n.kind === 'io' && n.value >= 0) add('size', bytes(n.value), true);
	if (n.kind === 'state' && n.text === 'running' && n.value >= 0) add('cpu', String(n.value), true);
	for (const [key, v] of Object.entries(detail)) if (!without.has(key)) add(key, textOf(key, v, detail), false, SOURCES.has(key) && shortSignature(plain(v)) || undefined);
	return facts.sort((a, b) => rankOf(a.key) - rankOf(b.key));
}

interface FactColumns {
	columns: Pick<Fact, 'key' | 'label' | 'number'>[];
	rest: Set<string>; // keys that share the last column
}

/** The first `most` details that events have become columns. A process that all of them share is omitted. */
export function columnsOf(all: Fact[][], most: number): FactColumns {
	const met = new Map<string, { fact: Fact; texts: Set<string> }>();
	for (const facts of all)
		for (const fact of facts) {
			const m = met.get(fact.key) ?? { fact, texts: new Set() };
			if (m.texts.size < 2) m.texts.add(fact.text);
			met.set(fact.key, m);
		}
	const pid = met.get('pid');
	if (pid?.texts.size === 1 && all.length > 1) met.delete('pid');
	const keys = [...met.values()].map((m) => m.fact).sort((a, b) => rankOf(a.key) - rankOf(b.key));
	return { columns: keys.slice(0, most).map(({ key, label, number }) => ({ key, label, number })), rest: new Set(keys.slice(most).map((f) => f.key)) };
}
