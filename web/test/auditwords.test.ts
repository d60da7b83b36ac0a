import assert from 'node:assert/strict';
import { test } from 'node:test';
import { percent } from '../src/i18n/format';
import { did, facts, named, since, SORTS, target, who, type Entry } from '../src/admin/auditwords';

const entry = (more: Partial<Entry>): Entry =>
	({ id: 1, at_ms: 0, project: 'p', actor: { kind: 'user', id: 'u', name: 'mira' }, address: '', request: '', action: 'key.create', target: '01KEY', facts: {}, ...more });

test('audited actions have a description, also unknown ones', () => {
	assert.equal(did(entry({})), 'created a key');
	assert.equal(did(entry({ action: 'session.end_all' })), 'signed out everywhere');
	assert.equal(did(entry({ action: 'moon.land_on' })), 'moon land on');
});

test('who did it: a person, a key, the command line, the server', () => {
	assert.equal(who(entry({})), 'mira');
	assert.equal(who(entry({ actor: { kind: 'key', id: 'k1', name: 'ci' } })), 'key ci');
	assert.equal(who(entry({ actor: { kind: 'cli', id: '0', name: 'root' } })), 'command line, root');
	assert.equal(who(entry({ actor: { kind: 'server', id: '', name: '' } })), 'the server itself');
});

test('a key is told by its name, once', () => {
	const made = entry({ facts: { name: 'ci', scope: 'read', expires_ms: '0' } });
	assert.equal(target(made), 'ci');
	assert.equal(facts(made), 'scope read, never expires');
	assert.equal(target(entry({})), '01KEY');
});

test('ids of keys are replaced by their names, where they are known', () => {
	const keys = new Map([['01KEY', 'ci'], ['01BOSS', 'boss']]);
	const actor = { kind: 'key', id: '01BOSS', name: '' };
	const revoked = named(entry({ action: 'key.revoke', actor }), keys);
	assert.deepEqual([who(revoked), target(revoked), facts(revoked)], ['key boss', 'ci', '']);
	assert.deepEqual([who(named(entry({ actor }), new Map())), target(named(entry({}), new Map()))], ['key 01BOSS', '01KEY']);
});

test('a key without a name reads alike where it acts and where it is changed, and in the details', () => {
	const keys = new Map([['01KEY', '(unnamed) write']]);
	const made = named(entry({ facts: { name: '', scope: 'write' } }), keys);
	assert.deepEqual([target(made), facts(made)], ['(unnamed) write', 'scope write']);
	const gone = named(entry({ action: 'trace.delete', target: '01TRACE', facts: { app: 'com.shop', scenario: 'start', device: 'Pixel 8', sent_by: '01KEY' } }), keys);
	assert.deepEqual([target(gone), facts(gone)], ['com.shop start', 'device Pixel 8, sent by (unnamed) write']);
});

test('of a setting only what differs from the older entry is shown', () => {
	const set = (value: object | string) => entry({ action: 'setting.set', target: 'retention', facts: { value: typeof value === 'string' ? value : JSON.stringify(value) } });
	const [older, newer] = [set({ max_age_days: 80, max_traces: null }), set({ max_age_days: 90, max_traces: null })];
	assert.equal(facts(since(newer, older)), 'Delete traces older than: 90 days');
	assert.equal(facts(since(older, older)), '');
	assert.equal(facts(since(set({ hour: 8 }), set({ hour: 8, url: 'x' }))), 'url none');
	assert.equal(facts(since(set({ url: '' }), set({ url: 'x' }))), 'url none');
	assert.deepEqual([since(newer), since(newer, set('{"rules":[{"id":"io","ti')), since(entry({}), entry({}))], [newer, newer, entry({})]);
});

test('settings read as on the forms that set them', () => {
	const set = (of: string, value: object) => facts(entry({ action: 'setting.set', target: of, facts: { value: JSON.stringify(value) } }));
	assert.equal(target(entry({ action: 'setting.set', target: 'retention' })), 'retention rules');
	assert.equal(set('retention', { max_age_days: 80, max_traces: null, quarantine_max_bytes: 2 ** 30, keep_first_anr: true }),
		'Delete traces older than: 80 days, Maximum traces: no limit, Maximum size of the quarantine: 1 GiB, Keep the first trace of each ANR group: yes');
	assert.equal(set('capture', { max_age_s: 3600, rules: [{ name: 'start' }, { name: 'scroll' }] }), 'polled every 60 minutes, rules start, scroll');
	assert.equal(facts(entry({ action: 'setting.set', target: 'detectors', facts: { value: '{"rules":[{"id":"json","title":"JSON"},{"id":"io","ti' } })), 'rules JSON, …');
});

test('facts read as words', () => {
	assert.equal(facts(entry({ action: 'trace.edit', target: 't', facts: { title: '', pinned: 'true', tags: 'a,b' } })), 'pinned, tags a,b');
	assert.equal(facts(entry({ action: 'session.start', target: 'mira', facts: { how: 'password' } })), 'by password');
	assert.equal(facts(entry({ action: 'user.change', target: 'bob', facts: { server_admin: 'false' } })), 'not server admin');
	assert.equal(facts(entry({ action: 'setting.set', target: 'regressions', facts: { value: '{"min_change":0.1,"window_days":28,"colour":"red"}' } })), `minimum change ${percent(0.1)}, compared days 28, colour red`);
	assert.equal(facts(entry({ action: 'anr.change', target: 'a', facts: { status: 'fixed', fixed_in: '8.5.0', owner: 'wei' } })), 'status fixed, fixed in 8.5.0, owner wei');
});

test('each kind to pick has words', () => {
	for (const [action, shown] of SORTS.slice(1)) assert.ok(/^[a-z]+$/.test(action) && shown.length > 3);
});
