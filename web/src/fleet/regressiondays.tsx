// A regression's last days as bars, in a list: loaded when its row is first seen, one regression after the other.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../api/api';
import { Trend } from './fleetfilter';
import type { Trend as Days } from './trenddoc';

export const TREND_DAYS = 30;

let last = Promise.resolve(); // the latest request; the next one waits for it

export function RegressionDays({ id, percentile, name }: { id: string; percentile: number; name: string }) {
	const ref = useRef<HTMLSpanElement>(null);
	const [v, put] = useState<Days>();
	useEffect(() => {
		const abort = new AbortController();
		const watch = new IntersectionObserver(([e]) => {
			if (!e.isIntersecting) return;
			watch.disconnect();
			last = last.then(() => get<Days>(`/api/v1/regressions/${id}/trend`, {}, abort.signal)).then(put, () => undefined); // the row is complete without its bars
		});
		watch.observe(ref.current!);
		return () => {
			watch.disconnect();
			abort.abort();
		};
	}, [id]);
	const points = v?.lines[0]?.points ?? [];
	return <span ref={ref}><Trend trend={points.map((p) => ({ day_ms: p.day_ms, count: p[percentile === 50 ? 'p50' : 'p95'].ns }))} change={v?.change_ms} days={TREND_DAYS} name={name} wide={90} high={14} /></span>;
}
