// Text on boxes: as much of it as fits.
import { harmless, withoutParameters } from '../i18n/format';

export const FONT = '11px system-ui, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", "DejaVu Sans", sans-serif';

const widths = new Map<string, number>(); // by character; labels repeat few of them

function width(g: CanvasRenderingContext2D, char: string): number {
	let w = widths.get(char);
	if (w === undefined) {
		w = g.measureText(char).width;
		widths.set(char, w);
	}
	return w;
}

const JOINED = /[\udc00-\udfff\u200d\ufe0f\p{M}]/u; // the second half of a character, or a mark on the one before

/** The text, or its begin with an ellipsis, or '' when not even three letters fit. */
export function fit(g: CanvasRenderingContext2D, text: string, room: number): string {
	const dots = width(g, '…');
	let w = 0;
	let keep = 0; // characters that fit together with the dots
	for (let i = 0; i < text.length; i++) {
		w += width(g, text[i]);
		if (w + dots <= room && !JOINED.test(text[i + 1] ?? '') && text[i] !== '\u200d') keep = i + 1;
		if (w > room) return keep < 3 ? '' : text.slice(0, keep) + '…';
	}
	return text;
}

/* Without parameters; "Choreographer#doFrame 4711" is the platform's form. Other texts are sentences, which are shortened at their end. */
const METHOD = /^[^\s()]*(?:[.:]|#(?=[A-Za-z_]))([^\s().:#]+)(?: \d+)?$/;

/** A method's name: complete, without parameters, as "…method", as "method" or its first letters that fit; '' if fewer than three do. */
export function fitMethod(g: CanvasRenderingContext2D, of: string, room: number): string {
	const name = harmless(of);
	const whole = fit(g, name, room);
	const bare = withoutParameters(name);
	const method = METHOD.exec(bare)?.[1];
	if (whole === name || !method) return whole;
	for (const text of [bare, `…${method}`]) if (fit(g, text, room) === text) return text;
	return fit(g, method, room);
}
