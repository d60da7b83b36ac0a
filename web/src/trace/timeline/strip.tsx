// Activity over time as bars: the share of each cell in which the thread had a call open.
import { useMemo } from 'preact/hooks';

export function Strip({ activity }: { activity: number[] }) {
	const n = activity.length || 1;
	const path = useMemo(() => activity.map((a, i) => (a ? `M${i} 1V${(1 - a / 255).toFixed(3)}h1V1z` : '')).join(''), [activity]);
	return (
		<svg class="strip" viewBox={`0 0 ${n} 1`} preserveAspectRatio="none" aria-hidden="true"><path d={path} /></svg>
	);
}
