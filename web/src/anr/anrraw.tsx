// The report as it came, as text.
import { useState } from 'preact/hooks';
import { api, Refusal } from '../api/api';
import { bytes } from '../i18n/format';
import { Busy, download, Failure, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/anr';

const MOST = 16 << 20; // bytes that are unpacked
const SHOWN = 1 << 20; // characters in the page; the download has all of them

async function uploaded(id: string, signal: AbortSignal): Promise<Blob> {
	try {
		return await api.raw(id, 'anr', signal); // sent with a trace
	} catch (why) {
		if (!(why instanceof Refusal) || why.status !== 404) throw why;
		return api.raw(id, 'trace', signal);
	}
}

const starts = (head: Uint8Array, ...magic: number[]) => magic.every((b, i) => head[i] === b);

/** At most MOST bytes, as a small compressed report can be large. */
async function read(stream: ReadableStream<Uint8Array>): Promise<{ text: string; cut: boolean }> {
	const reader = stream.getReader();
	const words = new TextDecoder();
	let text = '';
	for (let n = 0; ;) {
		const { value, done } = await reader.read();
		if (done) return { text: text + words.decode(), cut: false };
		n += value.length;
		text += words.decode(value, { stream: true });
		if (n < MOST) continue;
		await reader.cancel();
		return { text, cut: true };
	}
}

/** A report's text, unpacked where the browser can do it. */
async function reportText(id: string, signal: AbortSignal): Promise<{ text: string; cut: boolean }> {
	const blob = await uploaded(id, signal);
	const head = new Uint8Array(await blob.slice(0, 8).arrayBuffer());
	if (starts(head, 0x1f, 0x8b)) return read(blob.stream().pipeThrough(new DecompressionStream('gzip')));
	if (starts(head, 0x28, 0xb5, 0x2f, 0xfd) || starts(head, 0x50, 0x4b))
		throw new Error(tr('The report is inside {head}, which a browser cannot unpack. Download the upload and unpack it.', { head: starts(head, 0x50, 0x4b) ? tr('an archive') : tr('a zstd file') }));
	return read(blob.stream());
}

export function Raw({ id }: { id: string }) {
	const load = useLoad(id, (s) => reportText(id, s));
	const v = load.value;
	if (load.error) return <>
		<Failure error={load.error} title={tr('The text cannot be shown.')} retry={load.error instanceof Refusal ? load.again : undefined} />
		<p><a class="button" href={api.rawUrl(id)} download>{tr('Download the upload')}</a></p></>;
	if (!v) return <Busy what={tr('Loading the report')} />;
	return (
		<section aria-label={tr('Original report')}>
			<div class="row"><h3>{tr('Original report')}</h3>
				<span class="quiet">{v.text.length > SHOWN ? tr('the first {shown} of ', { shown: bytes(SHOWN) }) : ''}{bytes(v.text.length)}{v.cut ? tr(', truncated') : ''}</span>
				<span class="grow" />
				<button class="small" onClick={() => download(new Blob([v.text], { type: 'text/plain;charset=utf-8' }), `${id}-anr.txt`)}>{tr('Download as text')}</button></div>
			<pre class="raw" tabIndex={0}>{v.text.slice(0, SHOWN)}</pre>
		</section>
	);
}

/** One click shows the text, a second hides it. */
export function useRaw(): [boolean, preact.JSX.Element] {
	const [shown, show] = useState(false);
	return [shown, <button class="small" aria-expanded={shown} onClick={() => show(!shown)}>{shown ? tr('Hide the text') : tr('Raw text')}</button>];
}
