// Steps that reshape the calls before they are counted, as the address and the server know them:
// transform=app,focus:12,library:okhttp3 (see the API's description).
import { tr } from '../../i18n/strings/trace';
export type Step =
	| { kind: 'focus' | 'drop' | 'merge' | 'fold'; method: number }
	| { kind: 'library'; name: string }
	| { kind: 'recursion' | 'app' };

export const MOST = 32;

function parseOne(text: string): Step | null {
	const at = text.indexOf(':');
	const kind = at < 0 ? text : text.slice(0, at);
	const rest = at < 0 ? '' : text.slice(at + 1);
	if (kind === 'recursion' || kind === 'app') return rest ? null : { kind };
	if (kind === 'library') return rest ? { kind, name: rest } : null;
	if (kind !== 'focus' && kind !== 'drop' && kind !== 'merge' && kind !== 'fold') return null;
	return /^\d{1,9}$/.test(rest) ? { kind, method: Number(rest) } : null;
}

/** Unknown steps are left out. */
export function parse(text: string): Step[] {
	return text.split(',').map(parseOne).filter((s): s is Step => s !== null).slice(0, MOST);
}

/** The pieces that parse() leaves out. */
export function notUnderstood(text: string): string[] {
	const all = text.split(',').filter(Boolean);
	return all.filter((one, i) => parseOne(one) === null || i >= MOST);
}

export function format(steps: Step[]): string {
	return steps.map((s) => ('method' in s ? `${s.kind}:${s.method}` : 'name' in s ? `${s.kind}:${s.name}` : s.kind)).join(',');
}

/** The names of the frames that steps make: methods after the trace's last. */
export function made(steps: Step[]): string[] {
	return steps.filter((s) => s.kind === 'library').map((s) => `[${(s as { name: string }).name}]`);
}

/** Steps on existing methods: the trace's own, and frames that steps create. */
export function fitting(steps: Step[], methods: number): Step[] {
	const most = methods + made(steps).length;
	return steps.filter((s) => !('method' in s) || s.method < most);
}

/** Adds a step, unless the steps have it already.  The app's own frames come first, so that the other steps see
 *  fewer frames. */
export function added(steps: Step[], step: Step): Step[] {
	const same = format([step]);
	if (steps.some((s) => format([s]) === same)) return steps;
	if (step.kind === 'app') return [step, ...steps].slice(0, MOST);
	return [...steps, step].slice(0, MOST);
}

/** Without the step at `at`.  Steps on frames that a library made go with it, or they would mean
 *  another frame. */
export function without(steps: Step[], at: number, methods: number): Step[] {
	const left = steps.filter((_, i) => i !== at);
	if (steps[at].kind !== 'library') return left;
	return left.filter((s, i) => i < at || !('method' in s) || s.method < methods);
}

/** The package of a method, which may name a library: without class and method. */
export function packageOf(name: string): string {
	const parts = name.split('(')[0].split('.');
	const first = parts.findIndex((p) => /^[A-Z]/.test(p));
	return parts.slice(0, first < 0 ? -2 : first).join('.');
}

export function describe(step: Step, nameOf: (method: number) => string): string {
	if (step.kind === 'app') return tr('app frames only');
	if (step.kind === 'recursion') return tr('recursion as one frame');
	if (step.kind === 'library') return tr('{name} as one frame', { name: step.name });
	const name = nameOf((step as { method: number }).method);
	return step.kind === 'focus' ? tr('only {name}', { name }) : step.kind === 'drop' ? tr('without {name}', { name })
		: step.kind === 'fold' ? tr('{name} without its callees', { name }) : tr('{name} merged into callers', { name });
}
