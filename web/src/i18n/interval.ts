// The words of an interval; the server writes the same (tw_interval_text of server/base/text/figure.c).
import { tr } from './strings/frame';

/** "+31 % to +33 %"; "about +32 %" if both ends round to the same figure. */
export const interval = (low: string, high: string): string => (low === high ? tr('about {figure}', { figure: low }) : tr('{low} to {high}', { low, high }));
