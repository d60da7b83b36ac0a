// Capture rules of the project, the traces recorded by them, and how a device requests them.
import { get, may, send } from '../api/api';
import { Cards } from '../ui/cards';
import { Sure, useChange, useEditing } from '../ui/change';
import { AsJson } from './asjson';
import { RuleForm, type Rule } from './captureform';
import { COMMA, count, DAY_MS, percent } from '../i18n/format';
import { Invalid, useInvalid } from '../ui/invalid';
import { KeyCommand } from '../ui/makekey';
import { Page } from '../ui/page';
import { Failure, Panel, Pending, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/manage';

interface Day { rule: string; day_ms: number; traces: number; devices: number }
interface Rules { max_age_s: number; rules: Rule[]; updated_ms: number; days: Day[] }

const DAYS = 14;
const BAR = 5; // wide, with its gap
const HIGH = 18;

const shareOf = (r: Rule) => r.share ?? 1;
const today = () => Math.floor(Date.now() / DAY_MS) * DAY_MS;

/** The devices that a rule selects, as text. */
function whom(r: Rule): string {
	const words = Object.entries({ app: tr('app'), version_name: tr('version'), device: tr('device'), os: 'Android' })
		.map(([key, word]) => [word, r.where?.[key as keyof typeof r.where] ?? []] as const)
		.filter(([, patterns]) => patterns.length)
		.map(([word, patterns]) => `${word} ${patterns.join(tr(' or '))}`);
	return words.join(COMMA) || tr('every device');
}

/** Traces per day, the last one today; the table next to it has today's number. */
function Bars({ days, name }: { days: Day[]; name: string }) {
	const first = today() - (DAYS - 1) * DAY_MS;
	const heights = Array.from({ length: DAYS }, (_, i) => days.find((d) => d.day_ms === first + i * DAY_MS)?.traces ?? 0);
	const most = Math.max(1, ...heights);
	return (
		<svg class="bars" role="img" aria-label={tr('{name}, traces a day for {days} days: {heights}', { name, days: DAYS, heights: heights.join(', ') })} width={DAYS * BAR} height={HIGH}>
			{heights.map((n, i) => <rect key={i} x={i * BAR} width={BAR - 1} y={HIGH - Math.max(1, (n / most) * HIGH)} height={Math.max(1, (n / most) * HIGH)} class={n ? '' : 'none'} />)}
		</svg>
	);
}

function Came({ days, perDay }: { days: Day[]; perDay: number }) {
	const now = days.find((d) => d.day_ms === today());
	const n = now?.traces ?? 0;
	return <>
		<td class="num">{count(n)}{perDay > 0 && <>{' '}{tr('of {perDay}', { perDay: count(perDay) })}</>}{perDay > 0 && n >= perDay && <span class="quiet">{' '}{tr('full')}</span>}</td>
		<td class="num">{count(now?.devices ?? 0)}</td>
	</>;
}

function Row({ r, days, edit, drop }: { r: Rule; days: Day[]; edit: () => void; drop: () => void }) {
	return (
		<tr data-rule={r.name}>
			<td>{r.name}{r.enabled === false && <span class="quiet">{' '}{tr('(disabled)')}</span>}</td>
			<td>{r.scenario || tr('any')}</td>
			<td>{whom(r)}</td>
			<td class="num">{percent(shareOf(r))}</td>
			<Came days={days} perDay={r.per_day ?? 0} />
			<td><Bars days={days} name={r.name} /></td>
			{may.admin && <td class="actions">
				<button class="small" data-edits={`capture ${r.name}`} onClick={edit} aria-label={tr('Edit {name}', { name: r.name })}>{tr('Edit')}</button>
				<Sure what={tr('Remove')} label={tr('Remove {name}', { name: r.name })} act={drop} />
			</td>}
		</tr>
	);
}

function Table({ v, edit, keep }: { v: Rules; edit: (name: string) => void; keep: (rules: Rule[]) => void }) {
	const gone = v.days.filter((d) => d.rule === '');
	return (
		<Cards label={tr('Capture rules')}>
			<thead><tr><th>{tr('Rule')}</th><th>{tr('Scenario')}</th><th>{tr('Applies to')}</th><th class="num">{tr('Share')}</th>
				<th class="num">{tr('Traces today')}</th><th class="num">{tr('Devices today')}</th><th>{tr('{days} days', { days: DAYS })}</th>
				{may.admin && <th><span class="hidden">{tr('Actions')}</span></th>}</tr></thead>
			<tbody>
				{v.rules.map((r) => <Row key={r.name} r={r} days={v.days.filter((d) => d.rule === r.name)} edit={() => edit(r.name)} drop={() => keep(v.rules.filter((o) => o !== r))} />)}
				{gone.length > 0 && <tr class="quiet"><td colSpan={4}>{tr('by deleted rules')}</td><Came days={gone} perDay={0} /><td><Bars days={gone} name={tr('deleted rules')} /></td>{may.admin && <td />}</tr>}
			</tbody>
		</Cards>
	);
}

function Rules() {
	const load = useLoad('capture', () => get<Rules>('/api/v1/capture/rules'));
	const [error, change] = useChange(load.again);
	const [editing, edit] = useEditing('capture'); // '' is a new one
	const v = load.value;
	const invalid = useInvalid('capture', v);
	const keep = (rules: Rule[]) => change(() => send('PUT', '/api/v1/capture/rules', { max_age_s: v!.max_age_s, rules }));
	const put = async (r: Rule) => {
		const at = v!.rules.findIndex((o) => o.name === editing);
		const rules = at < 0 ? [...v!.rules, r] : v!.rules.map((o, i) => (i === at ? r : o));
		if (await keep(rules)) edit(null, r.name === editing ? editing : ''); // a renamed rule gets another row
	};
	return (
		<Panel title={tr('Capture rules')} id="rules" aside={v && may.admin && editing === null && <button data-edits="capture " onClick={() => edit('')}>{tr('Add a rule')}</button>}>
			<Pending of={load} what={tr('Loading rules')} />
			<Invalid why={invalid} />
			{v && v.rules.length === 0 && editing === null && <p class="quiet">{tr('No rules yet: devices record nothing.')}</p>}
			{v && (v.rules.length > 0 || v.days.length > 0) && <Table v={v} edit={edit} keep={(r) => void keep(r)} />}
			{v && editing !== null && <RuleForm key={editing} rule={v.rules.find((r) => r.name === editing)} keep={put} cancel={() => edit(null)} />}
			{error && <Failure error={error} />}
			{v && may.admin && editing === null && <AsJson value={{ max_age_s: v.max_age_s, rules: v.rules }} label={tr('Save')} use={(doc) => void change(() => send('PUT', '/api/v1/capture/rules', doc))} />}
			{v && <p class="quiet">{tr('Devices poll every {max_age_s} minutes. Sampling is stable per device id: a larger share keeps the devices already chosen. Days are UTC.', { max_age_s: count(v.max_age_s / 60) })}</p>}
		</Panel>
	);
}

export function CapturePage() {
	return (
		<Page title={tr('Capture')}>
			<Rules />
			<Panel title={tr('On the device')}>
				<p>{tr.rich("Poll with an ingest key and cache the response with its ETag. Record only what the response lists. Upload each trace with {code} set to the rule's name and the same {code2}, so that it is counted.", { code: <code>capture=</code>, code2: <code>device_id</code> })}</p>
				<KeyCommand name={tr('capture rules')}>{`curl -H "Authorization: Bearer $KEY" -H 'If-None-Match: "…"' \\\n  "${location.origin}/api/v1/capture?app=com.example&version_name=8.3.1&device=Pixel+8&os=14&device_id=$INSTALLATION"`}</KeyCommand>
			</Panel>
		</Page>
	);
}
