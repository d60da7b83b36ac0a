// The state of a project at a glance, its methods and findings: each panel loads and fails independently.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { FleetFilter } from './fleetfilter';
import { FindingsPage, FleetFindings } from './fleetfindings';
import { MethodsPage } from './fleetmethods';
import { Anrs, Intake, Regressions, ScenarioTimes, Slowest, useOpenRegressions } from './fleetpanels';
import { Narrowed } from './fleetparts';
import { path } from '../ui/route';
import { tr } from '../i18n/strings/fleet';

/** The project's state: open items, scenario durations, received traces. A project with few traces lists those first. */
export function Overview({ newest, few, next }: { newest: ComponentChildren; few: boolean; next: ComponentChildren }) {
	const open = useOpenRegressions();
	return <>
		<div class="row head"><h1>{tr('Overview')}</h1><FleetFilter /><Narrowed /></div>
		{few && <>{newest}{next}</>}
		<div class="pair load-in-order"><Regressions open={open} few={few} /><Anrs few={few} /></div>
		<div class="pair far load-in-order"><ScenarioTimes open={open} />{!few && newest}</div>
		<Intake />
		<div class="pair far load-in-order"><FleetFindings /><Slowest /></div>
	</>;
}

export function FleetPage() {
	const at = path.value;
	useEffect(() => {
		document.title = tr('{at} · tracewell', { at: at === '/fleet/methods' ? tr('Fleet methods') : tr('Fleet findings') });
	}, [at]);
	return <main class="fleet">{at === '/fleet/methods' ? <MethodsPage /> : <FindingsPage />}</main>;
}
