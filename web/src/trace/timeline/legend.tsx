// The meaning of the timeline's colours.
import type { NoteSum } from '../../api/api';
import { Key, Line, Packages } from '../parts/legend';
import { css } from '../../ui/color';
import { dark } from '../../ui/theme';
import { tr } from '../../i18n/strings/trace';
import { kindTitle, OUTCOMES, trackTitle } from '../state/notekinds';
import { STATE_NAMES, STATES } from '../state/statelines';
import { tintOf } from './lanepaint';
import { SPAN_KINDS, TRACE_KINDS } from './tracks';

const ACTUAL = 'actual surface';

export function Legend({ names, sums }: { names: string[]; sums: NoteSum[] }) {
	const kinds = [...SPAN_KINDS, ...TRACE_KINDS].filter((k) => sums.some((s) => s.kind === k));
	return <Key>{() => <>
		{names.length > 0 && <Packages names={names} weight={() => 1} />}
		{sums.some((s) => s.kind === 'state') && <><h3>{tr('Thread states')}</h3><ul>{STATES.map((s, i) => <Line key={s} color={`var(--state-${s})`} text={STATE_NAMES[i]} />)}</ul></>}
		{sums.some((s) => s.text === ACTUAL) && <><h3>{trackTitle('frame', ACTUAL)}</h3><ul>{Object.entries(OUTCOMES).map(([o, title]) => <Line key={o} color={`var(--frame-${o})`} text={title} />)}</ul></>}
		{kinds.length > 0 && <><h3>{tr('Events')}</h3><ul>{kinds.map((k) => <Line key={k} color={css(tintOf(k, dark.value).edge)} text={kindTitle(k)} />)}</ul></>}
	</>}</Key>;
}
