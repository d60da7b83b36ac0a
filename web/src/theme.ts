// Light or dark: the system's choice until the switch says otherwise.
import { computed, effect, signal } from '@preact/signals';

const KEY = 'tracewell-theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const systemDark = signal(system.matches);
const chosen = signal(remembered());

function remembered(): string {
	try {
		return localStorage.getItem(KEY) ?? '';
	} catch {
		return '';
	}
}

system.addEventListener('change', () => (systemDark.value = system.matches));

export const dark = computed(() => (chosen.value ? chosen.value === 'dark' : systemDark.value));

export function toggle(): void {
	chosen.value = dark.value ? 'light' : 'dark';
	try {
		localStorage.setItem(KEY, chosen.value);
	} catch {
		// private windows keep nothing
	}
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
