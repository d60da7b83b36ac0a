// The flame graph that is shown, as a file: SVG, or PNG in a file or the clipboard.
import { useState } from 'preact/hooks';
import type { Flame } from '../../api/api';
import type { Boxes } from './flamelayout';
import { paintBoxes, ROW } from './flamepaint';
import { svgOf, WIDTH } from './flamesvg';
import type { Answer, Metric } from './graphparts';
import { download } from '../../ui/parts';
import { Popover } from '../../ui/popover';
import { tr } from '../../i18n/strings/trace';
import { dark, safe } from '../../ui/theme';

const SCALE = 2; // of the PNG

function pngOf(f: Flame, b: Boxes, matches: Uint8Array | null): Promise<Blob> {
	const canvas = document.createElement('canvas');
	canvas.width = WIDTH * SCALE;
	canvas.height = Math.min(16384, b.rows * ROW * SCALE); // what browsers draw at most
	const g = canvas.getContext('2d')!;
	g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--panel');
	g.fillRect(0, 0, canvas.width, canvas.height);
	g.scale(SCALE, SCALE);
	paintBoxes(g, f, b, { from: 0, to: b.rows, shift: 0, width: WIDTH }, { matches, dark: dark.value, safe: safe.value, focus: -1, flip: false });
	return new Promise((ok, no) => canvas.toBlob((blob) => (blob ? ok(blob) : no(new Error(tr('The browser could not create the picture.')))), 'image/png'));
}

export function SaveGraph({ a, id, metric, matches }: { a: Answer; id: string; metric: Metric; matches: Uint8Array | null }) {
	const [said, say] = useState('');
	const file = (kind: string) => `flame-${id}.${kind}`;
	const run = (job: () => Promise<string>) => job().then(say, (why: Error) => say(why.message));
	return (
		<Popover label={tr('Save picture')} title={tr('Save the picture')} small>{(close) => <>
			<button class="item" onClick={() => { download(new Blob([svgOf(a.f, a.boxes, metric.show, safe.value)], { type: 'image/svg+xml' }), file('svg')); close(); }}>{tr('As SVG')}</button>
			<button class="item" onClick={() => run(async () => { download(await pngOf(a.f, a.boxes, matches), file('png')); return tr('Saved.'); })}>{tr('As PNG')}</button>
			<button class="item" onClick={() => run(async () => { await navigator.clipboard.write([new ClipboardItem({ 'image/png': pngOf(a.f, a.boxes, matches) })]); return tr('Copied.'); })}>{tr('Copy as PNG')}</button>
			<output class="quiet">{said}</output>
		</>}</Popover>
	);
}
