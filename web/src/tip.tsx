// What is under the pointer.
import { duration, splitName } from './format';
import type { Hit } from './messages';

export function Tip({ hit, name, start, x, y, width }: { hit: Hit; name: string; start: number; x: number; y: number; width: number }) {
	const [pkg, rest] = splitName(name);
	const left = x > width / 2;
	return (
		<div class="tip" style={{ top: `${y + 16}px`, ...(left ? { right: `${width - x + 8}px` } : { left: `${x + 8}px` }) }}>
			<div class="mono"><span class="quiet">{pkg}</span>{rest}</div>
			{hit.merged > 1 && <div>{hit.merged} short calls drawn as one, the longest named</div>}
			<dl>
				<dt>wall</dt><dd>{duration(hit.end - hit.start)}</dd>
				<dt>starts at</dt><dd>{duration(hit.start - start)}</dd>
				<dt>depth</dt><dd>{hit.depth}</dd>
			</dl>
		</div>
	);
}
