// A trace's title, pin and tags: shown to all, changed by those who may.
import { useState } from 'preact/hooks';
import { api, may, type Trace } from '../api/api';
import { COMMA, when } from '../i18n/format';
import { Pinned, Tag } from '../list/listcolumns';
import { Failure } from '../ui/parts';
import { link } from '../ui/route';
import { tr } from '../i18n/strings/trace';
import { nameOf, stateName } from '../api/traces';

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

/** What the project's rules delete of it, and when. */
function Ends({ t }: { t: Trace }) {
	const parts: [string, number | null][] = [['deleted', t.expires_ms], [tr('raw upload deleted'), t.upload_expires_ms], [tr('decoded file deleted'), t.decoded_expires_ms]];
	const told = parts.filter(([, ms]) => ms !== null && (ms === t.expires_ms || t.expires_ms === null || ms < t.expires_ms));
	if (told.length === 0 && t.upload_kept) return null;
	return <a class="quiet" href={link('/retention')} title={tr("By the project's rules of retention; a pin keeps it")}>
		{[...told.map(([what, ms]) => `${what} ${when(ms!)}`), ...(t.upload_kept ? [] : [tr('raw upload not kept')])].join(COMMA)}</a>;
}

export function TraceHead({ t, changed }: { t: Trace; changed: () => void }) {
	const [naming, name] = useState(false);
	const [error, fail] = useState<Error | null>(null);
	const mark = (m: Parameters<typeof api.mark>[1]) => {
		fail(null);
		api.mark(t.id, m).then(() => { name(false); changed(); }, fail);
	};
	return <>
		{naming ? <TitleForm t={t} save={(title) => mark({ title })} close={() => name(false)} /> : <h1>{t.pinned && <Pinned />} {nameOf(t)}</h1>}
		<span class={`state ${t.state}`}>{stateName(t.state)}</span>
		<Ends t={t} />
		{t.tags.map((tag) => (
			<span class="row tagged" key={tag}><Tag tag={tag} />
				{may.write && <button class="plain quiet" aria-label={tr('Take the tag {tag} off', { tag })} onClick={() => mark({ tags: t.tags.filter((x) => x !== tag) })}>×</button>}</span>))}
		{may.write && !naming && <>
			<TagForm add={(tag) => mark({ tags: [...t.tags, tag] })} />
			<button class="small" onClick={() => name(true)}>{t.title ? tr('Rename') : tr('Name it')}</button>
			<button class="small" aria-pressed={t.pinned} title={tr('Pinned traces are kept when others expire')} onClick={() => mark({ pinned: !t.pinned })}>{t.pinned ? tr('Unpin') : tr('Pin')}</button>
		</>}
		{error && <Failure error={error} />}
	</>;
}
