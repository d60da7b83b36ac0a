/*
 * Findings of the fleet in the page: the card, one rule with its causes and versions, and the link to a
 * trace's Findings panel; hostile names remain text; light and dark.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { unreadable } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { HOSTILE, done, open, server, shots } from '../page.mjs';
import { until } from '../server.mjs';

const PID = 4300, MS = 1_000_000, EACH = 4;
const VERSIONS = ['3.9', '3.10'];
const name = HOSTILE.replaceAll(' ', '\u00a0');
const mapping = ['# v', `1,1,com.shop.${name} start ()V`, '2,1,com.shop.Repo load ()V', '3,1,android.app.SharedPreferencesImpl getString ()V', '4,1,org.json.JSONObject get ()V', ''].join('\n');
/* Preferences by Repo.load in every trace; JSON, right below start, in the new version alone. */
const trace = (version, i) => btrace([[PID, 3, 3 * MS, (20 + i) * MS], [PID, 2, 2 * MS, (30 + i) * MS], ...(version === '3.10' ? [[PID, 4, 60 * MS, (100 + i) * MS]] : []), [PID, 1, MS, 200 * MS]], { pid: PID });

const ids = new Map();
async function fleet() {
	for (const version of VERSIONS) {
		await server.put(`/api/v1/builds/found${version}/methods`, mapping);
		for (let i = 0; i < EACH; i++) {
			const sent = await server.post('/api/v1/traces', trace(version, i), { query: { app: 'found', version_name: version, build_id: `found${version}`, scenario: 'open', device: `phone ${i % 2}` }, headers: { 'Idempotency-Key': `found-${version}-${i}` } });
			assert.ok(sent.status <= 202, sent.text);
			ids.set(`${version} ${i}`, sent.json.id);
		}
	}
	await until(async () => {
		const { json } = await server.get('/api/v1/fleet/findings?app=found');
		return json?.examined === VERSIONS.length * EACH && json.rules.length === 2 && json.rules[0].causes.every((c) => c.resolved) ? true : undefined;
	}, 'detectors looked at all', 120);
}
let made;
const ready = () => (made ??= fleet());

test('from the card to a rule, its causes and versions, and to the findings of the worst trace', async (t) => {
	await ready();
	const page = await open('/fleet?app=found');
	const row = (rule) => page.locator(`#topfindings tr[data-rule=${rule}]`);
	await row('preferences').waitFor();
	assert.deepEqual(await page.locator('#topfindings tr[data-rule]').evaluateAll((rows) => rows.map((r) => r.dataset.rule)), ['json', 'preferences']);
	const cells = await row('json').locator('td').allInnerTexts();
	assert.deepEqual(cells.slice(1, 3), ['50 %', '406 ms']);
	assert.ok(cells[4].includes(name), cells[4]);
	assert.ok((await row('json').locator('td').first().boundingBox()).width >= 280, 'its title is not broken into many lines');
	assert.equal(await page.locator('main img').count(), 0);
	await row('json').locator('a').first().click();
	await page.locator('#finding tr[data-group="3.10"] td:has-text("4 of 4")').waitFor();
	assert.equal(new URL(page.url()).searchParams.get('rule'), 'json');
	await page.locator('#finding tr[data-group="3.9"] td:has-text("0 of 4")').waitFor();
	assert.deepEqual(await page.locator('#finding tr[data-group]').evaluateAll((rows) => rows.map((r) => r.dataset.group)), ['3.10', '3.9'], 'the newest first');
	assert.ok((await page.locator('#findings tr[data-rule=json] td').nth(4).innerText()).includes(name), 'the method that causes most of it');
	await page.click('#findings tr[data-rule=preferences] a >> nth=0');
	await page.locator('#finding tr[data-cause="com.shop.Repo.load"] td:has-text("8")').first().waitFor();
	await page.selectOption('#finding select[name=by]', 'scenario');
	await page.locator('#finding tr[data-group=open] td:has-text("8 of 8")').waitFor();
	await page.click('#findings tr[data-rule=json] td:last-child a >> nth=0');
	await page.waitForSelector('#findings tr[data-rule=json] >> text=103 ms');
	assert.ok(page.url().includes(`/traces/${ids.get('3.10 3')}`), page.url());
	await page.goBack();
	await page.locator('#finding tr[data-cause]').first().waitFor();
	await page.setViewportSize({ width: 390, height: 844 });
	await page.locator('#findings tr[data-rule=json] td[data-lead] >> text=JSON on the main thread').waitFor(); // names its block
	const filter = page.locator('summary:has-text("Filter")');
	assert.match(await filter.innerText(), /found, 30 days/);
	assert.ok((await filter.boundingBox()).height < 30, 'one line');
	assert.equal(await page.locator('select[name=app]').isVisible(), false);
	await filter.click();
	assert.equal(await page.locator('select[name=app]').inputValue(), 'found');
	await page.click('#finding tr[data-cause="com.shop.Repo.load"] td a >> nth=0');
	await page.waitForSelector('#method tr[data-point]');
	await done(page, t);
});

test('no findings and no traces are shown differently', async (t) => {
	await ready();
	const page = await open('/fleet/findings?app=nobody');
	await page.waitForSelector('#findings >> text=No analysed trace matches');
	await page.goto(`${server.url}/fleet/findings?app=found&rule=network`);
	await page.waitForSelector('#finding >> text=Detectors found nothing');
	await page.goto(`${server.url}/fleet/findings?app=found&rule=gone`);
	await page.waitForSelector('#finding [role=alert] >> text=no detector has the id gone');
	await done(page, t);
});

test('findings are loaded again while traces of the project are not analysed', async (t) => {
	await ready();
	const page = await open('/fleet');
	let waits;
	await page.route('**/api/v1/fleet/findings?*', async (route) => {
		const response = await route.fetch();
		await route.fulfill({ response, json: { ...await response.json(), ...(waits && { pending: 3, examined: 0, rules: [] }) } });
	});
	for (const [at, panels] of [['/fleet', ['#topfindings']], ['/fleet/findings', ['#findings', '#finding']]]) {
		waits = true;
		await page.goto(`${server.url}${at}?app=found&rule=json`);
		for (const panel of panels) await page.waitForSelector(`${panel} >> text=No analysed trace matches`);
		await page.waitForSelector(`${panels[0]} >> text=3 traces of the project still have to be analysed`);
		waits = false;
		for (const panel of panels) await page.locator(`${panel} tr[data-rule=json], ${panel} tr[data-cause]`).first().waitFor();
		assert.equal(await page.locator('text=still have to be analysed').count(), 0);
	}
	await done(page, t);
});

for (const scheme of ['light', 'dark'])
	test(`they can be read by all, ${scheme}`, async (t) => {
		await ready();
		const page = await open('/fleet/findings?app=found&rule=json', scheme);
		await page.locator('#finding tr[data-cause]').first().waitFor();
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `fleet-findings-${scheme}.png`), fullPage: true });
		await page.goto(`${server.url}/fleet?app=found`);
		await page.locator('#topfindings tr[data-rule]').first().waitFor();
		await page.locator('#slowest tbody tr').first().waitFor();
		assert.deepEqual(await violations(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `fleet-findings-card-${scheme}.png`), fullPage: true });
		await done(page, t);
	});
