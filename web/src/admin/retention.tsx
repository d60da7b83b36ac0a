// Retention: the space used, the rules, and the next deletions.
import { AsJson } from './asjson';
import { useLayoutEffect, useState } from 'preact/hooks';
import { get, may, send } from '../api/api';
import { bytes, count } from '../i18n/format';
import { Cards } from '../ui/cards';
import { Invalid, useInvalid } from '../ui/invalid';
import { Page } from '../ui/page';
import { Failure, Panel, Pending, useLoad } from '../ui/parts';
import { link } from '../ui/route';
import { FIELDS, inTurn, meant, sentences, shown, time, what, why, type Due, type NumberRule, type Room, type Rules } from './rules';
import { tr } from '../i18n/strings/manage';
import { several } from '../api/traces';

const SPANS: [days: number, shown: string][] = [[7, tr('a week')], [30, tr('30 days')], [90, tr('90 days')], [365, tr('a year')]];
const LISTED_MAX = 200; // the server lists at most this many items of each kind

const put = async (rules: Rules, days: number, dry: boolean) =>
	(await send('PUT', '/api/v1/retention', rules, { days, ...(dry && { dry_run: true }) })).json() as Promise<Room>;

/** Raw and decoded as one bar, of the limit where there is one. */
function Used({ room }: { room: Room }) {
	const { use, rules } = room;
	const total = use.upload_bytes + use.decoded_bytes;
	const of = Math.max(rules.max_bytes ?? 0, total, 1);
	const share = (n: number) => `${((100 * n) / of).toFixed(2)}%`;
	return (
		<Panel title={tr('Storage in use')}>
			<div class="roombar" role="img" aria-label={tr('{upload_bytes} raw, {decoded_bytes} decoded{max_bytes}', { upload_bytes: bytes(use.upload_bytes), decoded_bytes: bytes(use.decoded_bytes), max_bytes: rules.max_bytes ? tr(', of {max_bytes}', { max_bytes: bytes(rules.max_bytes) }) : '' })}>
				<span class="raw" style={{ width: share(use.upload_bytes) }} /><span class="decoded" style={{ width: share(use.decoded_bytes) }} /></div>
			<dl class="roomfacts">
				<div><dt>{tr.rich('{span}Raw uploads', { span: <span class="swatch raw" /> })}</dt><dd>{bytes(use.upload_bytes)}</dd></div>
				<div><dt>{tr.rich('{span}Decoded files', { span: <span class="swatch decoded" /> })}</dt><dd>{bytes(use.decoded_bytes)}</dd></div>
				<div><dt>{tr('Total')}</dt><dd>{bytes(total)}{rules.max_bytes && <span class="quiet">{' '}{tr('of {max_bytes}', { max_bytes: bytes(rules.max_bytes) })}</span>}</dd></div>
				<div><dt>{tr('Traces')}</dt><dd>{count(use.traces)}{rules.max_traces && <span class="quiet">{' '}{tr('of {max_traces}', { max_traces: count(rules.max_traces) })}</span>}</dd></div>
				<div><dt>{tr('Pinned')}</dt><dd>{count(use.pinned)}</dd></div>
				<div><dt>{tr('Raw only')}</dt><dd>{count(use.archived)}</dd></div>
				{room.disk && <div><dt>{tr('Disk')}</dt><dd>{bytes(room.disk.used_bytes)}{' '}<span class="quiet">{tr('of {max_bytes}', { max_bytes: bytes(room.disk.size_bytes) })}</span></dd></div>}
			</dl>
			{room.disk && <p class="quiet">{tr('Above {max_percent} % of the disk, the oldest traces of the projects that store most are deleted.', { max_percent: room.disk.max_percent })}</p>}
		</Panel>
	);
}

function Goes({ list, rules }: { list: Due[]; rules: Rules }) {
	const now = Date.now();
	return (
		<Cards>
			<thead><tr><th class="num">{tr('When')}</th><th>{tr('Deleted')}</th><th>{tr('Trace')}</th><th>{tr('Reason')}</th><th class="num">{tr('Frees')}</th></tr></thead>
			<tbody>{list.map((d) => (
				<tr key={d.id + d.deletes} data-due={d.id}><td class="num">{time(d, now)}</td><td>{what(d)}</td><td><a href={link(`/traces/${d.id}`)}>{d.name}</a></td>
					<td>{why(d, rules)}</td><td class="num">{bytes(d.bytes)}</td></tr>))}</tbody>
		</Cards>
	);
}

function Next({ room, days, span, tried, busy }: { room: Room; days: number; span: (days: number) => void; tried: boolean; busy: boolean }) {
	const list = inTurn(room);
	const over = room.rules.max_traces ? room.use.traces - room.rules.max_traces : 0;
	const freed = list.reduce((n, d) => n + d.bytes, 0);
	return (
		<Panel title={tried ? tr('Preview of deletions') : tr('Next deletions')} id="next"
			aside={<label class="inline">{tr('Within')}{' '}<select value={days} disabled={busy} onChange={(e) => span(Number(e.currentTarget.value))}>{SPANS.map(([d, s]) => <option key={d} value={d}>{s}</option>)}</select></label>}>
			{list.length === 0 ? <p class="quiet">{tr('Nothing to delete with {tried} rules.', { tried: tried ? tr('these') : tr('the current') })}</p> : <>
				<p>{tr.rich('{list}, {freed}{due}. Pin a trace to keep it.', { list: list.length < LISTED_MAX ? several(list.length, 'item') : tr('At least {n} items; the first {n}', { n: count(list.length) }), freed: bytes(freed), due: room.expiring_now.length > 0 && <>; <strong>{tr('{due} of them at the next check{tried}', { due: room.expiring_now.length === list.length ? tr('all') : count(room.expiring_now.length), tried: tried ? tr(' after the rules are saved') : '' })}</strong></> })}
					{over > 0 && <> {tr('{over} traces are above the maximum.', { over: count(over) })}</>}</p>
				<Goes list={list} rules={room.rules} /></>}
		</Panel>
	);
}

type Texts = Record<NumberRule, string>;
const textsOf = (r: Rules) => Object.fromEntries(FIELDS.map((f) => [f.key, shown(r[f.key], f.scale)])) as Texts;

/** The texts as rules; null while one of them is not a number. */
function rulesOf(texts: Texts, flags: Pick<Rules, 'keep_annotated' | 'keep_first_anr'>): Rules | null {
	const values = FIELDS.map((f) => [f.key, meant(texts[f.key], f.scale)] as const);
	return values.some(([, v]) => v === undefined) ? null : { ...Object.fromEntries(values), ...flags } as Rules;
}

function Edit({ rules, tryOut, save, busy, message, tried, invalid }: { rules: Rules; invalid: boolean; tryOut: (r: Rules | null) => void; save: (r: Rules) => void; busy: boolean; message: string; tried: Room | null }) {
	const [texts, type] = useState(textsOf(rules));
	const were = { keep_annotated: rules.keep_annotated, keep_first_anr: rules.keep_first_anr };
	const [flags, flag] = useState(were);
	const now = rulesOf(texts, flags);
	const due = tried ? inTurn(tried) : [];
	const changed = invalid || JSON.stringify(now) !== JSON.stringify(rulesOf(textsOf(rules), were));
	useLayoutEffect(() => tryOut(null), [JSON.stringify([texts, flags])]); // the preview is outdated
	useLayoutEffect(() => { type(textsOf(rules)); flag(were); }, [JSON.stringify(rules)]);
	return (
		<form onSubmit={(e) => { e.preventDefault(); if (now && changed && !busy) save(now); }}>
			<div class="rules">{FIELDS.map((f) => {
				const wrong = meant(texts[f.key], f.scale) === undefined;
				return <label key={f.key}><span>{f.label}</span>
					<span class="row"><input name={f.key} inputMode="decimal" size={8} value={texts[f.key]} placeholder={f.empty} aria-invalid={wrong} autocomplete="off"
						onInput={(e) => type({ ...texts, [f.key]: e.currentTarget.value })} />{f.unit}{wrong && <span class="badtext">{tr('a number above 0')}</span>}</span></label>;
			})}</div>
			<div class="row"><label class="check"><input type="checkbox" checked={flags.keep_first_anr} onChange={(e) => flag({ ...flags, keep_first_anr: e.currentTarget.checked })} />{tr('Keep the first trace of each ANR group')}</label>
				<label class="check"><input type="checkbox" checked={flags.keep_annotated} onChange={(e) => flag({ ...flags, keep_annotated: e.currentTarget.checked })} />{tr('Keep traces with a title or annotations')}</label></div>
			<div class="row"><button type="button" disabled={!now || busy} onClick={() => tryOut(now)}>{tr('Preview deletions')}</button>
				<button class="primary" aria-disabled={!now || !changed || busy}>{tr('Save rules')}</button>
				<span class="quiet" role="status">{tried ? tr('These rules would delete {n} ({freed}), listed below.', { n: (due.length < LISTED_MAX ? '' : '≥ ') + several(due.length, 'item'), freed: bytes(due.reduce((n, d) => n + d.bytes, 0)) }) : message || tr('Nothing is deleted until the rules are saved.')}</span></div>
			<AsJson value={now ?? rules} label={tr('Fill in the form')} use={(v) => { type(textsOf({ ...rules, ...v })); flag({ keep_annotated: v.keep_annotated ?? rules.keep_annotated, keep_first_anr: v.keep_first_anr ?? rules.keep_first_anr }); }} />
		</form>
	);
}

export function RetentionPage() {
	const [days, span] = useState(7);
	const [tried, hold] = useState<Rules | null>(null);
	const load = useLoad(`retention ${days}`, () => get<Room>('/api/v1/retention', { days }));
	const dry = useLoad(`dry ${days} ${JSON.stringify(tried)}`, async () => (tried ? put(tried, days, true) : null));
	const [error, fail] = useState<Error | null>(null);
	const [message, show] = useState('');
	const save = (r: Rules) => {
		fail(null);
		put(r, days, false).then(() => { hold(null); show(tr('Saved. They apply from the next check.')); load.again(); }, fail);
	};
	const room = load.value;
	const invalid = useInvalid('retention', room?.rules);
	const shownRoom = tried && dry.value ? dry.value : room;
	return (
		<Page title={tr('Retention')}>
			<Pending of={load} what={tr('Loading the rules')} />
			{room && shownRoom && <>
				<Used room={room} />
				<Panel title={tr('Rules of this project')} id="rules">
					<Invalid why={invalid} />
					<ul>{sentences(room.rules).map((s) => <li key={s}>{s}</li>)}</ul>
					{may.admin ? <Edit rules={room.rules} invalid={invalid !== ''} busy={load.busy} message={message} tried={tried && dry.value} save={save} tryOut={(r) => { hold(r); if (r) show(''); }} /> : <p class="quiet">{tr('Admins of the project change them.')}</p>}
					{(error ?? (tried && dry.error)) && <Failure error={(error ?? dry.error)!} />}
				</Panel>
				<Next room={shownRoom} days={days} span={span} tried={tried !== null && dry.value !== null} busy={load.busy} />
			</>}
		</Page>
	);
}
