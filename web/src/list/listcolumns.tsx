// The columns of the list of traces: which there are, which are shown.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Trace } from '../api/api';
import { bytes, COMMA, count, when } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { narrow } from '../ui/narrow';
import { Popover } from '../ui/popover';
import { link, set, text } from '../ui/route';
import { Pinned, Tag } from '../ui/tag';
import { tr } from '../i18n/strings/list';
import { lengthOf, several, stateName } from '../api/traces';

export interface Column {
	key: string;
	label: string;
	sort?: string; // by which the server can order
	num?: boolean;
	cell: (t: Trace) => ComponentChildren;
}

/** The state of a trace, unless it is ready and complete; `all`: also then. */
function State({ t, all }: { t: Trace; all?: boolean }) {
	const flaws = (t.summary?.losses ?? 0) + (t.summary?.repairs ?? 0);
	if (t.state === 'ready' && flaws === 0 && !all) return null;
	const shown = t.state === 'ready' && !all ? '' : `${stateName(t.state)}${t.state === 'queued' && t.error ? tr(', delayed') : ''}`;
	const repaired = t.state === 'ready' && flaws > 0 ? tr.many(flaws, '{n} repair', '{n} repairs') : '';
	return (
		<span class={`state ${repaired && !all ? 'repair' : t.state}`} title={t.error ? serverText(t.error.message) : undefined}>{[shown, repaired].filter(Boolean).join(COMMA)}</span>
	);
}

export interface Shared { app: boolean; place: boolean }

/** Values that rows omit: the app if all rows have the same one, version and device if they have columns. */
export function sharedOf(list: Trace[], place = !narrow.value): Shared {
	return { app: list.length > 1 && list.every((t) => t.meta.app === list[0].meta.app), place };
}

/** The text that distinguishes a trace: its title or scenario first, its app only if there are several. */
export function NameCell({ t, shared }: { t: Trace; shared: Shared }) {
	const m = t.meta;
	const name = t.title || (t.anr_title && serverText(t.anr_title)) || m.scenario || (m.process !== m.app && m.process) || m.app || t.id;
	const rest = [m.scenario, !shared.app && m.app, m.process !== m.app && m.process, !shared.place && m.version_name, !shared.place && m.device, name === t.id && t.summary?.format].filter((x): x is string => Boolean(x) && x !== name);
	return <div class="named">
		{t.pinned && <Pinned />}
		<a class="rowlink" href={link(`/traces/${t.id}`)} title={name}>{name}</a>
		{rest.map((x) => <span class="quiet" key={x} title={x}>{x}</span>)}
		<State t={t} />
		{t.annotations > 0 && <span class="quiet">{several(t.annotations, 'annotation')}</span>}
		{t.tags.map((tag) => <Tag key={tag} tag={tag} />)}
	</div>;
}

/** When the project's rules delete it, or a part of it alone. */
function Expires({ t }: { t: Trace }) {
	const part = !t.expires_ms && (t.upload_expires_ms ?? t.decoded_expires_ms);
	if (t.expires_ms) return <>{when(t.expires_ms)}</>;
	if (part) return <span class="quiet" title={tr('The trace itself is kept')}>{t.upload_expires_ms ? tr('raw') : tr('decoded')} {when(part)}</span>;
	return <span class="quiet">{t.pinned ? tr('pinned') : t.first_anr ? tr('first of its ANR group') : ''}</span>;
}

/** System traces without method calls show a dash. */
export const callsOf = (s: NonNullable<Trace['summary']>): string => (s.slices > 0 ? count(s.slices) : '–');

const of = (f: (s: NonNullable<Trace['summary']>) => string) => (t: Trace) => (t.summary ? f(t.summary) : '');

export const COLUMNS: Column[] = [
	{ key: 'app', label: tr('App'), cell: (t) => t.meta.app },
	{ key: 'version', label: tr('Version'), cell: (t) => t.meta.version_name },
	{ key: 'scenario', label: tr('Scenario'), cell: (t) => t.meta.scenario },
	{ key: 'device', label: tr('Device'), cell: (t) => <span title={t.meta.device}>{t.meta.device}{t.meta.os ? <span class="quiet"> {t.meta.os}</span> : null}</span> },
	{ key: 'state', label: tr('State'), cell: (t) => <State t={t} all /> },
	{ key: 'duration', label: tr('Duration'), sort: 'duration', num: true, cell: of(lengthOf) },
	{ key: 'calls', label: tr('Calls, samples'), sort: 'slices', num: true, cell: of(callsOf) },
	{ key: 'upload', label: tr('Upload'), sort: 'bytes', num: true, cell: (t) => bytes(t.upload_bytes) },
	{ key: 'arrived', label: tr('Arrived'), sort: 'created', num: true, cell: (t) => when(t.created_ms) },
	{ key: 'expires', label: tr('Expires'), num: true, cell: (t) => <Expires t={t} /> },
	{ key: 'recorded', label: tr('Recorded'), num: true, cell: (t) => (t.meta.recorded_ms ? when(t.meta.recorded_ms) : '') },
	{ key: 'build', label: tr('Build'), cell: (t) => t.meta.build_id },
	{ key: 'process', label: tr('Process'), cell: (t) => t.meta.process },
	{ key: 'abi', label: 'ABI', cell: (t) => t.meta.abi },
	{ key: 'format', label: tr('Format'), cell: of((s) => s.format) },
	{ key: 'threads', label: tr('Threads'), num: true, cell: of((s) => count(s.threads)) },
	{ key: 'methods', label: tr('Methods'), num: true, cell: of((s) => count(s.methods)) },
	{ key: 'depth', label: tr('Depth'), num: true, cell: of((s) => count(s.max_depth)) },
	{ key: 'file', label: tr('On disk'), num: true, cell: of((s) => bytes(s.file_bytes)) },
	{ key: 'session', label: tr('Session'), cell: (t) => t.meta.session_id },
	{ key: 'id', label: tr('Id'), cell: (t) => <code>{t.id}</code> },
];
const FIRST = ['version', 'device', 'duration', 'calls', 'upload', 'arrived'];
const PLACE = ['version', 'device'];
const REMEMBERED = 'tracewell.columns';

function kept(): string | null {
	try {
		return localStorage.getItem(REMEMBERED);
	} catch {
		return null; // a browser that keeps nothing
	}
}

const remembered = signal(kept());

function remember(keys: string | null): void {
	remembered.value = keys;
	try {
		if (keys === null) localStorage.removeItem(REMEMBERED);
		else localStorage.setItem(REMEMBERED, keys);
	} catch {
		// it holds for this page all the same
	}
}

/** The default columns. If no row has a version or device, the format replaces both; on a phone both are below the name. */
function firstColumns(rows: Trace[]): string[] {
	if (narrow.value) return FIRST.filter((k) => !PLACE.includes(k));
	return rows.length > 0 && rows.every((t) => !t.meta.version_name && !t.meta.device) ? ['format', ...FIRST.filter((k) => !PLACE.includes(k))] : FIRST;
}

/** The columns in the address, otherwise the last choice in this browser, otherwise the defaults. */
export function shownColumns(rows: Trace[]): Column[] {
	const keys = (text('cols') || remembered.value || '').split(',');
	const found = COLUMNS.filter((c) => keys.includes(c.key));
	const first = firstColumns(rows);
	return found.length > 0 ? found : first.map((k) => COLUMNS.find((c) => c.key === k)!);
}

export function ColumnChooser({ shown }: { shown: Column[] }) {
	const put = (c: Column, on: boolean) => {
		const keys = COLUMNS.filter((x) => (x === c ? on : shown.includes(x))).map((x) => x.key).join(',');
		remember(keys);
		set({ cols: keys });
	};
	return (
		<Popover label={tr('Columns')} title={tr('Columns')} small>{() => <>
			<div class="checks">{COLUMNS.map((c) => (
				<label class="check" key={c.key}><input type="checkbox" checked={shown.includes(c)} disabled={shown.length === 1 && shown.includes(c)}
					onChange={(e) => put(c, e.currentTarget.checked)} />{c.label}</label>))}</div>
			<button class="small" onClick={() => { remember(null); set({ cols: null }); }}>{tr('Reset columns')}</button>
		</>}</Popover>
	);
}
