// Builds: which have a mapping, how many traces wait for one, and how to send it.
import { useEffect } from 'preact/hooks';
import { api, type Build } from './api';
import { FramesPanel } from './frames';
import { count, percent, when } from './format';
import { Busy, Command, Failure, useLoad } from './parts';
import { link, set, text } from './route';

/** How much of the build's traces its mapping names; nothing while no trace with ids is counted. */
function Named({ n }: { n: Build['names'] }) {
	if (n.ids === 0) return n.traces > 0 ? <span class="quiet" title="The traces bring their names themselves">no ids</span> : null;
	return (
		<span title={`${count(n.resolved)} of ${count(n.ids)} method ids, ${count(n.resolved_slices)} of ${count(n.slices)} calls`}>
			<span class={n.lacking > 0 ? 'loss' : ''}>{percent(n.resolved / n.ids)}</span> <span class="quiet">of ids</span>
			{n.lacking > 0 && <span class="quiet">, {count(n.lacking)} {n.lacking === 1 ? 'trace lacks' : 'traces lack'} names</span>}</span>
	);
}

export function BuildsPage() {
	const cursor = text('cursor');
	const page = useLoad(cursor, () => api.builds(cursor));
	const v = page.value;
	useEffect(() => {
		document.title = 'Builds · tracewell';
	}, []);
	return (
		<main>
			<div class="row head"><h1>Builds</h1></div>
			<p>A trace holds numbers where a build's <code>methodMapping.txt</code> holds names. Send the
				mapping of each build once, before or after its traces; and R8's <code>mapping.txt</code> where
				the app is obfuscated:</p>
			<Command>{`curl -T methodMapping.txt -H "Authorization: Bearer $KEY" ${location.origin}/api/v1/builds/BUILD/methods\ncurl -T mapping.txt -H "Authorization: Bearer $KEY" ${location.origin}/api/v1/builds/BUILD/retrace`}</Command>
			{page.error && <Failure error={page.error} retry={page.again} />}
			{!v && page.busy && <Busy what="Loading builds" />}
			{v && v.builds.length === 0 && <div class="notice"><strong>No build is known yet.</strong>
				<p>One appears here with its first trace or mapping.</p></div>}
			{v && v.builds.length > 0 && (
				<div class="scroll"><table>
					<thead><tr><th scope="col">Build</th><th scope="col">App</th><th scope="col">Version</th>
						<th scope="col">Mapping</th><th scope="col" class="num">Methods</th>
						<th scope="col">R8 mapping</th>
						<th scope="col" class="num">Traces</th><th scope="col">Named</th><th scope="col" class="num">Mapping sent</th></tr></thead>
					<tbody>{v.builds.map((b) => (
						<tr key={b.build_id}>
							<td><a href={link(`/?build_id=${encodeURIComponent(b.build_id)}`)}>{b.build_id}</a></td>
							<td>{b.app}</td><td>{b.version_name}</td>
							<td><span class={`state ${b.mapping ? 'ready' : 'failed'}`}>{b.mapping ? 'present' : 'missing'}</span>
								{b.malformed > 0 && <span class="quiet"> {count(b.malformed)} lines unreadable</span>}
								{b.duplicates > 0 && <span class="quiet"> {count(b.duplicates)} ids twice</span>}</td>
							<td class="num">{b.mapping ? count(b.entries) : ''}</td>
							<td>{b.retrace.mapping ? <><span class="state ready">present</span> <span class="quiet">{count(b.retrace.classes)} classes</span></> : <span class="quiet">none</span>}
								{b.retrace.malformed > 0 && <span class="quiet"> {count(b.retrace.malformed)} lines unreadable</span>}</td>
							<td class="num">{count(b.traces)}</td>
							<td><Named n={b.names} /></td>
							<td class="num">{b.updated_ms ? when(b.updated_ms) : ''}</td>
						</tr>))}</tbody>
				</table></div>)}
			<div class="row pages">{v?.cursor && <button onClick={() => set({ cursor: v.cursor }, true)}>More</button>}</div>
			{v && <FramesPanel />}
		</main>
	);
}
