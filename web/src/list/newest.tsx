// What arrived last, in a few rows.
import type { Trace } from '../api/api';
import { when } from '../i18n/format';
import { tr } from '../i18n/strings/list';
import { Cards } from '../ui/cards';
import { Panel } from '../ui/parts';
import { link } from '../ui/route';
import { callsOf, NameCell, sharedOf } from './listcolumns';
import { lengthOf } from '../api/traces';

export function Newest({ list, total, capped }: { list: Trace[]; total: number; capped: boolean }) {
	const shared = sharedOf(list);
	return (
		<Panel title={tr('Newest traces')} id="newest" aside={<a href={link('/traces')}>{capped ? tr('All traces') : tr.many(total, 'All traces', 'All {n} traces')}</a>}>
			<Cards of="traces">
				<thead><tr><th>{tr('Trace')}</th>{shared.place && <><th>{tr('Version')}</th><th>{tr('Device')}</th></>}<th class="num">{tr('Duration')}</th><th class="num">{tr('Calls, samples')}</th><th class="num">{tr('Arrived')}</th></tr></thead>
				<tbody>{list.map((t) => (
					<tr key={t.id} data-trace={t.id}>
						<td class="wide"><NameCell t={t} shared={shared} /></td>{shared.place && <><td title={t.meta.version_name}>{t.meta.version_name}</td><td title={t.meta.device}>{t.meta.device}</td></>}
						<td class="num">{t.summary ? lengthOf(t.summary) : ''}</td><td class="num">{t.summary ? callsOf(t.summary) : ''}</td><td class="num when">{when(t.created_ms)}</td>
					</tr>))}</tbody>
			</Cards>
		</Panel>
	);
}
