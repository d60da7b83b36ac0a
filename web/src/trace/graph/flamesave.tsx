// The flame graph that is shown, as a file: SVG, or PNG in a file or the clipboard.
import { useState } from 'preact/hooks';
import type { Answer, Metric } from './graphparts';
import { download } from '../../ui/parts';
import { Popover } from '../../ui/popover';
import { tr } from '../../i18n/strings/trace';
import { safe } from '../../ui/theme';

type Pictures = typeof import('./flamepicture');
const picture = (): Promise<Pictures> => import('./flamepicture');

export function SaveGraph({ a, id, metric, matches }: { a: Answer; id: string; metric: Metric; matches: Uint8Array | null }) {
	const [said, say] = useState('');
	const run = (job: (made: Pictures) => Promise<string> | string) => () => void picture().then(job).then(say, (why: Error) => say(why.message));
	const save = (blob: Blob, kind: string, close?: () => void) => {
		download(blob, `flame-${id}.${kind}`);
		close?.();
		return tr('Saved.');
	};
	const png = (made: Pictures) => made.pngOf(a.f, a.boxes, matches);
	return (
		<Popover label={tr('Save picture')} title={tr('Save the picture')} small>{(close) => <>
			<button class="item" onClick={run((made) => save(new Blob([made.svgOf(a.f, a.boxes, metric.show, safe.value)], { type: 'image/svg+xml' }), 'svg', close))}>{tr('As SVG')}</button>
			<button class="item" onClick={run(async (made) => save(await png(made), 'png'))}>{tr('As PNG')}</button>
			<button class="item" onClick={run(async (made) => { await navigator.clipboard.write([new ClipboardItem({ 'image/png': png(made) })]); return tr('Copied.'); })}>{tr('Copy as PNG')}</button>
			<output class="quiet">{said}</output>
		</>}</Popover>
	);
}
