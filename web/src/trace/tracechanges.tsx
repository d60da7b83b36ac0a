// Changes to a trace while it is open: a mapping arrives, its ANR group is known, or the trace is deleted.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, type Trace } from '../api/api';
import { count } from '../i18n/format';
import { missing } from '../api/health';
import { link } from '../ui/route';
import { tr } from '../i18n/strings/trace';

const CHECK_MS = 5000; // while names or the ANR group are lacking

const changing = (t: Trace) => JSON.stringify([t.report?.names ?? null, t.anr_group, t.rollup_state]);

/** Requests the trace again if its names or its ANR group changed, or if a part of it is no longer found. */
export function useTraceChanges(t: Trace | null, again: () => void): void {
	const id = t?.id ?? '';
	const grouping = t !== null && t.anr !== '' && t.anr_group === '' && ['waiting', 'postponed'].includes(t.rollup_state);
	const lacking = t?.state === 'ready' && (grouping || (t.report?.names.resolved ?? 0) < (t.report?.names.ids ?? 0));
	useEffect(() => {
		if (!lacking) return;
		const check = () => document.visibilityState === 'visible' && api.trace(id).then((now) => changing(now) !== changing(t!) && again(), () => undefined);
		const timer = setInterval(check, CHECK_MS);
		return () => clearInterval(timer);
	}, [id, lacking, t && changing(t)]);
	useEffect(() => {
		if (!id) return;
		const own = `/api/v1/traces/${id}`;
		let first = true;
		return missing.subscribe(({ path }) => {
			if (!first && path.startsWith(own + '/')) again();
			first = false;
		});
	}, [id]);
}

/** Reports new names until it is dismissed. */
export function NewNames({ t }: { t: Trace }) {
	const resolved = t.report?.names.resolved ?? 0;
	const before = useRef(resolved);
	const [message, show] = useState('');
	useEffect(() => {
		if (resolved > before.current) show(tr('A mapping arrived: {resolved} of {ids} method ids now have names.', { resolved: count(resolved), ids: count(t.report!.names.ids) }));
		before.current = resolved;
	}, [resolved]);
	return <div role="status">{message && <p class="notice row">{message}<span class="grow" /><button class="small" onClick={() => show('')}>{tr('Close')}</button></p>}</div>;
}

export function Deleted() {
	return (
		<div class="notice bad" role="alert">
			<strong>{tr('This trace was deleted.')}</strong>
			<p>{tr('Data loaded earlier is still shown below, but nothing more can be loaded. Upload the trace again if you need it.')}</p>
			<p><a class="button" href={link('/traces')}>{tr('All traces')}</a></p>
		</div>
	);
}
