// Facts of a trace, and notices of missing names or calls.
import type { NoteSum, Trace } from '../../api/api';
import { bytes, count, when } from '../../i18n/format';
import { serverText } from '../../i18n/servertext';
import { Copy } from '../../ui/parts';
import { kindTitle } from '../state/notekinds';
import { showTab } from '../state/tab';
import { headOf } from '../../api/source';
import { tr } from '../../i18n/strings/trace';
import { deviceOf, lengthOf } from '../../api/traces';

export function Facts({ t }: { t: Trace }) {
	const m = t.meta;
	const s = t.summary;
	const facts: [string, string][] = [
		[tr('Version'), m.version_name], [tr('Build'), m.build_id], [tr('Scenario'), m.scenario], [tr('Device'), deviceOf(m)],
		[tr('Process'), m.process], [tr('Duration'), s ? lengthOf(s) : ''], [headOf(s?.format ?? ''), s ? count(s.slices) : ''],
		[tr('Threads'), s ? count(s.threads) : ''], [tr('Methods'), s ? count(s.methods) : ''], [tr('Depth'), s ? count(s.max_depth) : ''], [tr('Format'), s?.format ?? ''],
		[tr('Upload'), bytes(t.upload_bytes)], [tr('Stored'), s ? bytes(s.file_bytes) : ''], [tr('Arrived'), when(t.created_ms)],
	];
	return <dl class="facts">{facts.filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>;
}

/** Why most calls have no names, and the command that sends them. */
export function lackOf(t: Trace): { why: string; command: string } | null {
	const n = t.report?.names;
	if (!n?.warning) return null;
	const build = n.build_id;
	return { why: !build ? tr('The upload did not set build_id. Send the trace again with its build (Upload, Details for these files), and the methodMapping.txt of the build.')
		: !n.mapping ? tr('No mapping was uploaded for build {build}. Send its methodMapping.txt to name the methods of this trace.', { build })
		: tr('The mapping of build {build} contains {resolved} of {ids} method ids: it is probably the mapping of another build.', { build, resolved: count(n.resolved), ids: count(n.ids) }),
	command: build && `curl -T methodMapping.txt -H "Authorization: Bearer $KEY" ${location.origin}/api/v1/builds/${encodeURIComponent(build)}/methods` };
}

/** One line: the timeline needs the height. The report shows all of it. */
export function NamesWarning({ t }: { t: Trace }) {
	const lack = lackOf(t);
	if (!lack) return null;
	return <div class="notice warn line" role="alert"><strong>{tr('Method names are missing.')}</strong> <span title={lack.why}>{lack.why}</span>
		{lack.command && <Copy text={lack.command} label={tr('Copy command')} />}</div>;
}

/** Notice for a trace with nothing to draw: states its contents and the losses of decoding. */
export function NothingDrawn({ t, sums }: { t: Trace; sums: NoteSum[] }) {
	const lost = (t.report?.repairs ?? []).filter((r) => r.kind === 'loss');
	return <div class="notice warn" role="status"><strong>{tr('This trace contains no calls.')}</strong>
		<p>{sums.length > 0 ? tr('Contents: {events}.', { events: sums.map((s) => `${kindTitle(s.kind)}: ${count(s.notes)}`).join(', ') }) : tr('It also contains no events.')}
			{' '}{lost.length === 0 ? tr('Nothing was lost while decoding it.') : tr('Lost while decoding it: {losses}.', { losses: lost.map((r) => serverText(r.meaning)).join('; ') })}</p>
		<button class="small" onClick={() => showTab('report')}>{tr('Decode report')}</button></div>;
}
