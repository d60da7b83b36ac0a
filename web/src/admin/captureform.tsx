// One capture rule, made or changed.
import { useLayoutEffect, useState } from 'preact/hooks';
import { api, type Trace } from '../api/api';
import { manage } from '../api/manage';
import { COMMA, count, percent } from '../i18n/format';
import { Cards } from '../ui/cards';
import { useChange } from '../ui/change';
import { Failure, focused, useLoad } from '../ui/parts';
import { matches } from './patterns';
import { tr } from '../i18n/strings/manage';

export type Where = Partial<Record<'app' | 'version_name' | 'device' | 'os', string[]>>;
export interface Rule { name: string; enabled?: boolean; scenario?: string; where?: Where; share?: number; per_day?: number; record?: object }

interface Draft { name: string; enabled: boolean; scenario: string; app: string; version_name: string; device: string; os: string; share: string; per_day: string; record: string }

const CONDITIONS: [keyof Where, string, string][] = [['version_name', tr('Versions'), '8.3.* 9.0'], ['app', tr('Apps'), 'com.example.*'], ['device', tr('Devices'), 'Pixel*'], ['os', 'Android', '1[45]']];
const KNOWN = 4; // matching values that are listed
const LATEST = 500; // traces of a preview
const GROUPS = 10; // and rows
const joined = (patterns?: string[]) => (patterns ?? []).join('\n');
const listed = (text: string) => text.split('\n').map((l) => l.trim()).filter(Boolean);

function draftOf(r?: Rule): Draft {
	const w = r?.where ?? {};
	return { name: r?.name ?? '', enabled: r?.enabled ?? true, scenario: r?.scenario ?? '', app: joined(w.app), version_name: joined(w.version_name), device: joined(w.device), os: joined(w.os),
		share: String(+((r?.share ?? 0.01) * 100).toPrecision(12)), per_day: String(r?.per_day ?? 1000), record: JSON.stringify(r?.record ?? {}, null, 2) };
}

/** The error message of a number's field; '' if it is valid. */
const wrongShare = (d: Draft): string => (d.share.trim() !== '' && Number(d.share) >= 0 && Number(d.share) <= 100 ? '' : tr('0 to 100'));
const wrongPerDay = (d: Draft): string => (/^\d+$/.test(d.per_day.trim()) ? '' : tr('a whole number; 0: no limit'));

/** Throws with a message if the settings are invalid; the server validates the rest. */
function ruleOf(d: Draft): Rule {
	const where: Where = {};
	for (const [key] of CONDITIONS) if (listed(d[key]).length) where[key] = listed(d[key]);
	let record: object;
	try {
		record = JSON.parse(d.record || '{}') as object;
	} catch {
		throw new Error(tr('The recording settings are not valid JSON.'));
	}
	return { name: d.name.trim(), enabled: d.enabled, scenario: d.scenario.trim(), where, share: Number(d.share) / 100, per_day: Number(d.per_day), record };
}

/** The values of this project's traces that would match now. */
function Known({ column, patterns }: { column: keyof Where; patterns: string[] }) {
	const load = useLoad(`facet ${column}`, () => manage.facets(column));
	const values = load.value?.values ?? [];
	if (values.length === 0 || patterns.length === 0) return null;
	const met = values.filter((v) => patterns.some((p) => matches(p, v.value))).map((v) => v.value);
	return <span class={met.length ? 'quiet' : 'badtext'} data-known={column}>{met.length === 0 ? tr('Matches none of the {all} in the traces so far.', { all: values.length })
		: tr('Matches {n} of {all}: {list}', { n: met.length, all: values.length, list: met.slice(0, KNOWN).join(COMMA) + (met.length > KNOWN ? ', …' : '') })}</span>;
}

interface Preview { all: number; met: number; groups: { of: string[]; n: number }[] }

/** The latest traces to which the rule would apply. */
function previewOf(traces: Trace[], d: Draft): Preview {
	const met = traces.filter(({ meta }) => (!d.scenario.trim() || meta.scenario === d.scenario.trim())
		&& CONDITIONS.every(([key]) => listed(d[key]).length === 0 || listed(d[key]).some((p) => matches(p, meta[key]))));
	const groups = new Map<string, { of: string[]; n: number }>();
	for (const { meta } of met) {
		const of = CONDITIONS.map(([key]) => meta[key]);
		const group = groups.get(of.join('\n')) ?? { of, n: 0 };
		group.n++;
		groups.set(of.join('\n'), group);
	}
	return { all: traces.length, met: met.length, groups: [...groups.values()].sort((a, b) => b.n - a.n) };
}

function Previewed({ d }: { d: Draft }) {
	const [p, put] = useState<Preview | null>(null);
	const [error, run] = useChange(() => undefined);
	useLayoutEffect(() => put(null), [d]);
	const share = Number(d.share) / 100;
	return <>
		<div class="row"><button type="button" onClick={() => void run(async () => put(previewOf((await api.traces({ limit: LATEST })).traces, d)))}>{tr('Preview')}</button>
			<span role="status">{p && tr('{met} of the latest {all} traces match; {share} of their devices would record. Nothing was saved.', { met: count(p.met), all: count(p.all), share: percent(share) })}</span></div>
		{error && <Failure error={error} />}
		{p && p.groups.length > 0 && <Cards label={tr('Preview')}>
			<thead><tr>{CONDITIONS.map(([key, label]) => <th key={key}>{label}</th>)}<th class="num">{tr('Traces')}</th></tr></thead>
			<tbody>{p.groups.slice(0, GROUPS).map((g) => <tr key={g.of.join()} data-matches>{g.of.map((v, i) => <td class="anywhere" key={CONDITIONS[i][0]}>{v || '–'}</td>)}<td class="num">{count(g.n)}</td></tr>)}</tbody>
		</Cards>}
		{p && p.groups.length > GROUPS && <p class="quiet">{tr.many(p.groups.length - GROUPS, 'And one more with fewer traces.', 'And {n} more with fewer traces.')}</p>}
	</>;
}

const Wrong = ({ why }: { why: string }) => (why ? <span class="badtext" role="status">{why}</span> : null);

export function RuleForm({ rule, keep, cancel }: { rule?: Rule; keep: (r: Rule) => Promise<void>; cancel: () => void }) {
	const [d, put] = useState(draftOf(rule));
	const [error, fail] = useState<Error | null>(null);
	const text = (key: keyof Draft) => ({ name: key, spellcheck: false, autocapitalize: 'none' as const, value: String(d[key]), onInput: (e: { currentTarget: { value: string } }) => put({ ...d, [key]: e.currentTarget.value }) });
	const save = (e: Event) => {
		e.preventDefault();
		fail(null);
		try {
			void keep(ruleOf(d));
		} catch (why) {
			fail(why as Error);
		}
	};
	return (
		<form class="rule" onSubmit={save} aria-label={rule ? tr('Edit {name}', { name: rule.name }) : tr('A new rule')}>
			<div class="row">
				<label class="inline">{tr('Name')}{' '}<input {...text('name')} ref={rule ? undefined : focused} /></label>
				<label class="inline">{tr('Scenario')}{' '}<input {...text('scenario')} placeholder={tr('any')} /></label>
				<label class="inline">{tr('Share')}{' '}<input class="short" inputMode="decimal" {...text('share')} aria-invalid={wrongShare(d) !== ''} /> % <Wrong why={wrongShare(d)} /></label>
				<label class="inline">{tr('Traces per day')}{' '}<input class="short" inputMode="numeric" {...text('per_day')} aria-invalid={wrongPerDay(d) !== ''} /> <Wrong why={wrongPerDay(d)} /></label>
				<label class="inline"><input type="checkbox" checked={d.enabled} onChange={(e) => put({ ...d, enabled: e.currentTarget.checked })} />{' '}{tr('Enabled')}</label>
			</div>
			<div class="lists conditions">
				{CONDITIONS.map(([key, label, example]) => (
					<label class="list" key={key}>{label} <span class="quiet">{tr('one pattern per line; empty: any')}</span>
						<textarea rows={2} class="mono" placeholder={example} {...text(key)} /><Known column={key} patterns={listed(d[key])} /></label>))}
			</div>
			<label class="list">{tr.rich('Recording settings {part}', { part: <span class="quiet">{tr('JSON, passed to the recorder on the device unchanged')}</span> })}
				<textarea rows={4} class="mono" {...text('record')} /></label>
			<Previewed d={d} />
			{error && <Failure error={error} />}
			<div class="row"><button class="primary" disabled={!d.name.trim() || wrongShare(d) + wrongPerDay(d) !== ''}>{rule ? tr('Save') : tr('Add')}</button><button type="button" onClick={cancel}>{tr('Cancel')}</button></div>
		</form>
	);
}
