// Decisions about regressions and ANR groups: acknowledge, fix, mute, assign; for one or several.
import { useState } from 'preact/hooks';
import { may } from '../api/api';
import { tr } from '../i18n/strings/inbox';
import { useChange } from '../ui/change';
import { Failure } from '../ui/parts';
import { decide, inMuteDays, isMuted, MUTED_DAYS, type Decision, type Item } from './triage';

export function Decisions({ items, changed }: { items: Pick<Item, 'kind' | 'id' | 'status' | 'owner' | 'fixed_in' | 'muted_until_ms'>[]; changed: (what: Decision) => void }) {
	const one = items.length === 1 ? items[0] : undefined;
	const [owner, own] = useState(one?.owner ?? '');
	const [version, fix] = useState(one?.fixed_in ?? '');
	const [error, change] = useChange(() => undefined);
	if (!may.write) return null;
	const say = async (what: Decision, idle = false) => {
		if (!idle && await change(() => decide(items, what))) changed(what);
	};
	const muted = items.every(isMuted);
	const taken = items.every((i) => i.status === 'acknowledged');
	const assigned = one !== undefined && owner.trim() === one.owner;
	return (
		<form class="rule decisions" aria-label={tr('Actions')} onSubmit={(e) => { e.preventDefault(); void say({ owner: owner.trim() }, assigned); }}>
			<div class="row">
				<button type="button" aria-disabled={taken} onClick={() => say({ status: 'acknowledged' }, taken)}>{tr('Acknowledge')}</button>
				<button type="button" onClick={() => say({ status: 'fixed', fixed_in: version.trim() })}>{tr('Mark as fixed')}</button>
				<label class="inline">{tr('in version')}<input class="short" name="fixed_in" maxLength={200} value={version} onInput={(e) => fix(e.currentTarget.value)} /></label>
				{items.some((i) => i.status !== 'open') && <button type="button" onClick={() => say({ status: 'open' })}>{tr('Reopen')}</button>}
				<button type="button" onClick={() => say({ muted_until_ms: muted ? 0 : inMuteDays() })}>{muted ? tr('Unmute') : tr('Mute for {days} days', { days: MUTED_DAYS })}</button>
				<label class="inline">{tr('Owner')}<input name="owner" maxLength={200} value={owner} onInput={(e) => own(e.currentTarget.value)} /></label>
				<button class="small" aria-disabled={assigned}>{tr('Assign')}</button>
			</div>
			{error && <Failure error={error} />}
		</form>
	);
}
