// Parts of an ANR report shared by its chain, its deadlocks and its table of threads.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { HOW, type AnrFrame, type AnrThread } from './anrdoc';
import { count } from '../i18n/format';
import { MethodName } from '../ui/parts';
import { tr } from '../i18n/strings/anr';

/** Links a frame to the calls of its method, if the report's trace has some. */
export interface Way {
	has: (name: string) => boolean;
	go: (name: string, track: number) => void;
}

export const Calls = createContext<Way | null>(null);

export function Method({ f, track }: { f: AnrFrame; track?: number }) {
	const way = useContext(Calls);
	const name = f.kind ? f.name : <MethodName name={f.name} />;
	return (
		<span class="mono method">
			{track !== undefined && way?.has(f.name)
				? <button class="plain link" title={tr('Show its calls in the trace of the same time')} onClick={() => way.go(f.name, track)}>{name}</button> : name}
			{f.where && <span class="quiet"> {f.where}</span>}{f.inlined && <em class="tag" title={tr("Inlined into the method below")}>{tr('inlined')}</em>}</span>
	);
}

export function Stack({ t }: { t: AnrThread }) {
	if (t.frames.length === 0) return <p class="quiet">{t.more_frames ? tr('Stack omitted: the report is too large.') : tr('No frames in the dump.')}{t.channel ? tr(' In the kernel it waits in {channel}.', { channel: t.channel }) : ''}</p>;
	return (
		<ol class="stack" tabIndex={0} aria-label={tr('Stack, the latest call first')}>
			{t.frames.map((f, i) => (
				<li key={i} class={f.kind ? 'native' : ''}><Method f={f} track={t.track} />
					{f.locks?.map((l, k) => <span key={k} class={`lock ${l.how}`}>{HOW[l.how]} <span class="mono">{l.type ?? tr('an unknown class')} {l.id}</span></span>)}</li>))}
			{(t.more_frames ?? 0) > 0 && <li class="quiet">{tr('and {more_frames} more', { more_frames: count(t.more_frames!) })}</li>}
		</ol>
	);
}
