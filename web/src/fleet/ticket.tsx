// The issue of a regression or a group of ANRs in the project's tracker: a button that creates it, then its link and state.
import { Refusal, get, send } from '../api/api';
import { SOON_MS, usePolling } from '../ui/polling';
import { useChange } from '../ui/change';
import { Failure, useLoad } from '../ui/parts';
import { sentence } from '../i18n/format';
import { tr } from '../i18n/strings/regressions';

interface TicketState { state: string; for: string; key: string; url: string; error: string; assignee: string }

const WORDS: Record<string, string> = {
	waiting: tr('being created'), open: tr('open there'), closed: tr('closed there'), reopening: tr('being reopened'), failed: tr('not created'),
};

/** null: none was created. */
async function read(path: string): Promise<TicketState | null> {
	try {
		return await get<TicketState>(`${path}/ticket`);
	} catch (why) {
		if (why instanceof Refusal && why.status === 404) return null;
		throw why;
	}
}

export function Ticket({ path, tracker }: { path: string; tracker: string }) {
	const load = useLoad(`ticket ${path}`, async () => ({ ticket: await read(path) }));
	const [error, change] = useChange(load.again);
	const t = load.value?.ticket;
	usePolling(load, t?.state === 'waiting' || t?.state === 'reopening' ? SOON_MS : null);
	const create = () => void change(() => send('POST', `${path}/ticket`));
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	if (!load.value) return null;
	return (
		<div class="row ticket" role="group" aria-label={tr('Ticket')}>
			{(!t || t.state === 'failed') && <button onClick={create}>{tr('Create an issue in {tracker}', { tracker })}</button>}
			{t && <span role="status">{t.url ? <a href={t.url} target="_blank" rel="noopener noreferrer">{t.key}</a> : t.key}{' '}<strong>{WORDS[t.state] ?? t.state}</strong>
				{t.assignee && <span class="quiet"> {tr('assigned to {assignee}', { assignee: t.assignee })}</span>}</span>}
			{t?.error && <span class={t.state === 'failed' ? 'bad' : 'quiet'}>{sentence(t.error)}</span>}
			{error && <Failure error={error} />}
		</div>
	);
}
