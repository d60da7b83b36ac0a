// Uploads of which decoders died: why, when and how large; saved, tried again, thrown away.
import { useEffect, useState } from 'preact/hooks';
import { get, send, url } from './api';
import { bytes, count, sentence, when } from './format';
import { Busy, Failure, Panel, useLoad } from './parts';
import { Dialog } from './popover';
import { link } from './route';
import { several } from './traces';

interface Poison {
	id: string; state: string; reason: string; signal: number; format: string; decoder_version: number; message: string; app: string; build_id: string;
	created_ms: number; first_ms: number; last_ms: number; deaths: number; bytes: number; parts: { part: string; bytes: number }[];
}

const WORDS: Record<string, string> = {
	crash: 'It crashed', loop: 'It did not end', memory: 'It ran out of memory', forbidden: 'It tried what no decoder may do',
	no_answer: 'It ended without a word', bug: 'It contradicted itself',
};
const LOOK_MS = 1500; // while one is being tried

function Discard({ q, close, done }: { q: Poison; close: () => void; done: () => void }) {
	const [error, fail] = useState<Error | null>(null);
	return (
		<Dialog title={`Delete the upload of ${q.app || q.id}?`} close={close}>
			<p>The trace and its {bytes(q.bytes)} go for good. Save its bytes first if the decoder is to be mended with them.</p>
			{error && <Failure error={error} />}
			<p class="row"><button class="danger" onClick={() => send('DELETE', `/api/v1/quarantine/${q.id}`).then(done, fail)}>Delete</button><button onClick={close} autofocus>Keep</button></p>
		</Dialog>
	);
}

function Row({ q, again, discard }: { q: Poison; again: () => void; discard: () => void }) {
	const name = q.app || q.id;
	return (
		<tr data-poison={q.id}>
			<td><a href={link(`/traces/${q.id}`)}>{name}</a>{q.build_id && <div class="quiet">build {q.build_id}</div>}</td>
			<td>{WORDS[q.reason] ?? q.reason}{q.signal > 0 && <span class="quiet"> (signal {q.signal})</span>}{!q.message.startsWith('the decoder') && <div class="quiet">{sentence(q.message)}</div>}</td>
			<td>{q.format || <span class="quiet">not recognised yet</span>}<div class="quiet">decoder {q.decoder_version}</div></td>
			<td class="num">{count(q.deaths)}</td>
			<td class="num">{bytes(q.bytes)}</td>
			<td class="num">{when(q.first_ms)}{q.last_ms - q.first_ms > 60_000 && <div class="quiet">again {when(q.last_ms)}</div>}</td>
			<td class="actions">
				{q.parts.map((p) => <a class="button small" key={p.part} href={url(`/api/v1/quarantine/${q.id}/${p.part}`)} download aria-label={`Save ${p.part} of ${name}`}>{q.parts.length > 1 ? `Save ${p.part}` : 'Save'}</a>)}
				{q.state === 'failed' ? <button class="small" onClick={again} aria-label={`Decode ${name} again`}>Try again</button> : <span class="state decoding">being tried</span>}
				<button class="small danger" onClick={discard} aria-label={`Delete ${name}`}>Delete</button>
			</td>
		</tr>
	);
}

export function QuarantinePage() {
	const load = useLoad('quarantine', () => get<{ quarantine: Poison[] }>('/api/v1/quarantine'));
	const [asked, ask] = useState<Poison | null>(null);
	const [error, fail] = useState<Error | null>(null);
	const [tried, note] = useState<string[]>([]);
	const list = load.value?.quarantine ?? [];
	const trying = list.some((q) => q.state !== 'failed');
	const well = load.value ? tried.filter((id) => !list.some((q) => q.id === id)) : [];
	useEffect(() => {
		document.title = 'Quarantine · tracewell';
	}, []);
	useEffect(() => {
		if (!trying || load.busy) return;
		const timer = setTimeout(load.again, LOOK_MS);
		return () => clearTimeout(timer);
	}, [trying, load.busy]);
	const again = (q: Poison) => {
		fail(null);
		send('POST', `/api/v1/quarantine/${q.id}`).then(() => { note((t) => [...t, q.id]); load.again(); }, (why) => { fail(why); load.again(); });
	};
	return (
		<main>
			<div class="row head"><h1>Quarantine</h1></div>
			<Panel title="Uploads of which decoders died" aside={list.length > 0 && <span class="quiet">{several(list.length, 'upload')}, {bytes(list.reduce((n, q) => n + q.bytes, 0))}</span>}>
				<p class="quiet">Each cost a decoder, which runs by itself and can reach nothing, and no other trace. Nobody but admins gets their bytes: they may be made to
					break whatever reads them. How many stay is said under <a href={link('/retention')}>Retention</a>.</p>
				<div role="status">{well.length > 0 && <p class="notice good">{well.length === 1 ? <>It was decoded: <a href={link(`/traces/${well[0]}`)}>open the trace</a>.</> : `${count(well.length)} were decoded, and are in the list of traces.`}</p>}</div>
				{error && <Failure error={error} />}
				{load.error && <Failure error={load.error} retry={load.again} />}
				{!load.value && load.busy && <Busy what="Loading the quarantine" />}
				{load.value && list.length === 0 && <p>There is none: no decoder died of an upload.</p>}
				{list.length > 0 && <div class="scroll"><table>
					<thead><tr><th scope="col">Upload</th><th scope="col">The decoder</th><th scope="col">Format</th><th scope="col" class="num">Deaths</th><th scope="col" class="num">Size</th>
						<th scope="col" class="num">First</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
					<tbody>{list.map((q) => <Row key={q.id} q={q} again={() => again(q)} discard={() => ask(q)} />)}</tbody>
				</table></div>}
			</Panel>
			{asked && <Discard q={asked} close={() => ask(null)} done={() => { ask(null); load.again(); }} />}
		</main>
	);
}
