// The ANR reports of a trace.
import { api, type Trace } from '../api/api';
import type { Anr } from './anrdoc';
import { useLoad, type Loaded } from '../ui/parts';

export type Reports = { content: Anr }[];

export const turnOf = (t: Trace) => JSON.stringify(t.report?.names); // changes when a mapping came

export function useReports(t: Trace): Loaded<{ documents: Reports }> {
	return useLoad(t.id + turnOf(t), (s) => api.documents<Anr>(t.id, 'anr', s));
}
