/*
 * Regressions in the page: listed, opened, assigned, muted, fixed; thresholds set and refused; the view of
 * a user who may only read.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { signIn, unreadable } from '../browser.mjs';
import { done, server, shots, watched } from '../page.mjs';
import { tracewell } from '../server.mjs';
import { sendSlower } from '../regressed_fleet.mjs';

async function asEditor(scheme, width, target = '/regressions') {
	const page = await watched(scheme, width);
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await page.goto(server.url + target);
	await page.waitForSelector('#thresholds input');
	return page;
}

const METHOD = 'tr[data-regression]:has-text("com.app.Repo.load")';

test('a regression is found, owned, muted and closed', async (t) => {
	await sendSlower(server);
	const page = await asEditor();
	await page.waitForSelector('text=No open regressions');
	await page.waitForSelector('text=/It checks the last \\d+ days including today. A change needs 30 traces on 2 days on each side/');
	await page.fill('#thresholds [name=min_days]', 'two');
	await page.locator('#thresholds label', { has: page.locator('[name=min_days][aria-invalid=true]') }).getByText('a number, 0 or more').waitFor();
	assert.ok(await page.locator('#thresholds button.primary').isDisabled());
	await page.fill('#thresholds [name=min_days]', '0');
	await page.click('#thresholds button.primary');
	await page.waitForSelector('#thresholds [role=alert] >> text=whole number from 1 to 14');
	await page.fill('#thresholds [name=min_days]', '1');
	await page.click('#thresholds button.primary');
	await page.waitForSelector('#thresholds button.primary[aria-disabled=true]:focus');
	await page.getByRole('button', { name: 'Check now' }).click();
	await page.waitForSelector('[role=status] >> text=2 slower, 2 of them new');
	await page.locator(METHOD).getByText('+').waitFor();
	const { change_ms, lines: [all] } = (await server.get(`/api/v1/regressions/${await page.locator(METHOD).first().getAttribute('data-regression')}/trend`)).json;
	const bars = page.locator(`${METHOD} svg.bars`).first(); // its days, before the row is opened
	await page.waitForFunction((n) => document.querySelectorAll('tr[data-regression] svg.bars rect:not(.none)').length >= n, all.points.length);
	assert.equal(await bars.locator('rect.after').count(), all.points.filter((p) => p.day_ms >= change_ms).length);
	assert.match(await bars.getAttribute('aria-label'), /Repo\.load by day$/);
	await page.locator(`${METHOD} button`).click();
	await page.waitForSelector('text=/Repo.load in slower is \\d+ % slower, 8.3.1 against 8.3.0: .* at the median, 95 % confidence/');
	await page.waitForSelector('a:has-text("both traces compared")');
	await page.locator('.trendline [data-line="8.3.1"] circle').waitFor();
	await page.locator('.trendline [data-line="8.3.0"] .band').waitFor({ state: 'attached' });
	const colours = await page.locator('.trendline polyline').evaluateAll((lines) => lines.map((l) => getComputedStyle(l).stroke));
	assert.ok(colours.length === 2 && !colours.includes('none') && colours[0] !== colours[1], colours.join());
	assert.match(await page.locator('.trendline svg').getAttribute('aria-labelledby'), /title-\S+ desc-\S+/);
	assert.match(await page.locator('.trendline desc').innerHTML(), /It changed on \d{4}-\d\d-\d\d\. The last days: 8\.3\.0 on/);
	await page.getByRole('button', { name: 'p95' }).click();
	await page.waitForFunction(() => document.querySelector('.trendline title')?.textContent.startsWith('The p95'));
	assert.equal(await page.locator('.trendline .band').count(), 0, 'too few traces for an interval of p95');
	await page.click('.regressiontrend summary');
	assert.deepEqual(await page.locator('.regressiontrend tr[data-day] td:nth-child(2)').allInnerTexts(), ['8.3.0', '8.3.1']);
	const versions = await page.getByRole('link', { name: 'both versions compared' }).getAttribute('href');
	assert.deepEqual(Object.fromEntries(new URL(versions, server.url).searchParams), { a: '8.3.0', b: '8.3.1', app: 'shop', scenario: 'slower', method: 'com.app.Repo.load' });
	await page.locator(`${METHOD} a`).click();
	await page.waitForSelector('.verdict >> text=slower');
	await page.waitForSelector('tr.more [data-stat=p50] >> text=slower');
	await page.goBack();
	await page.waitForSelector('text=95 % confidence');
	await page.fill('[name=owner]', 'ann');
	await page.fill('[name=note]', 'the cache');
	await page.click('[aria-label="Actions"] button.primary');
	await page.locator(METHOD).getByText('ann').waitFor();
	await page.getByRole('button', { name: 'Acknowledge' }).click();
	await page.locator(METHOD).getByText('Acknowledged').waitFor();
	await page.locator('.acknowledged[open] p:text-matches("The change above is the mean change per device class and day")').waitFor();
	assert.equal(await page.locator('.acknowledged tr[data-regression]').count(), 1, 'the other still waits');
	const opened = page.url();
	await page.locator(`.acknowledged ${METHOD} button[aria-expanded=true]`).click();
	await page.locator(`.acknowledged[open] ${METHOD} button[aria-expanded=false]`).waitFor();
	await page.goto(`${server.url}/regressions`);
	await page.locator('.acknowledged:not([open]) summary:text-is("Acknowledged: 1")').waitFor();
	await page.goto(opened);
	await page.locator('.acknowledged[open] p:text-matches("95 % confidence")').first().waitFor();
	assert.deepEqual(await unreadable(page), []);
	await page.reload();
	await page.waitForSelector('text=95 % confidence'); /* the open one is in the address */
	await page.getByRole('button', { name: 'Mute for 7 days' }).click();
	await page.locator(METHOD).waitFor({ state: 'detached' });
	await page.check('text=include muted');
	await page.locator(METHOD).getByText('muted until').waitFor();
	const regression = await page.locator(METHOD).getAttribute('data-regression');
	const other = await server.ask('PATCH', `/api/v1/regressions/${regression}`, { key: server.write, body: JSON.stringify({ owner: 'bob' }) });
	assert.equal(other.status, 200, other.text);
	await page.getByRole('button', { name: 'Unmute' }).click();
	await page.locator(METHOD).getByText('bob').waitFor();
	await page.getByRole('button', { name: 'Mark as fixed' }).click();
	await page.locator(METHOD).waitFor({ state: 'detached' });
	assert.equal(await page.getByLabel('Show').locator('option:checked').innerText(), 'Unresolved', 'in the words of the inbox');
	await page.getByLabel('Show').selectOption('fixed');
	await page.locator(METHOD).getByText('Fixed').waitFor();
	assert.match(await page.locator(METHOD).innerText(), /bob/, 'the owner that another user set is not overwritten');
	await done(page, t);
});

test('one change has one figure on the start page, in the inbox, the list, the comparison and the digest', async (t) => {
	const { json } = await server.get('/api/v1/inbox?state=all&kind=regression');
	const answered = await server.ask('PATCH', '/api/v1/inbox', { key: server.write, body: JSON.stringify({ items: json.items.map(({ kind, id }) => ({ kind, id })), status: 'open', muted_until_ms: 0 }) });
	assert.equal(answered.status, 200, answered.text);
	const page = await asEditor();
	const digest = (await server.get('/api/v1/digest?for=text')).text;
	for (const [name, method] of [['com.app.Repo.load', 'com.app.Repo.load'], ['Duration of slower', '']]) {
		const figures = {};
		const note = async (where, locator) => {
			await locator.waitFor();
			figures[where] = (await locator.innerText()).match(/[+−]?[\d.]+ %/)?.[0].replace(/^\+/, '');
		};
		const show = (target) => page.goto(server.url + target);
		await show('/');
		await note('start page', page.locator(`#slower tr:has-text("${name}"):has-text("slower") a.slower`));
		if (!method) await note('scenarios', page.locator('#scenarios tr[data-scenario=slower][data-version="8.3.1"] a.slower').first());
		await show('/inbox?kind=regression');
		await note('inbox', page.locator(`tr[data-item]:has-text("${name}") td.num`).first());
		await show('/regressions');
		const row = page.locator(`tr[data-regression]:has-text("${name}")`);
		await note('list', row.locator('td.num').first());
		await row.locator('button').click();
		await note('sentence', page.getByText(/ is [\d.]+ % slower, 8\.3\.1 against 8\.3\.0: /));
		const values = (await page.getByText(/ is [\d.]+ % slower, 8\.3\.1 against 8\.3\.0: /).innerText()).match(/8\.3\.0: (.+) to (.+) at the median/).slice(1);
		await page.getByRole('link', { name: 'both versions compared' }).click();
		await note('comparison', page.locator(`${method ? 'tr.more' : '#lengths'} [data-stat=p50] td.num`).nth(2));
		if (!method) assert.deepEqual((await page.locator('#lengths [data-stat=p50] td.num').allInnerTexts()).slice(0, 2), values);
		if (!method) assert.equal(await page.locator('#lengths [data-stat=p50] td.num a').getAttribute('href').then((to) => /open=/.test(to)), true, 'and leads to the regression');
		figures.digest = digest.split('\n').find((l) => l.startsWith(`- ${method || 'slower of'}`) && l.includes(' against '))?.match(/\+([\d.]+ %)/)?.[1];
		assert.match(figures.list, /^[1-9]\d %$/);
		for (const [where, figure] of Object.entries(figures)) assert.equal(figure, figures.list, `${name}, ${where}: ${JSON.stringify(figures)}`);
	}
	await done(page, t);
});

for (const [scheme, width] of [['light', 1280], ['dark', 1920]])
	test(`the page can be read and used by all, ${scheme}, ${width}`, async (t) => {
		const page = await asEditor(scheme, width, '/regressions?status=all&muted=1');
		await page.locator(`${METHOD} button`).click();
		await page.waitForSelector('text=95 % confidence');
		await page.locator('.trendline [data-line="8.3.1"] circle').waitFor();
		await page.setViewportSize({ width: 390, height: 800 });
		const [fixed, version] = await Promise.all([page.getByRole('button', { name: 'Mark as fixed' }), page.getByLabel('in version')].map((at) => at.boundingBox()));
		assert.ok(version.y < fixed.y + fixed.height, 'the version is beside its button');
		for (const tablet of [800, 960]) {
			await page.setViewportSize({ width: tablet, height: 900 });
			await page.waitForFunction(() => [...document.querySelectorAll('.scroll')].every((panel) => panel.scrollWidth <= panel.clientWidth));
		}
		await page.setViewportSize({ width, height: 900 });
		await page.click('.regressiontrend summary');
		if (shots) await page.screenshot({ path: path.join(shots, `regressions-${scheme}.png`), fullPage: true });
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		await done(page, t);
	});

test('who may only look sees what there is and no way to change it', async (t) => {
	const page = await watched();
	await signIn(page, { ...server, write: server.read, url: server.url });
	await page.goto(`${server.url}/regressions?status=all&muted=1`);
	await page.locator(`${METHOD} button`).click();
	await page.waitForSelector('text=95 % confidence');
	for (const name of ['Acknowledge', 'Check now']) assert.equal(await page.getByRole('button', { name }).count(), 0);
	assert.equal(await page.getByRole('link', { name: 'Set up repositories' }).count(), 0);
	assert.ok(await page.locator('#thresholds input').first().isDisabled());
	await done(page, t);
});

test('an admin of a project without repositories learns how owners are suggested', async (t) => {
	const page = await watched();
	await signIn(page, { ...server, write: server.admin, url: server.url });
	await page.goto(`${server.url}/regressions?status=all&muted=1`);
	await page.locator(`${METHOD} button`).click();
	await page.fill('[name=owner]', '');
	await page.getByText('The CODEOWNERS file of a repository suggests the owner.').waitFor();
	await page.getByRole('link', { name: 'Set up repositories' }).click();
	await page.waitForURL(/\/source$/);
	await done(page, t);
});
