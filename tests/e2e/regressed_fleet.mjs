/* A small fleet through the public path in which 8.3.1 is slower by half in com.app.Repo.load. */
import { btrace } from './make.mjs';
import { until } from './server.mjs';

const PID = 4000;
const mapping = ['# v', '1,1,com.app.Main onCreate ()V', '2,1,com.app.Repo load ()V', ''].join('\n');
const trace = (load) => btrace([[PID, 2, 1_001_000, load], [PID, 1, 1_000_000, load + 500_000]], { pid: PID });
const loadOf = (version, i) => Math.round((1_000_000 + i * 4_000) * (version === '8.3.1' ? 1.5 : 1));

export async function sendSlower(s, each = 35) {
	const versions = ['8.3.0', '8.3.1'];
	for (const version of versions) {
		await s.put(`/api/v1/builds/b${version}/methods`, mapping);
		for (let i = 0; i < each; i++) {
			const sent = await s.post('/api/v1/traces', trace(loadOf(version, i)), { query: { app: 'shop', version_name: version, build_id: `b${version}`, scenario: 'slower' },
				headers: { 'Idempotency-Key': `slower-${version}-${i}` } });
			if (sent.status > 202) throw new Error(sent.text);
		}
	}
	await until(async () => {
		const { json } = await s.get('/api/v1/fleet/methods?scenario=slower');
		return json?.traces === versions.length * each && json.methods.length === 2 && json.methods.every((m) => m.resolved) ? true : undefined;
	}, 'all are counted and named', 60);
}

/** Runs regression detection, after a run of the server that is in progress. */
export const look = (s) => until(async () => {
	const { status, json, text } = await s.ask('POST', '/api/v1/regressions/detect', { key: s.write });
	if (status !== 200 && status !== 503) throw new Error(text);
	return status === 200 ? json : undefined;
}, 'a look');

/** The one of the method, found with thresholds for a single day. */
export async function findSlower(s, each) {
	await sendSlower(s, each);
	const set = await s.ask('PUT', '/api/v1/regressions/rules', { key: s.write, body: JSON.stringify({ min_days: 1, min_traces: 5 }) });
	if (set.status !== 200) throw new Error(set.text);
	await look(s);
	return (await s.get('/api/v1/regressions?method=com.app.Repo.load')).json.regressions[0];
}
