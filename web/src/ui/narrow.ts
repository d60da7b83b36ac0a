// Is this a phone?
import { signal } from '@preact/signals';

const small = typeof matchMedia === 'function' ? matchMedia('(max-width: 700px), (max-height: 480px)') : null; // absent in unit tests

/** A phone: one pane and one row of the header fit. */
export const narrow = signal(small?.matches ?? false);
small?.addEventListener('change', () => { narrow.value = small.matches; });
