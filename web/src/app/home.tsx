// The start page of a project: its state, or how to send a first trace.
import { useEffect, useState } from 'preact/hooks';
import { api, may } from '../api/api';
import { Overview } from '../fleet/fleet';
import { useFleet } from '../fleet/fleetfilter';
import { tr } from '../i18n/strings/frame';
import { ListPage } from '../list/list';
import { Newest } from '../list/newest';
import { traceChanges } from '../list/uploadstate';
import { Pending, useLoad } from '../ui/parts';
import { UploadButton } from './uploadbutton';

const NEWEST = 6;

export function HomePage() {
	const { params: { app = '', version_name = '', scenario = '', os = '', build_id = '' } } = useFleet();
	const query = { app, version_name, scenario, os, build_id };
	const load = useLoad(`newest ${JSON.stringify(query)} ${traceChanges.value}`, (s) => api.traces({ ...query, limit: NEWEST }, s));
	const [first, watch] = useState(false); // the first trace comes while this page is open
	const v = load.value;
	const empty = v?.total === 0 && Object.values(query).every((x) => !x);
	useEffect(() => {
		if (empty) watch(true);
		else document.title = tr('Overview · tracewell');
	}, [empty]);
	const few = v !== null && v.traces.length === v.total && Object.values(query).every((x) => !x);
	if (empty || first) return <ListPage />;
	return (
		<main class="fleet load-in-order">
			{!v ? <Pending of={load} what={tr('Loading the project')} /> : <Overview few={few} newest={<Newest list={v.traces} total={v.total} capped={v.total_is_capped} />}
				next={may.write && v.traces.some((t) => t.state === 'ready' && (!t.meta.scenario || !t.meta.version_name)) && <div class="notice next"><p>{tr('To compare durations, send traces with app, version and scenario.')}</p><UploadButton label={tr('Upload with details')} details /></div>} />}
		</main>
	);
}
