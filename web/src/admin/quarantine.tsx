// Uploads of which decoders died: why, when and how large; saved, tried again, thrown away.
import { useEffect, useState } from 'preact/hooks';
import { get, send, url } from '../api/api';
import { bytes, count, sentence, when } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { Cards } from '../ui/cards';
import { Page } from '../ui/page';
import { Dialog } from '../ui/popover';
import { Failure, Panel, Pending, useLoad } from '../ui/parts';
import { EmptyPage, Pages } from '../ui/pages';
import { SOON_MS, usePolling } from '../ui/polling';
import { link, text } from '../ui/route';
import { tr } from '../i18n/strings/manage';
import { several } from '../api/traces';

interface Poison {
	id: string; state: string; reason: string; signal: number; format: string; decoder_version: number; message: string; app: string; build_id: string;
	created_ms: number; first_ms: number; last_ms: number; crashes: number; bytes: number; parts: { part: string; bytes: number }[];
}

const WORDS: Record<string, string> = {
	crash: tr('Crashed'), loop: tr('Timed out'), memory: tr('Out of memory'), forbidden: tr('Forbidden system call'),
	no_answer: tr('Exited without a result'), bug: tr('Inconsistent result'),
};
const SIGNALS: Record<number, string> = { 6: 'SIGABRT', 7: 'SIGBUS', 9: 'SIGKILL', 11: 'SIGSEGV', 31: 'SIGSYS' };

function Discard({ q, close, done }: { q: Poison; close: () => void; done: () => void }) {
	const [error, fail] = useState<Error | null>(null);
	return (
		<Dialog title={tr('Delete the upload of {id}?', { id: q.app || q.id })} close={close}>
			<p>{tr('The trace and its {bytes} are deleted permanently. To fix the decoder with this file, download it first.', { bytes: bytes(q.bytes) })}</p>
			{error && <Failure error={error} />}
			<p class="row"><button class="danger" onClick={() => send('DELETE', `/api/v1/quarantine/${q.id}`).then(done, fail)}>{tr('Delete')}</button><button onClick={close} autofocus>{tr('Keep')}</button></p>
		</Dialog>
	);
}

function Row({ q, again, discard }: { q: Poison; again: () => void; discard: () => void }) {
	const name = q.app || q.id;
	return (
		<tr data-poison={q.id}>
			<td><a href={link(`/traces/${q.id}`)}>{name}</a>{q.build_id && <div class="quiet">{tr('build {build_id}', { build_id: q.build_id })}</div>}</td>
			<td>{WORDS[q.reason] ?? q.reason}{q.signal > 0 && <span class="quiet">{' '}({SIGNALS[q.signal] ?? tr('signal {signal}', { signal: q.signal })})</span>}{!q.message.startsWith('the decoder') && <div class="quiet">{sentence(serverText(q.message))}</div>}</td>
			<td>{q.format || <span class="quiet">{tr('not recognised yet')}</span>}<div class="quiet">{tr('decoder {decoder_version}', { decoder_version: q.decoder_version })}</div></td>
			<td class="num">{count(q.crashes)}</td>
			<td class="num">{bytes(q.bytes)}</td>
			<td class="when">{when(q.first_ms)}{q.last_ms - q.first_ms > 60_000 && <div class="quiet">{tr('last attempt {last_ms}', { last_ms: when(q.last_ms) })}</div>}</td>
			<td class="actions">
				{q.parts.map((p) => <a class="button small" key={p.part} href={url(`/api/v1/quarantine/${q.id}/${p.part}`)} download aria-label={tr('Save {part} of {name}', { part: p.part, name })}>{q.parts.length > 1 ? tr('Save {part}', { part: p.part }) : tr('Save')}</a>)}
				{q.state === 'failed' ? <button class="small" onClick={again} aria-label={tr('Decode {name} again', { name })}>{tr('Try again')}</button> : <span class="state decoding">{tr('decoding')}</span>}
				<button class="small danger" onClick={discard} aria-label={tr('Delete {name}', { name })}>{tr('Delete')}</button>
			</td>
		</tr>
	);
}

export function QuarantinePage() {
	const cursor = text('cursor');
	const load = useLoad(`quarantine ${cursor}`, () => get<{ quarantine: Poison[]; total: number; total_bytes: number; next_cursor: string | null }>('/api/v1/quarantine', { cursor }));
	const [doomed, setDoomed] = useState<Poison | null>(null);
	const [error, fail] = useState<Error | null>(null);
	const [tried, note] = useState<string[]>([]);
	const list = load.value?.quarantine ?? [];
	const trying = list.some((q) => q.state !== 'failed');
	const well = load.value ? tried.filter((id) => !list.some((q) => q.id === id)) : [];
	useEffect(() => note([]), [cursor]); // on another page of the list they are absent too
	usePolling(load, trying && SOON_MS);
	const again = (q: Poison) => {
		fail(null);
		send('POST', `/api/v1/quarantine/${q.id}`).then(() => { note((t) => [...t, q.id]); load.again(); }, (why) => { fail(why); load.again(); });
	};
	return (
		<Page title={tr('Quarantine')}>
			<Panel title={tr('Uploads that crashed the decoder')} aside={load.value && load.value.total > 0 && <span class="quiet">{several(load.value.total, 'upload')}, {bytes(load.value.total_bytes)}</span>}>
				<p class="quiet">{tr.rich('Decoders run in isolated processes, so no other trace was affected. Only admins can download these files: they may be crafted to attack programs that read them. Their number is limited under {link}.', { link: <a href={link('/retention')}>{tr('Retention')}</a> })}</p>
				<div role="status">{well.length > 0 && <p class="notice good">{well.length === 1 ? <>{tr.rich('It was decoded: {link}.', { link: <a href={link(`/traces/${well[0]}`)}>{tr('open the trace')}</a> })}</> : tr('{well} were decoded and are in the list of traces.', { well: count(well.length) })}</p>}</div>
				{error && <Failure error={error} />}
				<Pending of={load} what={tr('Loading the quarantine')} />
				{load.value && list.length === 0 && (cursor ? <EmptyPage /> : <p>{tr('The quarantine is empty.')}</p>)}
				{list.length > 0 && <Cards>
					<thead><tr><th>{tr('Upload')}</th><th>{tr('Failure')}</th><th>{tr('Format')}</th><th class="num">{tr('Crashes')}</th><th class="num">{tr('Size')}</th>
						<th>{tr('First crash')}</th><th><span class="hidden">{tr('Actions')}</span></th></tr></thead>
					<tbody>{list.map((q) => <Row key={q.id} q={q} again={() => again(q)} discard={() => setDoomed(q)} />)}</tbody>
				</Cards>}
				{load.value && <Pages rows={list.length} cursor={load.value.next_cursor} of={load} />}
			</Panel>
			{doomed && <Discard q={doomed} close={() => setDoomed(null)} done={() => { setDoomed(null); load.again(); }} />}
		</Page>
	);
}
