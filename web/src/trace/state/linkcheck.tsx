// Unknown parts of an address: links may come from other versions and other traces.
import { computed } from '@preact/signals';
import { strangeValues, type Known } from './linkvalues';
import { known, query, set, text } from '../../ui/route';
import { fitting, format, made, notUnderstood, parse } from './steps';
import { tr } from '../../i18n/strings/trace';

const strange = computed(() => [...new Set(query.value.keys())].filter((k) => !known(k)).sort().join('\n'));
const SHOWN = 60; // characters of each

const short = (s: string) => (s.length > SHOWN ? s.slice(0, SHOWN - 1) + '…' : s);

/** Renders nothing if the address is valid; without a trace, its values are not checked. */
export function LinkCheck({ of }: { of?: Known }) {
	const names = strange.value ? strange.value.split('\n') : [];
	const steps = parse(text('t'));
	const fit = of ? fitting(steps, of.methods) : steps;
	const values = of ? strangeValues(text, { ...of, methods: of.methods + made(fit).length }) : [];
	const left = [...notUnderstood(text('t')), ...steps.filter((s) => !fit.includes(s)).map((s) => format([s]))];
	if (names.length + values.length + left.length === 0) return null;
	const clean = () => set({ ...Object.fromEntries([...names, ...values.map((v) => v.name)].map((n) => [n, null])), t: format(fit) });
	const out = [...names.map(short), ...left.map((s) => tr('the step {s}', { s: short(s) }))];
	return (
		<div class="notice warn" role="status">
			<strong>{tr('Some link parameters were ignored.')}</strong>
			<p>{tr('The link may be truncated, or from another version of tracewell or another trace. The rest of it is applied.')}</p>
			{out.length > 0 && <p>{tr('Ignored:')}{' '}{out.map((s, i) => <>{i > 0 && ', '}<code key={s}>{s}</code></>)}.</p>}
			{values.length > 0 && <p>{tr('Used instead:')}{' '}{values.map((v, i) => <>{i > 0 && '; '}<code key={v.name}>{v.name}={short(v.value)}</code> {v.instead}</>)}.</p>}
			<p><button onClick={clean}>{tr('Remove from the address')}</button></p>
		</div>
	);
}
