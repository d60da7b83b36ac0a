// Numbers in readable form. Times are in the form of ISO 8601 in every language.
import { grouped, language } from './language';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

const UNITS: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

function scaled(ns: number): [string, string] {
	const [size, unit] = UNITS.find(([s]) => Math.abs(ns) >= s) ?? UNITS[3];
	const v = ns / size;
	const digits = size === 1 || Math.abs(v) >= 100 ? 0 : Math.abs(v) >= 10 ? 1 : 2;
	return [v.toFixed(digits), unit];
}

/** 1234567 → "1.23 ms"; three digits, so that columns line up. */
export function duration(ns: number): string {
	return ns === 0 ? '0' : scaled(ns).join(' ');
}

/** 20000000 → "20 ms": round times as they are. */
export function tick(ns: number): string {
	const [v, unit] = scaled(ns);
	return ns === 0 ? '0' : `${v.includes('.') ? v.replace(/\.?0+$/, '') : v} ${unit}`;
}

function trim(v: number, digits: number): string {
	return v.toFixed(digits).replace(/\.0+$/, '').replace(/(\.\d*[1-9])0+$/, '$1');
}

/** The separator of a list. */
export const COMMA = language === 'en' ? ', ' : '，';

export const PERCENT = language === 'en' ? ' %' : '%';

export const count = grouped;

export function bytes(n: number): string {
	if (n < 1024) return `${n} B`;
	const units = ['KiB', 'MiB', 'GiB', 'TiB'];
	let v = n;
	let u = -1;
	while (v >= 1024 && u < 3) {
		v /= 1024;
		u++;
	}
	return `${trim(v, v >= 100 ? 0 : 1)} ${units[u]}`;
}

export function percent(share: number): string {
	const p = share * 100;
	return `${p === 0 ? '0' : p < 0.1 ? '<0.1' : p < 9.95 ? p.toFixed(1) : count(Math.round(p))}${PERCENT}`;
}

/** A change everywhere on the page: 0.474 → "+47 %", −0.0312 → "−3.1 %". The server writes the same figure (tw_markup_percent). */
export function signed(share: number): string {
	return share === 0 ? `±0${PERCENT}` : `${share < 0 ? '−' : '+'}${percent(Math.abs(share))}`;
}

const NS_OF_MS = 1e6;

/** A figure of an alert and its limit; the server writes the same (put_figure of server/notify/text.c). */
export function inUnit(value: number, unit: 'ms' | 'share' | 'times', times: (n: string) => string): string {
	return unit === 'ms' ? duration(value * NS_OF_MS) : unit === 'share' ? percent(value) : times(value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3))));
}

/** Unix ms → "2026-11-21 05:40". */
export function when(ms: number): string {
	const d = new Date(ms);
	const two = (n: number) => String(n).padStart(2, '0');
	return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

/** A step of 1, 2 or 5 times a power of ten that gives about `ticks` marks over span. */
export function tickStep(span: number, ticks: number): number {
	const raw = span / Math.max(1, ticks);
	const power = 10 ** Math.floor(Math.log10(raw));
	const lead = raw / power;
	return Math.max(1, (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10) * power);
}

/** Without parameters, in which dots do not separate names: "a::B::call(char const*, ...)" → "a::B::call". */
export function withoutParameters(name: string): string {
	const at = name.indexOf('(');
	return at < 0 ? name : name.slice(0, at);
}

const CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A name from a trace without the power to reorder text: bidirectional controls are shown by their numbers. */
export function harmless(name: string): string {
	return name.replace(CONTROLS, (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`);
}

/** A name where no element isolates it, as on a canvas: one written from right to left would reorder what follows. */
export const isolated = (name: string) => (/[\u0590-\u08ff\ufb1d-\ufefc]/.test(name) ? `\u2068${name}\u2069` : name);

/** "com.example.app.Feed$Adapter.bind" → ["com.example.app.", "Feed$Adapter.bind"]. */
export function splitName(of: string): [string, string] {
	const name = harmless(of);
	const [, pkg = ''] = /^(.*\.)[^.]*\.[^.]*$/.exec(withoutParameters(name)) ?? [];
	return [pkg, name.slice(pkg.length)];
}

/** "com.example.app.Feed$Adapter" → ["com.example.app.", "Feed$Adapter"]. */
export function splitClass(of: string): [string, string] {
	const name = harmless(of);
	const at = name.lastIndexOf('.') + 1;
	return [name.slice(0, at), name.slice(at)];
}

export function sentence(text: string): string {
	return text.charAt(0).toUpperCase() + text.slice(1);
}
