// Light or dark: the system's setting until the user changes it.
import { computed, effect, signal } from '@preact/signals';

const KEY = 'tracewell-theme';
const COLOURS = 'tracewell-colours';
const system = matchMedia('(prefers-color-scheme: dark)');
const systemDark = signal(system.matches);
const chosen = signal(remembered(KEY));
const colours = signal(remembered(COLOURS));

/** What this browser keeps under a key; '' where that is nothing. */
export function remembered(key: string): string {
	try {
		return localStorage.getItem(key) ?? '';
	} catch {
		return '';
	}
}

system.addEventListener('change', () => (systemDark.value = system.matches));

/** Pixels of the screen for one of CSS, at least one; it changes with the page's zoom and the screen it is on. */
export const density = signal(1);

function watchDensity(): void {
	density.value = Math.max(1, devicePixelRatio || 1);
	matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener('change', watchDensity, { once: true });
}

watchDensity();

export const dark = computed(() => (chosen.value ? chosen.value === 'dark' : systemDark.value));

/** Colours of calls for red-green colour blindness. */
export const safe = computed(() => colours.value === 'safe');

export function remember(key: string, value: string): void {
	try {
		localStorage.setItem(key, value);
	} catch {
		// private windows keep nothing
	}
}

export function toggle(): void {
	chosen.value = dark.value ? 'light' : 'dark';
	remember(KEY, chosen.value);
}

export function useSafe(on: boolean): void {
	colours.value = on ? 'safe' : '';
	remember(COLOURS, colours.value);
}

effect(() => {
	document.documentElement.dataset.theme = dark.value ? 'dark' : 'light';
});

/** A colour of the stylesheet as a pixel 0xAABBGGRR. */
export function cssPixel(name: string): number {
	const v = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const m = /^#([0-9a-f]{6})$/i.exec(v);
	const n = m ? parseInt(m[1], 16) : 0x808080;
	return (0xff000000 | ((n & 255) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}
