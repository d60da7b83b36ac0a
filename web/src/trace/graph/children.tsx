// The children of a merged graph's root as a table.
import { useMore } from '../../ui/panelstate';
import { MethodName } from '../../ui/parts';
import { count, percent } from '../../i18n/format';
import type { Words } from '../../api/source';
import { tr } from '../../i18n/strings/trace';
import { childrenOf } from './flamelayout';
import { labelOf } from './flamepaint';
import { numbers, type Answer, type Metric } from './graphparts';

const LISTED = 50;

/** The root's children as a table, with more details than the canvas. */
export function Children({ a, name, metric, words, open, callers = false }: { a: Answer; name: string; metric: Metric; words: Words; open: (node: number) => void; callers?: boolean }) {
	const [max, more] = useMore(name, LISTED);
	const { f } = a;
	const all = childrenOf(f);
	const head = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);
	return (
		<div class="scroll short" tabIndex={0}>
			<table class="methods">
				<thead><tr><th>{callers ? tr('Directly called it') : tr('Directly below {f}', { f: labelOf(f, 0) })}</th><th class="num">{head(metric.all)}</th>
					<th class="num">{head(metric.own)}</th>{metric.timed && <th class="num" title={words.hint}>{words.head}</th>}<th class="num">{tr('Share')}</th></tr></thead>
				<tbody>{all.slice(0, max).map((i) => {
					const [with_, own] = numbers(f, i, metric, words);
					return (
						<tr key={i}><td class="mono name"><button class="plain" onClick={() => open(i)}>
							{f.other[i] ? tr('{other} smaller nodes', { other: count(f.other[i]) }) : <MethodName name={f.names[f.name[i]]} />}</button></td>
						<td class="num">{with_[1]}</td><td class="num">{own[1]}</td>{metric.timed && <td class="num">{count(f.count[i])}</td>}
						<td class="num">{percent(f.value[i] / (f.value[0] || 1))}</td></tr>);
				})}</tbody>
			</table>
			{all.length > max && <button class="small" onClick={() => more(max * 4)}>{tr('Show more of {all}', { all: count(all.length) })}</button>}
		</div>
	);
}
