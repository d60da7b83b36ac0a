// Who changed what: the newest first, older ones on asking.
import { useState } from 'preact/hooks';
import { get, may } from '../api/api';
import { manage } from '../api/manage';
import { did, facts, named, since, SORTS, target, who, type Entry } from './auditwords';
import { when } from '../i18n/format';
import { Cards } from '../ui/cards';
import { Page } from '../ui/page';
import { Panel, Pending, useLoad } from '../ui/parts';
import { link, set, text } from '../ui/route';
import { tr } from '../i18n/strings/manage';

interface Entries { entries: Entry[]; next_cursor: number | null }

const COLUMNS = [tr('When'), tr('Who'), tr('Action'), tr('Target'), tr('Details'), tr('From')];

const PAGES: Record<string, string> = { trace: '/traces/', annotation: '/traces/', anr: '/anrs/', regression: '/regressions?status=all&open=' };

/** Entries about a trace, a regression or an ANR group link to it, as it may still exist. */
function Target({ e }: { e: Entry }) {
	const page = e.action !== 'trace.delete' && PAGES[e.action.split('.')[0]];
	return page ? <a class="mono" href={link(page + encodeURIComponent(e.target))}>{e.target}</a> : <>{target(e)}</>;
}

function Row({ e }: { e: Entry }) {
	return (
		<tr data-entry={e.id}>
			<td class="when">{when(e.at_ms)}</td>
			<td title={e.actor.id || undefined}>{who(e)}</td>
			<td title={e.action} class="nowrap">{did(e)}</td>
			<td title={target(e) === e.target ? undefined : e.target}><Target e={e} /></td>
			<td class="anywhere details">{facts(e)}</td>
			<td title={e.request ? tr('request {request}', { request: e.request }) : undefined} class="nowrap">{e.address || <span class="quiet">{tr('on the server')}</span>}</td>
		</tr>
	);
}

/** One page of entries; the next is put under it. */
function Rows({ cursor, action, everywhere, keys }: { cursor: number; action: string; everywhere: boolean; keys: Map<string, string> }) {
	const [more, show] = useState(false);
	const load = useLoad(`audit ${cursor} ${action} ${everywhere}`, () => get<Entries>('/api/v1/audit', { ...(cursor && { cursor }), action, ...(everywhere && { everywhere: '1' }) }));
	const v = load.value;
	const wide = COLUMNS.length;
	return <>
		{!v && <tr><td colSpan={wide}><Pending of={load} what={tr('Loading changes')} /></td></tr>}
		{v && cursor === 0 && v.entries.length === 0 && <tr><td colSpan={wide} class="quiet">{tr('No changes of this kind yet.')}</td></tr>}
		{v?.entries.map((e, i) => <Row key={e.id} e={named(since(e, v.entries.slice(i + 1).find((o) => o.action === e.action && o.target === e.target && o.project === e.project)), keys)} />)}
		{v?.next_cursor && !more && <tr><td colSpan={wide}><button class="small" onClick={() => show(true)}>{tr('Older changes')}</button></td></tr>}
		{v?.next_cursor && more && <Rows cursor={v.next_cursor} action={action} everywhere={everywhere} keys={keys} />}
	</>;
}

export function AuditPage() {
	const named = text('action');
	const action = SORTS.some(([s]) => s === named) ? named : '';
	const keys = new Map(useLoad('keys', () => manage.keys({ limit: 500 })).value?.keys.map((k) => [k.id, k.name || `${tr('(unnamed)')} ${k.scope}`]));
	const everywhere = may.server && text('everywhere') === '1';
	return (
		<Page title={tr('Audit log')}>
			<Panel title={tr('Entries')} aside={<>
				{may.server && <label class="inline"><input type="checkbox" checked={everywhere} onChange={(e) => set({ everywhere: e.currentTarget.checked ? 1 : null }, true)} />{' '}{tr('of all projects and the server')}</label>}
				<label class="inline">{tr('Show')}{' '}<select value={action} onChange={(e) => set({ action: e.currentTarget.value }, true)}>{SORTS.map(([s, shown]) => <option key={s} value={s}>{shown}</option>)}</select></label>
			</>}>
				<Cards label={tr('Entries')}>
					<thead><tr>{COLUMNS.map((c) => <th key={c}>{c}</th>)}</tr></thead>
					<tbody><Rows key={`${action} ${everywhere}`} cursor={0} action={action} everywhere={everywhere} keys={keys} /></tbody>
				</Cards>
			</Panel>
		</Page>
	);
}
