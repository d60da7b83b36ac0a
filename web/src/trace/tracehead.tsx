// A trace's title, pin and tags: visible to all, editable with permission.
import { useState } from 'preact/hooks';
import { api, may, type Trace } from '../api/api';
import { COMMA, when } from '../i18n/format';
import { Failure } from '../ui/parts';
import { Popover } from '../ui/popover';
import { link } from '../ui/route';
import { Pinned, Tag } from '../ui/tag';
import { tr } from '../i18n/strings/trace';
import { deviceOf, lengthOf, nameOf, namesOf, stateName } from '../api/traces';

function TitleForm({ t, save, close }: { t: Trace; save: (title: string) => void; close: () => void }) {
	const [title, hold] = useState(t.title);
	return (
		<form class="row titleform" onSubmit={(e) => { e.preventDefault(); save(title.trim()); }} onKeyDown={(e) => { if (e.key === 'Escape') close(); }}>
			<input aria-label={tr('Title')} value={title} maxLength={200} autofocus placeholder={nameOf({ ...t, title: '' })} onInput={(e) => hold(e.currentTarget.value)} />
			<button class="small primary">{tr('Save')}</button>
			<button class="small" type="button" onClick={close}>{tr('Cancel')}</button>
		</form>
	);
}

function TagForm({ add }: { add: (tag: string) => void }) {
	const [tag, hold] = useState('');
	return (
		<form class="tagform" onSubmit={(e) => { e.preventDefault(); if (tag.trim()) add(tag.trim()); hold(''); }}>
			<input aria-label={tr('Add a tag')} placeholder={tr('add a tag')} value={tag} maxLength={64} size={10} onInput={(e) => hold(e.currentTarget.value.replaceAll(',', ''))} />
		</form>
	);
}

/** Parts of it that the project's rules will delete, and when. */
function Ends({ t, later }: { t: Trace; later?: boolean }) {
	const parts: [string, number | null][] = [[tr('kept until'), t.expires_ms], [tr('raw upload until'), t.upload_expires_ms], [tr('decoded file until'), t.decoded_expires_ms]];
	const expiring = parts.filter(([, ms]) => ms !== null && (ms === t.expires_ms || t.expires_ms === null || ms < t.expires_ms));
	if (expiring.length === 0 && t.has_upload) return null;
	return <a class={later ? 'quiet later ends' : 'quiet'} href={link('/retention')} title={tr("By the project's retention rules; pin the trace to keep it")}>
		{[...expiring.map(([what, ms]) => `${what} ${when(ms!)}`), ...(t.has_upload ? [] : [tr('raw upload not kept')])].join(COMMA)}</a>;
}

/** What one looks for first, in a line. */
function Brief({ t }: { t: Trace }) {
	const m = t.meta;
	const parts = [t.title && [m.app, m.version_name].filter(Boolean).join(' '), m.build_id, t.title && m.scenario, deviceOf(m), t.summary?.timed ? lengthOf(t.summary) : ''].filter(Boolean);
	const brief = parts.join(' · ');
	return <span class="brief quiet" title={brief}>{brief}</span>;
}

/** Title, tags and pin, for users who may change them. */
function Edit({ t, run }: { t: Trace; run: (job: Promise<unknown>) => Promise<unknown> }) {
	return <Popover small label={tr('Edit')} title={tr('Title, tags and pin')}>{(close) => <>
		<TitleForm t={t} save={(title) => void run(api.mark(t.id, { title })).then(close, () => undefined)} close={close} />
		<div class="row">{t.tags.map((tag) => (
			<span class="row tagged" key={tag}><span>{tag}</span>
				<button class="plain quiet" aria-label={tr('Remove the tag {tag}', { tag })} onClick={() => void run(api.mark(t.id, { remove_tags: [tag] }))}>×</button></span>))}
			<TagForm add={(tag) => void run(api.mark(t.id, { add_tags: [tag] }))} /></div>
		<div class="row"><button class="small" aria-pressed={t.pinned} title={tr('Pinned traces are kept when others expire')} onClick={() => void run(api.mark(t.id, { pinned: !t.pinned }))}>{t.pinned ? tr('Unpin') : tr('Pin')}</button> <Ends t={t} /></div>
	</>}</Popover>;
}

export function TraceHead({ t, changed }: { t: Trace; changed: () => void }) {
	const [error, fail] = useState<Error | null>(null);
	const run = (job: Promise<unknown>) => {
		fail(null);
		return job.then(changed, (why: Error) => {
			fail(why);
			throw why;
		});
	};
	return <>
		<h1 title={nameOf(t)}>{t.pinned && <Pinned />}{namesOf(t).map((name) => <> <bdi>{name}</bdi></>)}</h1>
		{t.state !== 'ready' && <span class={`state ${t.state}`}>{stateName(t.state)}</span>}
		<Brief t={t} />
		<Ends t={t} later />
		{t.tags.length > 0 && <span class="tags">{t.tags.map((tag) => <Tag key={tag} tag={tag} />)}</span>}
		{may.write && <Edit t={t} run={run} />}
		{error && <div class="away"><Failure error={error} retry={() => fail(null)} again={tr('Close')} /></div>}
	</>;
}
