// The fleet of a project at a glance, and its methods: each panel asks, waits and fails by itself.
import { useEffect } from 'preact/hooks';
import { FleetFilter } from './fleetfilter';
import { MethodsPage } from './fleetmethods';
import { Anrs, Intake, Regressions, ScenarioTimes, Slowest } from './fleetpanels';
import { Narrowed } from './fleetparts';
import { link, path } from './route';

function Overview() {
	return <>
		<div class="row head"><h1>Fleet</h1><FleetFilter /><Narrowed /></div>
		<Intake />
		<ScenarioTimes />
		<div class="pair"><Regressions /><Anrs /></div>
		<Slowest />
	</>;
}

export function FleetPage() {
	const methods = path.value === '/fleet/methods';
	useEffect(() => {
		document.title = `${methods ? 'Methods of the fleet' : 'Fleet'} · tracewell`;
	}, [methods]);
	if (methods) return <main class="fleet"><MethodsPage /></main>;
	if (path.value === '/fleet') return <main class="fleet"><Overview /></main>;
	return <main><h1>No such page</h1><p>This address leads nowhere. <a href={link('/fleet')}>The fleet</a></p></main>;
}
