/*
 * grafana.test.mjs - the dashboard of deploy/grafana-traces.json: its addresses are requested as the data source
 * does, and each field that a panel names is in the response, with the panel's type.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { root, startServer } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

const board = JSON.parse(fs.readFileSync(path.join(root, 'deploy/grafana-traces.json'), 'utf8'));
const at = (row, selector) => selector.split('.').reduce((o, k) => o?.[k], row);

const fits = {
	number: (v) => typeof v === 'number',
	string: (v) => typeof v === 'string',
	timestamp: (v) => typeof v === 'string' && v !== '' && !Number.isNaN(Date.parse(v)),
	timestamp_epoch: (v) => Number.isInteger(v) && new Date(v).getUTCFullYear() > 2000, /* milliseconds */
};

test('every panel uses existing endpoints', async (t) => {
	const s = await startServer(t);
	await findSlower(s, 12);
	const filled = { __from: String(Date.now() - 30 * 86_400_000), __to: String(Date.now() + 86_400_000), version: '8.3.1', method: 'com.app.Repo.load' };
	const fill = (text) => text.replace(/\$\{(\w+)\}/g, (_, name) => filled[name] ?? assert.fail(`nobody fills ${name}`));
	assert.ok(board.panels.length >= 5);
	for (const panel of board.panels)
		await t.test(panel.title, async () => {
			const [q] = panel.targets;
			assert.match(q.url, /^\/api\/v1\//, 'below the address of the data source');
			assert.equal(q.url_options.method, 'GET');
			const r = await s.get(q.url, { query: Object.fromEntries(q.url_options.params.map((p) => [p.key, fill(p.value)])) });
			assert.equal(r.status, 200, r.text);
			const rows = at(r.json, q.root_selector);
			assert.ok(Array.isArray(rows) && rows.length > 0, `${q.root_selector} of ${r.text.slice(0, 300)}`);
			for (const row of rows) for (const c of q.columns) assert.ok(fits[c.type](at(row, c.selector)), `${c.selector} is ${JSON.stringify(at(row, c.selector))}, no ${c.type}`);
			assert.ok(q.columns.some((c) => c.type === 'number'));
			if (panel.type === 'timeseries') assert.equal(q.columns[0].type, 'timestamp');
		});
	await t.test('placeholders are variables of the dashboard or of Grafana', () => {
		const known = board.templating.list.map((v) => v.name);
		for (const [, name] of JSON.stringify(board).matchAll(/\$\{(\w+)\}/g)) assert.ok(known.includes(name) || name.startsWith('__'), name);
	});
	await t.test('the data source asks one host, with a key that may read', async () => {
		const program = 'import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))';
		const { datasources: [source] } = JSON.parse(execFileSync('/usr/bin/python3', ['-c', program, path.join(root, 'deploy/grafana-datasource.yml')], { encoding: 'utf8' }));
		assert.equal(source.type, board.templating.list[0].query);
		assert.deepEqual(source.jsonData.allowedHosts, [source.url]);
		assert.equal(source.jsonData.auth_method, 'bearerToken');
		assert.match(source.secureJsonData.bearerToken, /^\$/, 'no key stands in the file');
	});
});
