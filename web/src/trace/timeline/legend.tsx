// The meaning of the timeline's colours, and the choice of colours without red and green.
import { css, colorOf, packageOf } from '../../ui/color';
import { Popover } from '../../ui/popover';
import { dark, safe, useSafe } from '../../ui/theme';
import { tr } from '../../i18n/strings/trace';
import type { NoteSum } from '../../api/api';
import { kindTitle } from '../state/notekinds';
import { STATE_NAMES, STATES } from '../state/statelines';
import { tintOf } from './lanepaint';
import { SPAN_KINDS, TRACE_KINDS } from './tracks';

const PACKAGES = 10;

/** The packages with most methods, each with a method that has its colour. */
function packagesOf(names: string[]): [string, string][] {
	const of = new Map<string, { n: number; name: string }>();
	for (const name of names) {
		const pkg = packageOf(name);
		const p = of.get(pkg);
		if (p) p.n++;
		else of.set(pkg, { n: 1, name });
	}
	return [...of].sort((a, b) => b[1].n - a[1].n).slice(0, PACKAGES).map(([pkg, { name }]) => [pkg, name]);
}

const Line = ({ color, text }: { color: string; text: string }) => <li><i class="swatch" style={{ background: color }} /><span class="mono">{text}</span></li>;

export function Legend({ names, sums }: { names: string[]; sums: NoteSum[] }) {
	const kinds = [...SPAN_KINDS, ...TRACE_KINDS].filter((k) => sums.some((s) => s.kind === k));
	return <Popover small label={tr('Colours')} title={tr('What the colours mean')}>{() => <div class="colourkey">
		<label class="check" title={tr('For red-green colour blindness; stored in this browser')}><input type="checkbox" checked={safe.value} onChange={(e) => useSafe(e.currentTarget.checked)} />{' '}{tr('Colour-blind palette')}</label>
		{names.length > 0 && <><h3>{tr('Calls, by package')}</h3><ul>{packagesOf(names).map(([pkg, name]) => <Line key={pkg} color={css(colorOf(name, dark.value, safe.value))} text={pkg} />)}</ul>
			<p class="quiet">{tr('A package has one hue, a class one lightness.')}</p></>}
		{sums.some((s) => s.kind === 'state') && <><h3>{tr('Thread states')}</h3><ul>{STATES.map((s, i) => <Line key={s} color={`var(--state-${s})`} text={STATE_NAMES[i]} />)}</ul></>}
		{kinds.length > 0 && <><h3>{tr('Events')}</h3><ul>{kinds.map((k) => <Line key={k} color={css(tintOf(k, dark.value).edge)} text={kindTitle(k)} />)}</ul></>}
	</div>}</Popover>;
}
