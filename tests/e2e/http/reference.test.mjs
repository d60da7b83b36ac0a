/* The API's reference: every operation and schema of the description, readable, without a script or a foreign address. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startServer } from '../server.mjs';

test('the reference matches the description', async (t) => {
	const s = await startServer(t);
	const doc = (await s.get('/api/v1/openapi.json', { key: null })).json;
	const { status, headers, text } = await s.get('/api/reference', { key: null });
	assert.equal(status, 200);
	assert.match(headers.get('content-type'), /^text\/html/);
	assert.match(headers.get('content-security-policy'), /script-src 'self'/);

	await t.test('every operation and schema has its place, and every link one to go to', () => {
		const ids = [...text.matchAll(/ id="([^"]+)"/g)].map((m) => m[1]);
		assert.equal(new Set(ids).size, ids.length, 'each once');
		const operations = Object.values(doc.paths).flatMap((item) => Object.values(item).map((op) => op.operationId));
		for (const id of operations) assert.ok(ids.includes(id), id);
		for (const name of Object.keys(doc.components.schemas)) assert.ok(ids.includes(`schema-${name.toLowerCase()}`), name);
		const links = [...text.matchAll(/ href="([^"]+)"/g)].map((m) => m[1]);
		assert.ok(links.length > operations.length);
		for (const link of links) assert.ok(link.startsWith('#') ? ids.includes(link.slice(1)) : ['data:,', '/api/reference.css', '/api/v1/openapi.json'].includes(link), link);
	});

	await t.test('every parameter and field is named in its section, as often as it occurs', () => {
		const sections = new Map(text.split('<section id="').slice(1).map((s) => [s.slice(0, s.indexOf('"')), s.slice(0, s.indexOf('</section>'))]));
		const shown = (id) => [...sections.get(id).matchAll(/<tr><td><code>([^<]+)<\/code>/g)].map((m) => m[1]).sort();
		/* The names in inline schemas; named schemas have separate sections. */
		const named = (s) => (typeof s !== 'object' || s === null || s.$ref ? [] : [
			...Object.entries(s.properties ?? {}).flatMap(([name, field]) => [name, ...named(field)]),
			...['anyOf', 'oneOf', 'allOf'].flatMap((word) => (s[word] ?? []).flatMap(named)), ...named(s.items), ...named(s.additionalProperties)]);
		const found = (o) => (o.$ref ? found(o.$ref.slice(2).split('/').reduce((at, piece) => at[piece.replaceAll('~1', '/').replaceAll('~0', '~')], doc)) : o);
		const bodies = (o) => Object.values(found(o).content ?? {}).flatMap((c) => named(c.schema));
		for (const item of Object.values(doc.paths)) for (const op of Object.values(item)) {
			const parameters = (op.parameters ?? []).map(found).flatMap((p) => [p.name, ...named(p.schema)]);
			const answers = Object.entries(op.responses).filter(([status]) => status < '400').flatMap(([, answer]) => bodies(answer));
			assert.deepEqual(shown(op.operationId), [...parameters, ...(op.requestBody ? bodies(op.requestBody) : []), ...answers].sort(), op.operationId);
		}
		for (const [name, schema] of Object.entries(doc.components.schemas)) assert.deepEqual(shown(`schema-${name.toLowerCase()}`), named(schema).sort(), name);
	});

	await t.test('it runs no text, and loads nothing from other origins', async () => {
		assert.doesNotMatch(text, /<script|<style|<iframe|<img|\son\w+=|\sstyle=|https?:\/\/(?!\S*example\.com)/i);
		const css = await s.get('/api/reference.css', { key: null });
		assert.match(css.headers.get('content-type'), /^text\/css/);
		assert.match(css.text, /prefers-color-scheme: dark/);
		assert.doesNotMatch(css.text, /url\(|@import/);
	});
});
