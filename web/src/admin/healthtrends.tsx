// Charts of the last 24 hours: current value, bars, peak or lowest.
import { barsOf, extreme, increase, isFromStart, type Bar, type MetricHistory } from '../api/history';
import { bytes, count, HOUR_MS, when } from '../i18n/format';
import { tr } from '../i18n/strings/health';
import { Panel } from '../ui/parts';

const BAR_HEIGHT = 34, MINUTE_MS = 60_000;

const clock = (ms: number): string => when(ms).slice(-5);

interface Series { name: string; label: string; kind: 'counter' | 'highest' | 'lowest'; bad?: boolean; shown?: (n: number) => string }

const SERIES: Series[] = [
	{ name: 'queue_traces', label: tr('Waiting traces'), kind: 'highest' },
	{ name: 'uploads', label: tr('Uploads'), kind: 'counter' },
	{ name: 'failed', label: tr('Failed decodes'), kind: 'counter', bad: true },
	{ name: 'refused', label: tr('Refused requests'), kind: 'counter', bad: true },
	{ name: 'errors', label: tr('Server errors'), kind: 'counter', bad: true },
	{ name: 'disk_free_bytes', label: tr('Free disk space'), kind: 'lowest', shown: bytes },
];

function Bars({ bars, label, shown }: { bars: Bar[]; label: string; shown: (n: number) => string }) {
	const most = Math.max(1, ...bars.map((b) => b.value ?? 0));
	return (
		<svg class="bars" role="img" aria-label={label} viewBox={`0 0 ${bars.length} ${BAR_HEIGHT}`} preserveAspectRatio="none" width="100%" height={BAR_HEIGHT}>
			{bars.map((b, i) => {
				const high = b.value === null ? 0 : Math.max(1, (b.value / most) * BAR_HEIGHT);
				return b.value !== null && <rect key={b.from_ms} x={i + 0.1} width={0.8} y={BAR_HEIGHT - high} height={high} class={b.value ? '' : 'none'}><title>{`${when(b.from_ms)}: ${shown(b.value)}`}</title></rect>;
			})}
		</svg>
	);
}

/** The bar of the extreme, or the increase of the last hour. */
function detail(s: Series, h: MetricHistory, bars: Bar[], shown: (n: number) => string): string {
	if (s.kind === 'counter') return tr('{n} in the last hour', { n: count(increase(h, s.name, HOUR_MS)) });
	const at = extreme(bars, s.kind);
	if (!at || at.value === null || at.value === 0) return '\u00a0' /* its place */;
	const of = { value: shown(at.value), time: clock(Math.max(at.from_ms, h.at_ms[0])) };
	return s.kind === 'highest' ? tr('peak {value}, {time}', of) : tr('lowest {value}, {time}', of);
}

function Tile({ s, h }: { s: Series; h: MetricHistory }) {
	const bars = barsOf(h, s.name, s.kind);
	const shown = s.shown ?? count;
	const now = s.kind === 'counter' ? bars.reduce((n, b) => n + (b.value ?? 0), 0) : h.series[s.name]?.at(-1) ?? 0;
	const more = detail(s, h, bars, shown);
	return (
		<div data-series={s.name} class={s.bad && now > 0 ? 'is-bad' : ''}>
			<dt>{s.label}</dt><dd>{shown(now)}</dd>
			<dd class="quiet">{more}</dd>
			<dd><Bars bars={bars} label={`${s.label}: ${shown(now)}, ${more}`} shown={shown} /></dd>
		</div>
	);
}

export function Trends({ h }: { h: MetricHistory }) {
	const began = h.at_ms[0];
	const short = isFromStart(h);
	return (
		<Panel title={tr('Last 24 hours')} id="trends" aside={<span class="quiet">{short && h.at_ms[h.at_ms.length - 1] - began >= MINUTE_MS ? tr('Since the server started, {time}', { time: when(began) }) : short ? tr('The server has just started') : tr('Each bar is 15 minutes')}</span>}>
			<dl class="trends">{SERIES.map((s) => <Tile key={s.name} s={s} h={h} />)}</dl>
		</Panel>
	);
}
