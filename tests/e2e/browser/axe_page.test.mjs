/*
 * axe_page.test.mjs - axe finds nothing on any page, nor in what opens on it: menus, dialogs, forms, rows with details.
 * By default at the width of a phone; a full run takes both themes at both widths.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { fleet } from '../../gen/anr_fleet.mjs';
import { violations } from '../axe.mjs';
import { settled, signInAs } from '../browser.mjs';
import { done, id, server, watched } from '../page.mjs';
import { binary, inFull, tracewell, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

const ANRS = 5;
const person = { name: 'stately', password: 'opens every menu' };
const asked = {}; // what the addresses need
let session, ready;

/* Once for all tests of this file: regressions, groups of ANRs, one who may see every page. */
const prepare = () => (ready ??= (async () => {
	for (const x of fleet(ANRS)) {
		const { status, text } = await server.post('/api/v1/traces', x.text, { query: { app: 'shop', version_name: x.version, device: x.device, os: '14', scenario: 'anr' }, headers: { 'Idempotency-Key': `state-${x.id}-${Math.random()}` } });
		assert.ok(status <= 202, text);
	}
	asked.regression = (await findSlower(server)).id;
	const groups = await until(async () => {
		const { json } = await server.get('/api/v1/anr/groups');
		return json.anrs === ANRS && json.pending === 0 ? json.groups : undefined;
	}, 'ANRs in groups', 120);
	asked.group = groups[0].key;
	execFileSync(binary(), ['user', 'create', person.name, '--data', server.data], { input: person.password });
	for (const role of [['server-admin'], ['editor', '--project', 'test']]) tracewell('user', 'role', person.name, '--data', server.data, '--role', ...role);
})());

async function enter(page) {
	if (!session) {
		await signInAs(page, server, person.name, person.password);
		session = await page.context().cookies();
	}
	await page.context().addCookies(session);
}

const button = (name) => (page) => page.getByRole('button', { name, exact: true }).first().click();
const summary = (text) => (page) => page.locator('summary', { hasText: text }).first().click();
const keys = (...pressed) => async (page) => {
	for (const key of pressed) await page.keyboard.press(key);
};

/* Name, address, a selector of the complete page, then the control to open and its selector; 'phone' or 'desk': only in that size. */
const states = () => [
	['overview', '/', '#newest td'], ['navigation', '/', '#newest td', (page) => page.locator('.places > button').first().click(), '.places > ul:not([hidden])'],
	['More', '/', '#newest td', button('More'), '.popover', 'phone'], ['upload', '/', '#newest td', button('Upload'), 'dialog[open]'], ['palette', '/', '#newest td', keys('/', 'l', 'o', 'a', 'd'), '[role=option]'], ['keys', '/traces', 'main td', keys('?'), 'dialog[open]'],
	['list', '/traces', 'main td'], ['columns', '/traces', 'main td', button('Columns'), '.popover'], ['more filters', '/traces', 'main td', button('More filters'), 'text=Fewer filters'],
	['rows selected', '/traces', 'main td', (page) => page.locator('tbody input[type=checkbox]').first().check(), 'section.picked'], ['nothing found', '/traces?q=nothing+like+it', 'text=No traces match'],
	['inbox', '/inbox', 'tr[data-item]'], ['items selected', '/inbox', 'tr[data-item]', (page) => page.locator('tbody input[type=checkbox]').first().check(), 'section.picked'], ['empty inbox', '/inbox?state=muted', 'text=No items match'],
	['slow calls', '/search?method=com.app.Repo.load', '#asked tbody tr'], ['regressions', '/regressions', 'tr[data-regression]'], ['a regression', () => `/regressions?open=${asked.regression}`, '.trendline circle'],
	['ANR groups', '/anrs', 'tr[data-group]'], ['a rule of ANRs', '/anrs/rules', 'text=Add a rule', button('Add a rule'), 'main form'], ['an ANR group', () => `/anrs/${asked.group}`, '#exemplars td'], ['locks', '/locks', '#locks'],
	['builds', '/builds', 'main td'], ['how to send a mapping', '/builds', 'main td', button('How to send'), '.instructions'], ['methods', '/fleet/methods', '#methods tbody tr'], ['the flame graph of many traces', '/fleet/flame', '#flame canvas'], ['a method', '/fleet/methods?method=com.app.Repo.load', '#method tbody tr'],
	['findings', '/fleet/findings', 'main .panel p'], ['versions compared', '/fleet/compare?a=8.3.0&b=8.3.1', '.verdict'], ['traces compared', () => `/compare?a=${id}&b=${id}`, '[data-compared]'], ['comparison of nothing', '/compare', 'text=Choose what to compare'],
	['detectors', '/detectors', 'text=No differences from'], ['a detector', '/detectors', 'text=No differences from', button('Add a rule'), 'text=Apply to the rules'], ['webhooks', '/notifications', '#alerts p'], ['a webhook', '/notifications', '#alerts p', button('Add a webhook'), 'form[aria-label]'],
	['an alert rule', '/notifications', '#alerts p', button('Add an alert rule'), '#alerts form'], ['retention', '/retention', '.roomfacts'], ['capture', '/capture', '#rules p'], ['a capture rule', '/capture', '#rules p', button('Add a rule'), 'form.rule'],
	['source', '/source', 'h1'], ['a repository', '/source', 'h1', button('Add a repository'), 'form'], ['quarantine', '/quarantine', 'main .panel p'], ['keys of the project', '/keys', 'main section:last-of-type td'], ['people', '/people', '#accounts td'],
	['another password', '/people', '#accounts td', button(`Change password of ${person.name}`), '#accounts td input[type=password]'], ['health', '/health', '#slow'], ['audit log', '/audit', 'tr[data-entry]'], ['account', '/account', 'input[type=password]'],
	['no such page', '/nothing/here', 'text=There is no page at this address'], ['no such trace', '/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV', '[role=alert]'], ['another project', '/?project=01ARZ3NDEKTSV4RRFFQ69G5FAV', 'text=Project not found'],
	['other tools', () => `/traces/${id}`, '[data-ready]', button('Other tools'), 'button[aria-expanded=true]'], ['colours', () => `/traces/${id}`, '[data-ready]', button('Colours'), '.popover', 'desk'], ['SQL', () => `/traces/${id}?tab=sql`, '#sql'], ['tables of SQL', () => `/traces/${id}?tab=sql`, '#sql', summary('Tables'), '#sql details[open]'],
];

for (const [scheme, width] of inFull([['light', 390], ['dark', 390], ['light', 1280], ['dark', 1280]], [['light', 390]]))
	test(`axe finds nothing in any state, ${scheme}, ${width}`, async (t) => {
		await prepare();
		const page = await watched(scheme, width);
		await page.goto(server.url);
		await page.waitForSelector('input[type=password]');
		await page.locator('summary', { hasText: 'With a key' }).click();
		const found = (await violations(page)).map((v) => `sign-in: ${v}`);
		await enter(page);
		let last;
		for (const [name, where, whole, act, shown, only] of states()) {
			if (only && (only === 'phone') !== width < 700) continue;
			const at = typeof where === 'function' ? where() : where;
			/* states of one address follow each other without loading it again: Escape closes menus and dialogs */
			if (at === last) await page.keyboard.press('Escape');
			else await page.goto(server.url + at);
			last = at;
			await page.locator(whole).first().waitFor().catch(() => assert.fail(`${name}: no ${whole}`));
			await settled(page);
			if (act) {
				await act(page);
				await page.locator(shown).first().waitFor().catch(() => assert.fail(`${name}: no ${shown}`));
				await settled(page);
			}
			found.push(...(await violations(page)).map((v) => `${name}: ${v}`));
			if (width < 700) found.push(...(await page.locator('.scroll:not(.tabbar, .short, #sql *, :has(> svg))').evaluateAll((tables) => tables.filter((s) => s.scrollWidth > s.clientWidth).map((s) => `scrolls sideways: ${s.innerText.slice(0, 40)}`))));
		}
		assert.deepEqual(found, []);
		await done(page, t);
	});
