// The hits of a search in a merged graph or tree, and the row that counts them.
import type { Flame } from '../../api/api';
import { count, percent } from '../../i18n/format';
import { tr } from '../../i18n/strings/trace';

export interface Hits {
	nodes: number[]; // rising
	value: number; // of those not inside another one
}

/** Null: nothing is searched for. */
export function hitsOf(f: Flame, matches: Uint8Array | null): Hits | null {
	if (!matches) return null;
	const nodes: number[] = [];
	const under = new Uint8Array(f.method.length);
	let value = 0;
	for (let i = 0; i < f.method.length; i++) {
		const inside = i > 0 && under[f.parent[i]] === 1;
		const hit = f.method[i] >= 0 && matches[f.method[i]] === 1;
		if (hit) nodes.push(i);
		if (hit && !inside) value += f.value[i];
		under[i] = inside || hit ? 1 : 0;
	}
	return { nodes, value };
}

/** The hit after (or before) a position in a sorted list; the first follows the last. */
export function nextHit(nodes: number[], at: number, forward: boolean): number {
	return (forward ? nodes.find((n) => n > at) ?? nodes[0] : nodes.filter((n) => n < at).at(-1) ?? nodes.at(-1)) ?? -1;
}

export function HitBar({ hits, of, share, what, go }: {
	hits: number; of: number; share: number; what: string; go: (forward: boolean) => void;
}) {
	return (
		<div class="row hits">
			<output>{tr.rich('{hits} of {of} {what} match{hits2}', { hits: count(hits), of: count(of), what, hits2: hits > 0 && tr(', {share} of the time', { share: percent(share) }) })}</output>
			{hits > 0 && <>
				<button class="small" onClick={() => go(false)} aria-label={tr('Previous of the {what} that match', { what })}>{tr('Previous')}</button>
				<button class="small" onClick={() => go(true)} aria-label={tr('Next of the {what} that match', { what })}>{tr('Next')}</button>
			</>}
		</div>
	);
}
