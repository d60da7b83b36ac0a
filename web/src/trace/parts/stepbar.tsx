// The steps that are taken, as a row of what can be taken back one by one.
import { useMemo } from 'preact/hooks';
import { splitName } from '../../i18n/format';
import { set, text } from '../../ui/route';
import { added, describe, fitting, format, made, parse, without, type Step } from '../state/steps';
import { tr } from '../../i18n/strings/trace';

/** The steps of the address, and the names of all methods with the frames that steps make. */
export function useSteps(names: string[]): { steps: Step[]; named: string[] } {
	const t = text('t');
	return useMemo(() => {
		const steps = fitting(parse(t), names.length);
		const frames = made(steps);
		return { steps, named: frames.length ? [...names, ...frames] : names };
	}, [t, names]);
}

/** Changes the steps; paths of the graph as it was lead nowhere in the new one. */
export function put(steps: Step[]): void {
	set({ t: format(steps) || null, root: null, skip: null }, true);
}

export const take = (step: Step) => put(added(parse(text('t')), step));

export function AppSwitch() {
	const steps = parse(text('t'));
	const at = steps.findIndex((s) => s.kind === 'app');
	return (
		<button class="small" aria-pressed={at >= 0} title={tr("Time in frameworks and libraries is charged to the app frame that called them. They are configured on the Builds page.")}
			onClick={() => put(at >= 0 ? steps.filter((s) => s.kind !== 'app') : added(steps, { kind: 'app' }))}>{tr('App frames only')}</button>
	);
}

export function StepBar({ names }: { names: string[] }) {
	const { steps, named } = useSteps(names);
	const inverted = text('view') === 'bottom_up';
	if (!steps.length && !inverted) return null;
	const short = (m: number) => splitName(named[m] ?? tr('method {m}', { m }))[1];
	return (
		<nav class="steps" aria-label={tr('Changes to the graph')}>
			{steps.map((s, i) => {
				const what = describe(s, short);
				return (
					<span key={format([s])} class="step" title={describe(s, (m) => named[m] ?? '')}>{what}
						<button class="plain" aria-label={tr('Undo: {what}', { what })} onClick={() => put(without(steps, i, names.length))}>×</button></span>);
			})}
			{inverted && <span class="step" title={tr('Methods by self time, with their callers below')}>{tr('inverted')}
				<button class="plain" aria-label={tr('Undo: inverted')} onClick={() => set({ view: null, root: null, skip: null, tree: null }, true)}>×</button></span>}
			{steps.length > 1 && <button class="small" onClick={() => put([])}>{tr('Undo all')}</button>}
		</nav>
	);
}
