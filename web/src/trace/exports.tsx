// Opening a trace in other tools, and downloading it in their formats.
import type { ComponentProps } from 'preact';
import { useState } from 'preact/hooks';
import { api, currentProject, tools, type Trace } from '../api/api';
import type { ExportMenu } from './exportmenu';
import { perfettoAddress } from './opening';
import { ASIDE, later } from '../ui/later';
import { Popover } from '../ui/popover';
import { Blocked, openInPerfetto } from './perfetto';
import { flush, number } from '../ui/route';
import { viewOf } from './state/view';
import { tr } from '../i18n/strings/trace';

const menu = later<ComponentProps<typeof ExportMenu>>('exports', async () => (await import('./exportmenu')).ExportMenu, ASIDE);

/** The address of this view, with the project even where it is the only one here. */
function permalink(): string {
	flush();
	const at = new URL(location.href);
	if (currentProject()) at.searchParams.set('project', currentProject());
	return at.href;
}

/** The range selected with Shift+drag, if any. */
function selected(): [number, number] | null {
	const [a, b] = [number('a'), number('b')];
	return a !== null && b !== null && b > a ? [a, b] : null;
}

/** The part of the trace that the chart shows; null: all of it. */
function shown({ start_ns: from = 0, end_ns: to = 0 }: Trace): [number, number] | null {
	const v = viewOf({ from, to });
	return v.from > from || v.to < to ? [Math.max(from, v.from), Math.min(to, v.to)] : null;
}

export function Exports({ t, name }: { t: Trace; name: string }) {
	const [what, setWhat] = useState('');
	const [failed, fail] = useState<{ error: Error; again: () => void } | null>(null);
	const run = (job: () => Promise<void>) => {
		fail(null);
		job().catch((error: Error) => fail({ error, again: () => run(job) })).finally(() => setWhat(''));
	};
	const view = () => ({ tid: number('thread'), range: selected() ?? shown(t), bases: t });
	const perfetto = () => openInPerfetto({
		ui: perfettoAddress(tools.perfetto, view()),
		file: api.perfettoUrl(t.id), title: name, permalink: permalink(),
	}, setWhat);
	return <>
		<button class="perfetto" onClick={() => run(perfetto)} disabled={what !== ''}>{what || tr('Open in the Perfetto UI')}</button>
		<a class="button later" href={api.perfettoUrl(t.id)} download>{tr('Download .perfetto-trace')}</a>
		<Popover label={tr('Other tools')} title={tr('Open or download')}>{() => <menu.Page t={t} name={name} view={view()} range={selected()} run={run} />}</Popover>
		{failed && <div class="notice bad away" role="alert">
			<strong>{failed.error instanceof Blocked ? tr('The window was blocked.') : tr('The trace could not be sent.')}</strong>
			<p>{failed.error.message}</p>
			<p class="row"><button onClick={failed.again}>{tr('Try again')}</button><button onClick={() => fail(null)}>{tr('Dismiss')}</button></p>
		</div>}
	</>;
}
