import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ageOf, dayOf, draftOf, namesOf, numbersOf, repositoryOf, safe } from '../src/source/sourcedoc';

const DAY = 86400000;

test('only addresses of web servers become links', () => {
	assert.equal(safe('https://git.example.com/a'), 'https://git.example.com/a');
	for (const to of ['javascript:alert(1)', 'data:text/html,x', '//h/a', 'HTTPS://h', '', null, undefined]) assert.equal(safe(to), undefined);
});

test('lines, owners and age in words', () => {
	const v = { method: 'a.B.c', repository: 'app', lines: [[3, 9], [12, 12]] as [number, number][], owners: [{ section: '', names: ['@a', '@b'], line: 1 }, { section: 'x', names: ['@b'], line: 2 }] };
	assert.equal(numbersOf(v), ':3-9, 12');
	assert.equal(numbersOf({ method: '', repository: null }), '');
	assert.equal(namesOf(v), '@a @b');
	assert.equal(ageOf(0), 'The clone has no readable commit.');
	assert.equal(ageOf(10 * DAY, 10 * DAY + 5), 'The newest commit of the clone is of today.');
	assert.equal(ageOf(10 * DAY, 11 * DAY), 'The newest commit of the clone is a day old.');
	assert.equal(ageOf(10 * DAY, 40 * DAY), 'The newest commit of the clone is 30 days old.');
});

test('a time that no calendar has is nothing', () => {
	assert.equal(dayOf(Date.UTC(2026, 0, 31)), '2026-01-31');
	assert.equal(dayOf(253402300799000), '9999-12-31');
	for (const ms of [-1, NaN, 253402300800000, 99999999999999000, -8e18]) assert.equal(dayOf(ms), '');
	assert.match(ageOf(99999999999999000, 10 * DAY), /unknown/);
});

test('a repository goes through its form as it was', () => {
	const r = { name: 'app', packages: ['com.a.', 'com.b.'], link: 'https://h/{path}', refs: ['v{version}'], clone: 'app', show_emails: true };
	assert.deepEqual(repositoryOf(draftOf(r)), r);
	assert.deepEqual(repositoryOf({ ...draftOf(), name: ' x ', roots: ' a \n\n b' }), { name: 'x', roots: ['a', 'b'] });
});
