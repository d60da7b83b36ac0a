// A finger that rests opens the menu of what is below it, also in browsers that do not report this as `contextmenu` (iOS).
const REST_MS = 500;
const MOVED = 10; // CSS pixels

let timer = 0;
let at = { clientX: 0, clientY: 0 };
let opened = false; // by this touch

const stop = () => clearTimeout(timer);

addEventListener('pointerdown', (e: PointerEvent) => {
	stop();
	opened = false;
	at = e;
	const { clientX, clientY } = e;
	if (e.pointerType === 'touch' && e.isPrimary)
		timer = window.setTimeout(() => { opened = !e.target!.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true, clientX, clientY })); }, REST_MS);
}, true);
addEventListener('pointermove', (e: PointerEvent) => Math.hypot(e.clientX - at.clientX, e.clientY - at.clientY) > MOVED && stop(), true);
for (const end of ['pointerup', 'pointercancel', 'scroll']) addEventListener(end, stop, true);
addEventListener('touchend', (e) => opened && e.preventDefault(), { capture: true, passive: false }); // no tap follows: it would choose the item that is below the finger
addEventListener('contextmenu', (e) => {
	if (!e.isTrusted) return;
	stop(); // the browser reports it itself
	if (!opened) return;
	e.preventDefault();
	e.stopPropagation();
}, true);

export {};
