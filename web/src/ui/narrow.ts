// Is this a phone, and is it touched?
import { signal } from '@preact/signals';

const small = globalThis.matchMedia?.('(max-width: 700px), (max-height: 480px)'); // absent in unit tests

/** A phone: one pane and one row of the header fit. */
export const narrow = signal(small?.matches ?? false);
small?.addEventListener('change', () => { narrow.value = small.matches; });

/** A finger points: targets are 40 pixels high (also in `style.css`). */
export const coarse = globalThis.matchMedia?.('(pointer: coarse)').matches;
