// A project without traces: three commands to the first one, and how it comes in.
import { useEffect } from 'preact/hooks';
import { may, type Trace } from '../api/api';
import { serverText } from '../i18n/servertext';
import { KeyCommand } from '../ui/makekey';
import { Command } from '../ui/parts';
import { link } from '../ui/route';
import { tr } from '../i18n/strings/list';
import { nameOf, stateName } from '../api/traces';
import { DropZone } from './uploads';

const ADMIN = 'tracewell-admin key create --project default --scope ingest';
const STEPS = ['received', 'decoding', 'ready'] as const;

/** How far the first trace is; green when it can be opened. */
export function Arrival({ t }: { t: Trace | null }) {
	const at = !t ? -1 : t.state === 'ready' ? 2 : t.state === 'failed' ? 1 : t.state === 'decoding' ? 1 : 0;
	const ready = t?.state === 'ready';
	return (
		<div class={`notice arrival ${ready ? 'good' : t?.state === 'failed' ? 'bad' : ''}`} role="status" data-arrival={t?.state ?? 'waiting'}>
			<ol>{STEPS.map((s, i) => (
				<li key={s} class={i < at || (ready && i === at) ? 'done' : i === at ? 'now' : ''}>
					<span class="dot" aria-hidden="true" />{stateName(s)}</li>))}</ol>
			{!t && <p class="quiet">{tr('Waiting for the first trace. This page updates automatically.')}</p>}
			{t && t.state === 'queued' && <p>{t.error ? tr('The upload is stored, but {message}.', { message: serverText(t.error.message) }) : tr('The upload is stored and queued for decoding.')}</p>}
			{t && t.state === 'decoding' && <p>{tr('The trace is being decoded.')}</p>}
			{t && t.state === 'failed' && <p>{tr.rich('The trace could not be decoded: {message}. {link}', { message: serverText(t.error?.message ?? ''), link: <a href={link(`/traces/${t.id}`)}>{tr('Details')}</a> })}</p>}
			{ready && <p><strong>{tr('The first trace is ready.')}</strong> <a class="button primary" href={link(`/traces/${t.id}`)}>{tr('Open {t}', { t: nameOf(t) })}</a></p>}
		</div>
	);
}

export function Start() {
	const o = location.origin;
	useEffect(() => {
		document.title = tr('First trace · tracewell');
	}, []);
	if (!may.write) return <div class="start">
		<p>{tr('No traces yet. Your role can only view traces. To send them, ask a project admin for the editor role, or for an ingest key for a device or script.')}</p>
		<Arrival t={null} />
	</div>;
	return (
		<div class="start">
			<DropZone />
			<h2>{tr('Or send traces from devices and scripts')}</h2>
			<p>{tr('Three commands send the first trace. The first sets a key that can only upload.')}</p>
			<section>
				<h3>{tr('1. A key')}</h3>
				<KeyCommand name="first upload" without={<>
					{!may.admin && <p class="quiet">{tr('Run it on the server, or ask an admin for an ingest key.')}</p>}
					<p class="quiet">{tr.rich('Installed from the Debian package: {code}', { code: <code>{ADMIN}</code> })}</p></>} />
			</section>
			<section>
				<h3>{tr('2. The mapping of the build')}</h3>
				<Command>{`curl -T methodMapping.txt -H "Authorization: Bearer $KEY" ${o}/api/v1/builds/BUILD/methods`}</Command>
				<p class="quiet">{tr.rich('btrace writes {code} when the app is built; BUILD is a name that you choose for the build. The mapping can be sent after its traces. Formats that contain method names need none.', { code: <code>methodMapping.txt</code> })}</p>
			</section>
			<section>
				<h3>{tr('3. The trace')}</h3>
				<Command>{`curl --data-binary @rhea-atrace.bin -H "Authorization: Bearer $KEY" '${o}/api/v1/traces?build_id=BUILD&scenario=cold_start'`}</Command>
				<p class="quiet">{tr('Send any file that tracewell reads: the format is recognised by its content.')}</p>
			</section>
			<Arrival t={null} />
		</div>
	);
}
