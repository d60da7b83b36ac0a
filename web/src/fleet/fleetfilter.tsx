// What of the fleet a page is about: app, version, scenario, class of device and how many days, in the address.
import { COMMA, DAY_MS } from '../i18n/format';
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { manage } from '../api/manage';
import { CLASSES, classWord } from '../api/classes';
import { PROCESSING_MS, usePolling } from '../ui/polling';
import { narrow } from '../ui/narrow';
import { useLoad, type Loaded } from '../ui/parts';
import { number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/fleet';
import { newestFirst } from '../api/traces';

const DAYS = [7, 30, 90, 400];

export function useDays(): number {
	const n = number('days');
	return n !== null && n >= 1 && n <= 400 ? n : 30;
}

export const KEPT = ['app', 'version_name', 'scenario', 'class', 'os', 'build_id', 'label', 'days', 'project'];

/** The first selected day, and the number of days until today; UTC. */
export function span(days: number): { first: number; days: number } {
	return { first: (Math.floor(Date.now() / DAY_MS) - days + 1) * DAY_MS, days };
}

/** The texts of the filter, without empty ones. */
export function namedParams(): Record<string, string> {
	const named = { app: text('app'), version_name: text('version_name'), scenario: text('scenario'), class: text('class'), os: text('os'), build_id: text('build_id') };
	return Object.fromEntries(Object.entries(named).filter(([, v]) => v));
}

/** How often processing of the project's traces ended: their numbers are then loaded again. */
export const processed = signal(0);

/** The filter as the server takes it, and a name for it that changes with the address and when processing ends. */
export function useFleet(): { params: Record<string, string | number>; key: string; days: number } {
	const days = useDays();
	const params = namedParams();
	return { params: { ...params, since: span(days).first }, key: JSON.stringify([params, days, processed.value]), days };
}

const useValues = (column: string): string[] => {
	const load = useLoad(column, () => manage.facets(column));
	const values = load.value?.values.map((v) => v.value).filter(Boolean) ?? [];
	return column === 'version_name' ? newestFirst(values) : values;
};

function Pick({ name, label }: { name: string; label: string }) {
	const values = useValues(name);
	const now = text(name);
	return (
		<label class="inline">{label}
			<select name={name} value={now} onChange={(e) => set({ [name]: e.currentTarget.value }, true)}>
				<option value="">{name === 'app' && values.length > 1 ? tr('All apps ({n})', { n: values.length }) : tr('any')}</option>
				{(now && !values.includes(now) ? [now, ...values] : values).map((v) => <option key={v} value={v}>{v}</option>)}
			</select></label>
	);
}

export function FleetFilter() {
	const days = useDays();
	const fields = (
		<div class="row fleetfilter">
			<Pick name="app" label={tr('App')} />
			<Pick name="version_name" label={tr('Version')} />
			<Pick name="scenario" label={tr('Scenario')} />
			<label class="inline">{tr('Device class')}{' '}<select name="class" value={text('class')} onChange={(e) => set({ class: e.currentTarget.value }, true)}>
				<option value="">{tr('any')}</option>{CLASSES.map((c) => <option key={c} value={c}>{classWord(c)}</option>)}</select></label>
			<label class="inline">{tr('Time')}{' '}<select name="days" value={days} onChange={(e) => set({ days: Number(e.currentTarget.value) === 30 ? null : e.currentTarget.value }, true)}>
				{(DAYS.includes(days) ? DAYS : [days, ...DAYS]).map((n) => <option key={n} value={n}>{tr.many(n, '{n} day', '{n} days')}</option>)}</select></label>
		</div>
	);
	if (!narrow.value) return fields;
	return <details class="folded"><summary>{tr('Filter')} <span class="quiet">{[...Object.values(namedParams()), tr.many(days, '{n} day', '{n} days')].join(COMMA)}</span></summary>{fields}</details>;
}

export interface Day { day_ms: number; count: number }

/** Bars of a time's days, the last one today; in months when there are too many. `change`: counts are durations, longer since this day. */
export function Trend({ trend, days, name, change, high = 20, wide = 150 }: { trend: Day[]; days: number; name: string; change?: number; high?: number; wide?: number }) {
	const { first } = span(days);
	const bars = Math.min(days, 60);
	const sums = Array<number>(bars).fill(0);
	for (const d of trend) {
		const at = Math.floor(((d.day_ms - first) / DAY_MS / days) * bars);
		if (at >= 0 && at < bars) sums[at] += d.count;
	}
	const most = Math.max(1, ...sums);
	const step = wide / bars;
	const total = sums.reduce((a, b) => a + b, 0);
	const label = change ? tr('{name} by day', { name }) : tr('{name}: {total} in {days} days, at most {max} {days2}', { name, total, days, max: Math.max(...sums), days2: bars === days ? tr('per day') : tr('per bar') });
	return (
		<svg class="bars" role="img" aria-label={label} width={wide} height={high}>
			{sums.map((n, i) => <rect key={i} x={i * step} width={Math.max(1, step - 1)} y={high - Math.max(1, (n / most) * high)} height={Math.max(1, (n / most) * high)} class={!n ? 'none' : change && first + (i * days * DAY_MS) / bars >= change ? 'after' : ''} />)}
		</svg>
	);
}

/** In place of rows, if there are none: `unmatched` and a button if there is a filter, otherwise `none`. `also`: filters of this page only. */
export function NoRows({ unmatched, none, also = [] }: { unmatched: string; none: ComponentChildren; also?: string[] }) {
	const narrowing = [...KEPT, ...also].filter((k) => k !== 'project' && text(k));
	if (narrowing.length > 0) return <p class="quiet">{unmatched}{' '}<button class="small" onClick={() => set(Object.fromEntries(narrowing.map((k) => [k, null])), true)}>{tr('Clear the filter')}</button></p>;
	return <p class="quiet">{none}</p>;
}

/** Shows the number of ANR reports that are not grouped by the current rules and names, and loads the groups again until none is left. */
export function Ungrouped({ load }: { load: Loaded<{ pending: number }> }) {
	const n = load.value?.pending;
	usePolling(load, n && PROCESSING_MS);
	return n ? <p class="quiet" role="status">{tr.many(n, '{n} report is still being grouped.', '{n} reports are still being grouped.')}</p> : null;
}
