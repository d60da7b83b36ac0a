// The window of a trace: the timeline on top, panels in tabs below it, details of the selection at the side.
import type { ComponentChild } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { tr } from '../i18n/strings/trace';
import { narrow } from '../ui/narrow';
import { Busy, useSize } from '../ui/parts';
import { text } from '../ui/route';
import { Separator, useSplit } from '../ui/split';
import { PANELS, type PanelKind, type Shown } from './registry';
import { draft } from './state/annotations';
import { showTab, tabFromAddress } from './state/tab';

const UPPER = { id: 'upper', first: innerHeight < 1100 ? 54 : innerHeight < 1300 ? 58 : 64, min: 15, max: 85 }; // most flame graphs need less than half of a tall window
const SIDE = { id: 'side', first: 32, min: 18, max: 70 };

/** Which pane is shown; arrows, Home and End move. */
function TabBar({ tabs, at }: { tabs: { id: string; title: string }[]; at: string }) {
	const bar = useRef<HTMLDivElement>(null);
	const key = (e: KeyboardEvent) => {
		const i = tabs.findIndex((t) => t.id === at);
		const to = { ArrowRight: (i + 1) % tabs.length, ArrowLeft: (i + tabs.length - 1) % tabs.length, Home: 0, End: tabs.length - 1 }[e.key];
		if (to === undefined) return;
		e.preventDefault();
		showTab(tabs[to].id);
		bar.current?.querySelectorAll('button')[to]?.focus();
	};
	useEffect(() => bar.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [at]);
	return <div ref={bar} class="tabbar scroll" role="tablist" aria-label={tr('Panels')} onKeyDown={key}>
		{tabs.map((t) => <button key={t.id} id={`tab-${t.id}`} role="tab" data-title={t.title} aria-selected={t.id === at} aria-controls={t.id !== at ? undefined : t.id === 'timeline' ? 'upper' : 'tabpanel'} tabIndex={t.id === at ? 0 : -1} onClick={() => showTab(t.id)}>{t.title}</button>)}
	</div>;
}

/** Panels mount when first shown; their state is in the address. */
function Body({ panel, shown }: { panel: PanelKind; shown: Shown }) {
	const [box, , height] = useSize<HTMLDivElement>();
	return <div ref={box} key={panel.id} class="tabbody" id="tabpanel" role="tabpanel" aria-labelledby={`tab-${panel.id}`} tabIndex={0} style={{ '--pane': `${height}px` }}>
		<panel.Component {...shown} />
	</div>;
}

export function Bench({ shown, come, upper, details }: { shown: Shown; come: boolean; upper: ComponentChild; details: ComponentChild }) {
	const [top, moveTop] = useSplit(UPPER);
	const [side, moveSide] = useSplit(SIDE);
	const one = narrow.value;
	const there = PANELS.filter((p) => p.needs(shown));
	const tabs = [...(one && upper ? [{ id: 'timeline', title: tr('Timeline') }] : []), ...there];
	const first = tabs[0].id === 'events' && shown.sums.every((s) => s.kind === 'process') ? 'report' : tabs[0].id; // a list of processes explains nothing
	const at = tabFromAddress(tabs.map((t) => t.id), first);
	const panel = there.find((p) => p.id === at);
	const kept = !come || at === first || text('tab') === at;
	useEffect(() => {
		if (!kept) showTab(at); // what an address only means, other parameters would change
	}, [kept, at]);
	useEffect(() => {
		if (draft.value) showTab('annotations');
	}, [draft.value]);
	const bar = come && <TabBar tabs={tabs} at={at} />;
	return <div class={`bench ${one ? 'one' : ''}`} style={{ '--upper': `${top}%`, '--side': `${side}%` }}>
		{one && bar}
		{upper && <div key="upper" id="upper" class="upper" hidden={one && at !== 'timeline'}>{upper}</div>}
		{!one && upper && <Separator split={UPPER} label={tr('Height of the timeline')} share={top} move={moveTop} />}
		<div key="lower" class="lower" data-ready={!upper && come ? 1 : undefined} hidden={one && at === 'timeline' && !details}>
			{!(one && at === 'timeline') && <div class="tabs">
				{!one && bar}
				{!come && <Busy what={tr('Opening the trace')} />}
				{come && panel && <Body key={panel.id} panel={panel} shown={shown} />}
			</div>}
			{details && !one && <Separator split={SIDE} upright label={tr('Width of the details')} share={side} move={moveSide} />}
			{details && (!one || at === 'timeline') && <div class="side">{details}</div>}
		</div>
	</div>;
}
