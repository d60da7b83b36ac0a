// Builds: their mappings with the share of names resolved, traces that wait for one, and how to upload it.
import { type Build, type MappingError, type MappingState } from '../api/api';
import { manage } from '../api/manage';
import { FramesPanel } from '../trace/panels/frames';
import { count, percent, when } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { SOON_MS, usePolling } from '../ui/polling';
import { Cards } from '../ui/cards';
import { KeyCommand } from '../ui/makekey';
import { Page } from '../ui/page';
import { Command, Pending, useLoad } from '../ui/parts';
import { EmptyPage, Pages } from '../ui/pages';
import { link, set, text } from '../ui/route';
import { tr } from '../i18n/strings/manage';
import { several } from '../api/traces';

/** How much of the build's traces its mapping names; nothing while no trace with ids is counted. */
function Named({ n }: { n: Build['names'] }) {
	if (n.ids === 0) return n.traces > 0 ? <span class="quiet" title={tr('The traces contain method names')}>{tr('no ids')}</span> : null;
	const share = n.resolved / n.ids;
	return (
		<span class="meter" title={tr('{resolved} of {ids} method ids, {resolved_slices} of {slices} calls', { resolved: count(n.resolved), ids: count(n.ids), resolved_slices: count(n.resolved_slices), slices: count(n.slices) })}>
			<span class="track" aria-hidden="true"><span style={{ width: `${share * 100}%` }} /></span>
			<span class={n.unresolved_traces > 0 ? 'loss' : ''}>{percent(share)}</span></span>
	);
}

const isCompiling = (s: MappingState) => s === 'queued' || s === 'compiling';

/** An upload that is not in use: queued, being compiled, or failed with its reason. */
function Sent({ state, error }: { state: MappingState; error: MappingError | null }) {
	if (state === 'queued') return <span class="quiet"> {tr('new upload queued')}{error && `: ${serverText(error.message)}`}</span>;
	if (state === 'compiling') return <span class="quiet"> {tr('new upload being compiled')}</span>;
	return state === 'failed' && error ? <span class="loss"> {tr('the last upload failed: {why}', { why: serverText(error.message) })}</span> : null;
}

function Mapping({ b }: { b: Build }) {
	return <>
		{!b.mapping && b.names.traces > 0 && b.names.ids === 0 ? <span class="quiet">{tr('not needed')}</span> : <span class={`state ${b.mapping ? 'ready' : 'failed'}`}>{b.mapping ? tr('present') : tr('missing')}</span>}
		{b.mapping && <span class="quiet"> {several(b.entries, 'method')}</span>}
		{b.malformed > 0 && <span class="quiet">{tr(', {malformed} lines unreadable', { malformed: count(b.malformed) })}</span>}
		<Sent state={b.state} error={b.error} />
		{b.duplicates > 0 && <span class="quiet">{tr(', {duplicates} duplicate ids', { duplicates: count(b.duplicates) })}</span>}
	</>;
}

function Retrace({ b }: { b: Build }) {
	const r = b.retrace;
	return <>
		{r.mapping ? <><span class="state ready">{tr('present')}</span> <span class="quiet">{tr.many(r.classes, '{n} class', '{n} classes')}</span></> : <span class="quiet">{tr('none')}</span>}
		<Sent state={r.state} error={r.error} />
		{r.malformed > 0 && <span class="quiet">{tr(', {malformed} lines unreadable', { malformed: count(r.malformed) })}</span>}
	</>;
}

/** The missing mapping, with the remedy. */
function advice(b: Build): string {
	const n = b.names;
	if (!b.mapping && n.unresolved_traces > 0) return tr('Method names are missing in {traces} of this build. Send its methodMapping.txt:', { traces: several(n.unresolved_traces, 'trace') });
	if (n.unresolved_traces > 0) return tr("The mapping lacks {resolved} of the ids in its traces: it may belong to another build. Send the mapping of this build:", { resolved: count(n.ids - n.resolved) });
	if (b.mapping) return tr('All ids of its traces have names. A new mapping replaces the current one:');
	return n.traces > 0 ? tr('Its traces contain method names. If the app is obfuscated, send the R8 mapping:') : tr('Send its mapping before or after its first trace:');
}

function Upload({ b }: { b: Build }) {
	const at = `${location.origin}/api/v1/builds/${encodeURIComponent(b.build_id).replaceAll("'", '%27')}`;
	const send = (file: string, what: string) => `curl -T ${file} -H "Authorization: Bearer $KEY" '${at}/${what}'`;
	return (
		<div class="instructions">
			<p>{advice(b)}</p>
			<KeyCommand name={tr('mappings of {build_id}', { build_id: b.build_id }).slice(0, 100)}>{send('methodMapping.txt', 'methods')}</KeyCommand>
			<p class="quiet">{tr.rich('R8’s or ProGuard’s {code}, where the app is obfuscated:', { code: <code>mapping.txt</code> })}</p>
			<Command>{send('mapping.txt', 'retrace')}</Command>
			<p class="quiet">{tr.rich('The commit it was built from{commit}, for source links and last changes without tags:', { commit: b.commit ? <>{' '}{tr.rich('({commit} now)', { commit: <code>{b.commit}</code> })}</> : '' })}</p>
			<Command>{`curl -X PUT -H "Authorization: Bearer $KEY" '${at}/commit' -d "{\\"commit\\": \\"$(git rev-parse HEAD)\\"}"`}</Command>
			{b.map_version && <p class="quiet">{tr.rich('The mapping’s first line: {map_version}', { map_version: <code>{b.map_version}</code> })}</p>}
		</div>
	);
}

function Row({ b, open }: { b: Build; open: boolean }) {
	return <>
		<tr data-build={b.build_id}>
			<td><a href={link(`/traces?build_id=${encodeURIComponent(b.build_id)}`)}>{b.build_id}</a></td>
			<td>{b.app} {b.version_name}{b.commit && <span class="mono quiet" title={tr('Built from commit {commit}', { commit: b.commit })}> {b.commit.slice(0, 10)}</span>}</td>
			<td><Mapping b={b} /></td>
			<td><Retrace b={b} /></td>
			<td class="num">{count(b.traces)}</td>
			<td class="num">{b.names.unresolved_traces > 0 ? <span class="loss">{count(b.names.unresolved_traces)}</span> : b.names.traces < b.traces ? <span class="quiet" title={tr('Not all of its traces are counted yet')}>{tr('counting')}</span> : '0'}</td>
			<td class="num"><Named n={b.names} /></td>
			<td class="when">{b.updated_ms ? when(b.updated_ms) : ''}</td>
			<td class="actions"><button class="small" aria-expanded={open} onClick={() => set({ build: open ? null : b.build_id })}>{open ? tr('Hide') : tr('How to send')}</button></td>
		</tr>
		{open && <tr class="more"><td colSpan={9}><Upload b={b} /></td></tr>}
	</>;
}

export function BuildsPage() {
	const cursor = text('cursor');
	const open = text('build');
	const page = useLoad(cursor, () => manage.builds(cursor));
	const v = page.value;
	usePolling(page, v?.builds.some((b) => isCompiling(b.state) || isCompiling(b.retrace.state)) ? SOON_MS : Infinity); // a mapping may be sent by a command
	const waiting = v?.builds.filter((b) => b.names.unresolved_traces > 0) ?? [];
	const lacking = waiting.reduce((n, b) => n + b.names.unresolved_traces, 0);
	return (
		<Page title={tr('Builds')} head={<><span class="grow" />
				{v && <button class="small" onClick={page.again} disabled={page.busy}>{tr('Refresh')}</button>}</>}>
			<p>{tr.rich('Traces contain method ids; the build’s {code} maps them to names. Send the mapping of each build once, before or after its traces, and the R8 {code2} if the app is obfuscated.', { code: <code>methodMapping.txt</code>, code2: <code>mapping.txt</code> })}</p>
			<Pending of={page} what={tr('Loading builds')} />
			{v && v.builds.length === 0 && cursor && <EmptyPage />}
			{v && v.builds.length === 0 && !cursor && <div class="notice"><strong>{tr('No builds yet.')}</strong>
				<p>{tr('A build appears here with its first trace or mapping:')}</p>
				<Command>{`curl -T methodMapping.txt -H "Authorization: Bearer $KEY" ${location.origin}/api/v1/builds/BUILD/methods`}</Command></div>}
			{waiting.length > 0 && <div class="notice warn"><strong>{tr('Method names are missing in {traces} of {builds}.', { traces: several(lacking, 'trace'), builds: several(waiting.length, 'build') })}</strong>
				<p>{waiting.slice(0, 5).map((b, i) => <>{i > 0 && ', '}<button key={b.build_id} class="plain linkish" onClick={() => set({ build: b.build_id })}>{b.build_id}</button></>)}{waiting.length > 5 && tr(' and {waiting} more', { waiting: waiting.length - 5 })}{tr(': send the mapping of each. Names then appear without another upload of the traces.')}</p></div>}
			{v && v.builds.length > 0 && (
				<Cards>
					<thead><tr><th>{tr('Build')}</th><th>{tr('App')}</th><th>{tr('Mapping')}</th><th>{tr('R8 mapping')}</th>
						<th class="num">{tr('Traces')}</th><th class="num">{tr('Waiting')}</th><th class="num">{tr('Ids resolved')}</th>
						<th>{tr('Mapping uploaded')}</th><th><span class="hidden">{tr('Actions')}</span></th></tr></thead>
					<tbody>{v.builds.map((b) => <Row key={b.build_id} b={b} open={open === b.build_id} />)}</tbody>
				</Cards>)}
			{v && <Pages rows={v.builds.length} cursor={v.next_cursor} of={page} />}
			{v && <FramesPanel />}
		</Page>
	);
}
