// The fleet of a project at a glance, its methods and findings: each panel asks, waits and fails by itself.
import { useEffect } from 'preact/hooks';
import { FleetFilter } from './fleetfilter';
import { FindingsPage, FleetFindings } from './fleetfindings';
import { MethodsPage } from './fleetmethods';
import { Anrs, Intake, Regressions, ScenarioTimes, Slowest } from './fleetpanels';
import { Narrowed } from './fleetparts';
import { link, path } from '../ui/route';
import { tr } from '../i18n/strings/fleet';

function Overview() {
	return <>
		<div class="row head"><h1>{tr('Fleet')}</h1><FleetFilter /><Narrowed /></div>
		<Intake />
		<ScenarioTimes />
		<div class="pair"><Regressions /><Anrs /></div>
		<FleetFindings />
		<Slowest />
	</>;
}

export function FleetPage() {
	const at = path.value;
	useEffect(() => {
		document.title = tr('{at} · tracewell', { at: at === '/fleet/methods' ? tr('Fleet methods') : at === '/fleet/findings' ? tr('Fleet findings') : tr('Fleet') });
	}, [at]);
	if (at === '/fleet/methods') return <main class="fleet"><MethodsPage /></main>;
	if (at === '/fleet/findings') return <main class="fleet"><FindingsPage /></main>;
	if (path.value === '/fleet') return <main class="fleet"><Overview /></main>;
	return <main><h1>{tr('Page not found')}</h1><p>{tr.rich('There is no page at this address. {link}', { link: <a href={link('/fleet')}>{tr('The fleet')}</a> })}</p></main>;
}
