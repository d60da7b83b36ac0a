// The flame graph that is shown, as a file: SVG, or PNG in a file or the clipboard.
import { useState } from 'preact/hooks';
import type { Answer, Metric } from './graphparts';
import { incomplete } from '../../ui/later';
import { download } from '../../ui/parts';
import { Popover } from '../../ui/popover';
import { tr } from '../../i18n/strings/trace';
import { safe } from '../../ui/theme';

const picture = () => import('./flamepicture').catch(() => { throw incomplete(); });

export function SaveGraph({ a, id, metric, matches }: { a: Answer; id: string; metric: Metric; matches: Uint8Array | null }) {
	const [message, show] = useState('');
	const run = (job: () => Promise<string>) => () => void job().then(show, (why: Error) => show(why.message));
	const save = (blob: Blob, kind: string) => {
		download(blob, `flame-${id}.${kind}`);
		return tr('Saved.');
	};
	const svg = async () => new Blob([(await picture()).svgOf(a.f, a.boxes, metric.show, safe.value)], { type: 'image/svg+xml' });
	const png = async () => (await picture()).pngOf(a.f, a.boxes, matches);
	const copy = (blob: Promise<Blob>) => navigator.clipboard.write([new ClipboardItem({ 'image/png': blob })]); // not after a wait: Safari refuses it
	return (
		<Popover label={tr('Save picture')} title={tr('Save the picture')} small>{(close) => <>
			<button class="item" onClick={run(async () => { const done = save(await svg(), 'svg'); close(); return done; })}>{tr('As SVG')}</button>
			<button class="item" onClick={run(async () => save(await png(), 'png'))}>{tr('As PNG')}</button>
			<button class="item" onClick={run(async () => { const blob = png(); await Promise.all([blob, copy(blob)]); return tr('Copied.'); })}>{tr('Copy as PNG')}</button>
			<output class="quiet">{message}</output>
		</>}</Popover>
	);
}
