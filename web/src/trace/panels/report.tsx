// Facts of the whole trace, and the losses and repairs of its decode.
import { api, type Trace } from '../../api/api';
import { count } from '../../i18n/format';
import { serverText } from '../../i18n/servertext';
import { Cards } from '../../ui/cards';
import { Command, Panel } from '../../ui/parts';
import { Facts, lackOf } from '../parts/facts';
import { systemWords } from './systemwords';
import { tr } from '../../i18n/strings/trace';

const REPAIR: Record<string, string> = { loss: tr('loss'), repair: tr('repair'), note: tr('note') }; // the worst first
const RANK = Object.keys(REPAIR);

function Repairs({ t }: { t: Trace }) {
	const list = [...(t.report?.repairs ?? [])].sort((a, b) => RANK.indexOf(a.kind) - RANK.indexOf(b.kind));
	const n = t.report?.names;
	const lack = lackOf(t);
	return (
		<details class="panel" open>
			<summary><h2>{tr('Decode report')}</h2>
				<span class="quiet">{list.length === 0 ? tr('nothing was lost or repaired') : tr.many(list.length, '{n} entry', '{n} entries')}
					{n?.ids ? tr(', {resolved} of {ids} method ids named', { resolved: count(n.resolved), ids: count(n.ids) }) : ''}</span></summary>
			{lack && <p>{lack.why}</p>}
			{lack?.command && <Command>{lack.command}</Command>}
			{t.report?.system && <p>{systemWords(t.report.system)}</p>}
			{list.length > 0 && <Cards of="repairs">
				<thead><tr><th>{tr('Kind')}</th><th>{tr('Meaning')}</th><th class="num">{tr('Cases')}</th>
					<th class="num">{tr('First at byte')}</th><th>{tr('Name')}</th></tr></thead>
				<tbody>{list.map((r) => (
					<tr key={r.name}><td><span class={`state ${r.kind}`}>{REPAIR[r.kind] ?? r.kind}</span></td><td class="cause">{serverText(r.meaning)}</td>
						<td class="num">{count(r.count)}</td><td class="num">{r.first_offset === null ? '' : count(r.first_offset)}</td>
						<td class="mono">{r.name}</td></tr>))}</tbody>
			</Cards>}
			{list.some((r) => r.first_offset !== null) && <p class="quiet">{tr.rich('Bytes are counted from 0 in the {upload} after decompression.', { upload: <a href={api.rawUrl(t.id)} download>{tr('upload')}</a> })}</p>}
		</details>
	);
}

export function Report({ t }: { t: Trace }) {
	return <><Panel title={tr('Report')} id="report"><Facts t={t} /></Panel><Repairs t={t} /></>;
}
