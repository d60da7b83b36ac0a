// Two fingers on a graph: spreading opens the box below them, pinching moves up.  One finger scrolls.

const SPREAD = 1.3; // ratio to the initial distance

interface Pinched {
	x: number; // between the fingers when the second came down, in pixels of the element
	y: number;
}

/** Handlers of pointers; `into` and `up` are called once for each pinch. */
export function pinchOn(into: (at: Pinched) => void, up: () => void) {
	const fingers = new Map<number, { x: number; y: number }>();
	let begun: { apart: number; at: Pinched } | null = null;
	let pinched = false; // since the first finger touched: its end is not a tap
	const measure = () => {
		const [a, b] = [...fingers.values()];
		return { apart: Math.hypot(a.x - b.x, a.y - b.y), at: { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 } };
	};
	return {
		onPointerDown(e: PointerEvent) {
			if (fingers.size === 0) pinched = false;
			if (e.pointerType !== 'touch') return;
			fingers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
			if (fingers.size !== 2) return;
			begun = measure();
			pinched = true;
		},
		onPointerMove(e: PointerEvent) {
			if (!fingers.has(e.pointerId)) return;
			fingers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
			if (!begun || fingers.size !== 2) return;
			const { apart } = measure();
			const { at } = begun;
			if (apart >= begun.apart * SPREAD) into(at);
			else if (apart * SPREAD <= begun.apart) up();
			else return;
			begun = null;
		},
		onPointerEnd(e: PointerEvent) {
			fingers.delete(e.pointerId);
			begun = null;
		},
		/** Is the next click the end of a pinch? */
		wasPinch: () => pinched,
	};
}
