/*
 * Sign-in through a provider's page, in a browser: the button, redirects, and the messages of the sign-in
 * page after a failure; in light and dark.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { launch } from '../browser.mjs';
import { CLIENT, knows, realProvider } from '../oidc_provider.mjs';
import { freePort, startServer, tracewell } from '../server.mjs';

const shots = process.env.SCREENSHOTS;
const ending = [];
let server, provider, browser;

before(async () => {
	const port = await freePort();
	const t = { after: (f) => ending.push(f) };
	provider = await realProvider(t, `http://127.0.0.1:${port}/api/v1/oidc/callback`);
	server = await startServer(t, {
		env: { TRACEWELL_OIDC_CLIENT_SECRET: CLIENT.secret },
		args: ['--listen', `127.0.0.1:${port}`, '--oidc-issuer', provider.url, '--oidc-client-id', CLIENT.id, '--oidc-loopback-http', '--oidc-name', 'Acme'],
	});
	assert.ok(server.read);
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const end of ending.reverse()) await end();
});

async function open(scheme, width = 1280) {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	return page;
}

async function done(page, name) {
	if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: true });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

/* The provider's own pages: who it is, and that this is fine. */
async function through(page, login) {
	await page.fill('input[name=login]', login);
	await page.fill('input[name=password]', 'anything');
	await page.click('button[type=submit]');
	await page.waitForSelector('input[name=prompt][value=consent]', { state: 'attached' });
	await page.click('button[type=submit]');
}

test('not invited, then invited, then in', async () => {
	knows('ann-1', { preferred_username: 'ann' });
	const page = await open('light');
	await page.goto(`${server.url}/builds`);
	await page.click('text=Sign in with Acme');
	await through(page, 'ann-1');
	await page.waitForSelector('[role=alert]:has-text("You do not have an account here.")');
	assert.equal(new URL(page.url()).pathname, '/signin');
	if (shots) await page.screenshot({ path: path.join(shots, 'provider-refused-light.png') });

	const admin = await open('dark');
	await admin.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await admin.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await admin.goto(`${server.url}/people`);
	await admin.fill('input[name=account]', 'ann');
	await admin.fill('input[name=new-password]', 'password of ann');
	await admin.click('text=Create the account');
	await admin.click('[aria-label="Link ann to an identity at the provider"]');
	await admin.fill('[aria-label="Subject of ann at the provider"]', 'ann-1');
	await admin.click('form.inlineform >> text=Link');
	await admin.waitForSelector('[aria-label="Unlink ann from the provider"]');
	await done(admin, 'provider-people-dark');

	await page.goto(`${server.url}/builds`);
	await page.click('text=Sign in with Acme'); // it still knows who this is
	await page.waitForSelector('h1:has-text("Builds"), .notice:has-text("no role")');
	assert.equal(new URL(page.url()).pathname, '/builds', 'back where it was');
	await page.click('header >> text=ann');
	await page.waitForSelector('text=Acme signs you in to this account.');
	await page.click('header >> text=Sign out');
	await page.waitForSelector('text=Sign in with Acme');
	await done(page, 'provider-signin-light');
});

test('an account is linked on its own page', async () => {
	knows('bob-2', { preferred_username: 'somebody' });
	const admin = await open('light');
	await admin.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await admin.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await admin.goto(`${server.url}/people`);
	await admin.fill('input[name=account]', 'bob');
	await admin.fill('input[name=new-password]', 'password of bob');
	await admin.click('text=Create the account');
	await admin.waitForSelector('[aria-label="Disable the account bob"]');

	const page = await open('dark');
	await page.goto(`${server.url}/`);
	await page.fill('input[name=name]', 'bob');
	await page.fill('input[name=password]', 'password of bob');
	await page.click('button:has-text("Sign in")');
	await page.click('header >> text=bob');
	await page.fill('input[name=link-password]', 'password of nobody');
	await page.click('text=Link to Acme');
	await page.waitForSelector('text=the password is wrong');
	await page.fill('input[name=link-password]', 'password of bob');
	await page.click('text=Link to Acme');
	await through(page, 'bob-2');
	await page.waitForSelector('text=Acme signs you in to this account.');
	if (shots) await page.screenshot({ path: path.join(shots, 'provider-account-dark.png') });

	await admin.click('[aria-label="Disable the account bob"]');
	await admin.waitForSelector('[aria-label="Enable the account bob"]');
	await done(admin, 'provider-people-light');
	await page.goto(`${server.url}/`);
	await page.click('text=Sign in with Acme');
	await page.waitForSelector('[role=alert]:has-text("Your account is disabled.")');
	await done(page, 'provider-disabled-dark');
});

test('an unavailable provider is reported, and passwords still work', async () => {
	const page = await open('light', 1920);
	provider.only = (_, res) => res.writeHead(503).end();
	// the server caches its keys for an hour: start where it must request them again
	await server.stop();
	await server.start();
	await page.goto(`${server.url}/`);
	await page.click('text=Sign in with Acme');
	await page.waitForSelector('[role=alert]:has-text("Acme is not responding.")');
	await page.fill('input[name=name]', 'ann');
	await page.fill('input[name=password]', 'password of ann');
	await page.click('button:has-text("Sign in")');
	await page.waitForSelector('header >> text=ann');
	assert.equal(new URL(page.url()).search, '', 'the reason is gone from the address');
	provider.only = undefined;
	await done(page, 'provider-away-light');
});
