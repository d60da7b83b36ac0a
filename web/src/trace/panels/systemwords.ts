import type { System } from '../../api/api';
import { COMMA, count } from '../../i18n/format';
import { serverText } from '../../i18n/servertext';
import { tr } from '../../i18n/strings/frame';

// How the device's own trace is aligned with this one: the clock, and the offset.
export function systemWords(s: System): string {
	const flaws = [s.damages > 0 ? tr('damaged in {damages} places', { damages: count(s.damages) }) : '', s.cut ? tr('the end is missing') : ''].filter(Boolean);
	const end = flaws.length > 0 ? ` (${flaws.join(COMMA)})` : '';
	if (!s.joined) return tr("The device's system trace is omitted from Perfetto files: {reason}{end}.", { reason: serverText(s.reason ?? ''), end });
	if (s.clock === 'start')
		return tr("The device's system trace and this trace have no common clock: in Perfetto files both start at the same time{end}.", { end });
	const steps = (s.steps ?? 1) > 1 ? tr(', in {steps} ranges with different offsets', { steps: s.steps }) : '';
	return tr("The device's system trace ({packets} packets) is in Perfetto files, placed by {toUpperCase}, moved by {offset_ns} ns{steps}{end}.", { packets: count(s.packets), toUpperCase: s.clock!.toUpperCase(), offset_ns: count(s.offset_ns ?? 0), steps, end });
}
