// Open items: regressions, ANR groups and alerts of the server, and the decisions about them.
import { DAY_MS } from '../i18n/format';
import { get, send } from '../api/api';
import { tr } from '../i18n/strings/inbox';
import type { Day } from './fleetfilter';

export interface Item {
	kind: 'regression' | 'anr' | 'alert'; id: string; title: string; app: string; scenario: string; version: string;
	status: 'open' | 'acknowledged' | 'fixed' | 'returned'; fixed_in: string; owner: string; note: string; muted_until_ms: number; first_ms: number; last_ms: number;
	regression?: { kind: 'slower' | 'new'; base: string; change: number; before_ns: number; after_ns: number; percentile: number };
	anr?: { kind: string; count: number; users: number; trend: Day[] };
	alert?: { kind: string; percentile: number; unit: 'ms' | 'share' | 'times'; anr: string; trace: string; value: number; threshold: number; traces: number };
}
export const BOXES = ['live', 'new', 'acknowledged', 'returned', 'fixed', 'muted', 'all'] as const;
export type Box = (typeof BOXES)[number];
export interface Inbox { items: Item[]; counts: Record<Box, number>; total: number; next_cursor: string | null }

export interface Decision { status?: Item['status']; owner?: string; note?: string; fixed_in?: string; muted_until_ms?: number }

const NEWEST = 1000;
export const MUTED_DAYS = 7;

export const decide = (items: Pick<Item, 'kind' | 'id'>[], what: Decision): Promise<unknown> =>
	send('PATCH', '/api/v1/inbox', { items: items.map(({ kind, id }) => ({ kind, id })), ...what }).then((answer) => answer.text()); // an unread body would keep the connection in use

/** Names the duration of a scenario's traces, which is compared if no method is named. */
export const durationName = (scenario: string): string => (scenario ? tr('Duration of {scenario}', { scenario }) : tr('Trace duration'));

const isAs = (i: Item, what: Decision): boolean =>
	(!what.status || i.status === what.status) && (what.owner === undefined || i.owner === what.owner) && (what.muted_until_ms === undefined || i.muted_until_ms === what.muted_until_ms);

/** Reverts a decision, except of items that were changed again. Items with the same previous values share a request. */
export async function revert(before: Item[], what: Decision): Promise<void> {
	const groups = new Map<string, Item[]>();
	const { items: now } = await get<Inbox>('/api/v1/inbox', { state: 'all', limit: NEWEST });
	const changed = (i: Item) => now.some((n) => n.kind === i.kind && n.id === i.id && !isAs(n, what));
	for (const i of before.filter((i) => !changed(i))) {
		const had = JSON.stringify({ ...(what.status && { status: i.status, fixed_in: i.fixed_in }), ...(what.owner !== undefined && { owner: i.owner }), ...(what.muted_until_ms !== undefined && { muted_until_ms: i.muted_until_ms }) });
		groups.set(had, [...(groups.get(had) ?? []), i]);
	}
	for (const [had, items] of groups) await decide(items, JSON.parse(had) as Decision);
}

/** The status "returned" is set only by the server, so it cannot be restored. */
export const mayRevert = (before: Item[], what: Decision): boolean => !what.status || before.every((i) => i.status !== 'returned');

export const inMuteDays = (): number => Date.now() + MUTED_DAYS * DAY_MS;
export const isMuted = (i: { muted_until_ms: number }): boolean => i.muted_until_ms > Date.now();

export const BOX_NAMES: Record<Box, string> = { live: tr('Unresolved'), new: tr('New'), acknowledged: tr('Acknowledged'), returned: tr('Returned'), fixed: tr('Fixed'), muted: tr('Muted'), all: tr('All') };
export const STATUS_NAMES: Record<Item['status'], string> = { open: tr('New'), acknowledged: tr('Acknowledged'), fixed: tr('Fixed'), returned: tr('Returned') };

/** Classes of a state's mark. */
export const TONES: Record<Item['status'], string> = { open: 'queued', acknowledged: '', fixed: 'ready', returned: 'failed' };

export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Its state as text, with the version of a fix and the end of muting. */
export function stateOf(i: Pick<Item, 'status' | 'fixed_in' | 'muted_until_ms'>): string {
	const fixed = (i.status === 'fixed' || i.status === 'returned') && i.fixed_in ? tr('{state}, fixed in {version}', { state: STATUS_NAMES[i.status], version: i.fixed_in }) : STATUS_NAMES[i.status];
	return isMuted(i) ? tr('{state}, muted until {day}', { state: fixed, day: dayOf(i.muted_until_ms) }) : fixed;
}

/** Its state and owner as text; '' if nothing was decided. */
export function decisionOf(i: Pick<Item, 'status' | 'fixed_in' | 'muted_until_ms' | 'owner'>): string {
	return [(i.status !== 'open' || isMuted(i)) && stateOf(i), i.owner].filter(Boolean).join(' · ');
}
