import type { System } from './api';
import { count } from './format';

// How the device's own trace goes with this one: the clock, and how far it was moved.
export function systemWords(s: System): string {
	const flaws = [s.damages > 0 ? `${count(s.damages)} damaged places` : '', s.cut ? 'its end is missing' : ''].filter(Boolean);
	const end = flaws.length > 0 ? ` (${flaws.join(', ')})` : '';
	if (!s.joined) return `The device's system trace is left out of Perfetto files: ${s.why_not}${end}.`;
	if (s.clock === 'start')
		return `The device's system trace shares no clock with this one: in Perfetto files both begin together${end}.`;
	const steps = (s.steps ?? 1) > 1 ? `, in ${s.steps} stretches of their own offset` : '';
	return `The device's system trace (${count(s.packets)} packets) is in Perfetto files, placed by ${s.clock!.toUpperCase()}, moved by ${count(s.offset_ns ?? 0)} ns${steps}${end}.`;
}
