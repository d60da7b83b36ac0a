// Decisions about regressions and ANR groups: acknowledge, fix, mute, assign; for one, with a note, or for several.
import { useState } from 'preact/hooks';
import { may } from '../api/api';
import { tr } from '../i18n/strings/inbox';
import { useChange } from '../ui/change';
import { Failure } from '../ui/parts';
import { link } from '../ui/route';
import { decide, inMuteDays, isMuted, MUTED_DAYS, type Decision, type Item } from './triage';

/** `noted`: the page of one item, which also has its note; `file`: its owner by the code owners file, null without a repository. */
export function Decisions({ items, changed, noted = false, file = '' }: { items: Pick<Item, 'kind' | 'id' | 'status' | 'owner' | 'note' | 'fixed_in' | 'muted_until_ms'>[]; changed: (what: Decision) => void; noted?: boolean; file?: string | null }) {
	const one = items.length === 1 ? items[0] : undefined;
	const [owner, own] = useState(one?.owner ?? '');
	const [note, put] = useState(one?.note ?? '');
	const [version, fix] = useState(one?.fixed_in ?? '');
	const [error, change] = useChange(() => undefined);
	if (!may.write) return null;
	const typed: Decision = { ...(owner.trim() !== one?.owner && { owner: owner.trim() }), ...(noted && note !== one?.note && { note }) };
	const same = Object.keys(typed).length === 0;
	const apply = async (what: Decision, idle = false) => {
		if (!idle && await change(() => decide(items, what))) changed(what);
	};
	const state = (what: Decision, idle = false) => apply({ ...what, ...(noted && typed) }, idle);
	const muted = items.every(isMuted);
	const taken = items.every((i) => i.status === 'acknowledged');
	return (
		<form class="rule decisions" aria-label={tr('Actions')} onSubmit={(e) => { e.preventDefault(); void apply(typed, same); }}>
			<div class="row">
				<button type="button" aria-disabled={taken} onClick={() => state({ status: 'acknowledged' }, taken)}>{tr('Acknowledge')}</button>
				<span class="nowrap"><button type="button" onClick={() => state({ status: 'fixed', fixed_in: version.trim() })}>{tr('Mark as fixed')}</button>{' '}
					<label class="inline">{tr('in version')}<input class="short" name="fixed_in" maxLength={200} value={version} onInput={(e) => fix(e.currentTarget.value)} /></label></span>
				{items.some((i) => i.status !== 'open') && <button type="button" onClick={() => apply({ status: 'open' })}>{tr('Reopen')}</button>}
				<button type="button" onClick={() => apply({ muted_until_ms: muted ? 0 : inMuteDays() })}>{muted ? tr('Unmute') : tr('Mute for {days} days', { days: MUTED_DAYS })}</button>
				<label class="inline">{tr('Owner')}<input name="owner" list="owners" maxLength={200} value={owner} onInput={(e) => own(e.currentTarget.value)} /></label>
				{file === null && may.admin && !owner.trim() && <span class="from-file quiet">{tr('The CODEOWNERS file of a repository suggests the owner.')} <a href={link('/source')}>{tr('Set up repositories')}</a></span>}
				{file && !owner.trim() && <span class="from-file"><span class="quiet">{tr('not set; CODEOWNERS names')}</span> {file} <button type="button" class="small" onClick={() => own(file.slice(0, 200))}>{tr('Use as owner')}</button></span>}
				{!noted && <button class="small" aria-disabled={same}>{tr('Assign')}</button>}
			</div>
			{noted && <><label class="list">{tr('Note')}<textarea name="note" rows={2} maxLength={2000} value={note} onInput={(e) => put(e.currentTarget.value)} /></label><button class="primary" aria-disabled={same}>{tr('Save')}</button></>}
			{error && <Failure error={error} />}
		</form>
	);
}
