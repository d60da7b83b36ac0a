// Thresholds of detected changes, which a project can set.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { get, may, send } from '../api/api';
import { useChange } from '../ui/change';
import { Invalid, useInvalid } from '../ui/invalid';
import { Failure, Panel, Pending, useLoad } from '../ui/parts';
import { set, text } from '../ui/route';
import { tr } from '../i18n/strings/regressions';

type Rules = Record<'min_change' | 'certainty' | 'min_traces' | 'min_days' | 'window_days' | 'min_share', number>;

const FIELDS: [keyof Rules, string, string, number][] = [ // name, label, unit, factor of the unit
	['min_change', tr('Minimum change'), '%', 100],
	['certainty', tr('Minimum certainty'), tr('standard errors'), 1],
	['min_traces', tr('Minimum traces per side'), tr('traces'), 1],
	['min_days', tr('Minimum days per side'), tr('days'), 1],
	['window_days', tr('Compared time'), tr('days'), 1],
	['min_share', tr('Minimum change of a method'), tr("% of the scenario's median"), 100],
];

function Form({ rules, invalid, keep }: { rules: Rules; invalid: boolean; keep: (r: Rules) => Promise<boolean> }) {
	const shown = (key: keyof Rules, one: number) => String(+(rules[key] * one).toPrecision(6));
	const stored = Object.fromEntries(FIELDS.map(([key, , , one]) => [key, shown(key, one)]));
	const [draft, put] = useState(stored);
	const change = text('min_change'); // that a regression suggests
	const field = useRef<HTMLInputElement>(null);
	useLayoutEffect(() => put(stored), [JSON.stringify(rules)]);
	useLayoutEffect(() => {
		if (!change) return;
		put({ ...stored, min_change: change });
		set({ min_change: null });
		field.current?.focus();
	}, [change]);
	const save = (e: Event) => {
		e.preventDefault();
		if (!idle) void keep(Object.fromEntries(FIELDS.map(([key, , , one]) => [key, +(Number(draft[key]) / one).toPrecision(6)])) as Rules);
	};
	const wrong = (key: keyof Rules) => !draft[key].trim() || !(Number(draft[key]) >= 0);
	const idle = (!invalid && FIELDS.every(([key]) => draft[key] === stored[key])) || FIELDS.some(([key]) => wrong(key));
	return (
		<form class="rule" onSubmit={save} aria-label={tr('Thresholds')}>
			<div class="rules">{FIELDS.map(([key, name, unit]) => (
				<label key={key}>{name}<span class="row"><input name={key} ref={key === 'min_change' ? field : undefined} inputMode="decimal" disabled={!may.write} value={draft[key]} aria-invalid={wrong(key)}
					onInput={(e) => put({ ...draft, [key]: e.currentTarget.value })} /> {unit}{wrong(key) && <span class="badtext" role="status">{tr('a number, 0 or more')}</span>}</span></label>))}</div>
			{may.write && <div class="row"><button class="primary" aria-disabled={idle}>{tr('Save')}</button></div>}
		</form>
	);
}

export function RegressionRules() {
	const load = useLoad('regression rules', () => get<Rules>('/api/v1/regressions/rules'));
	const [error, change] = useChange(load.again);
	const invalid = useInvalid('regressions', load.value);
	return (
		<Panel title={tr('Detection thresholds')} id="thresholds">
			<Pending of={load} what={tr('Loading thresholds')} />
			<Invalid why={invalid} />
			{load.value && <Form rules={load.value} invalid={invalid !== ''} keep={(r) => change(() => send('PUT', '/api/v1/regressions/rules', r))} />}
			{error && <Failure error={error} />}
			{load.value && <p class="quiet">{tr("Four standard errors mean one false alarm in tens of thousands of checks. Each version is compared with the previous one on the days when both were used, per device class, and the days of each version with each other. A trace counts on its day of recording.")}</p>}
		</Panel>
	);
}
