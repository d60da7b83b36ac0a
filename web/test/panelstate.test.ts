import assert from 'node:assert/strict';
import { test } from 'node:test';

Object.assign(globalThis, { location: { pathname: '/', search: '?tops=graph:120,callers:40,tree:48&more=children:200,notes:60' }, addEventListener: () => {},
	history: { replaceState: () => {} } });
const { afresh, storeScroll, parsePanelState, scrolledTo, withPanelState } = await import('../src/ui/panelstate');
const { text } = await import('../src/ui/route');

test('names with numbers are read, and what is none is left out', () => {
	assert.deepEqual([...parsePanelState('notes:60,children:200')], [['notes', 60], ['children', 200]]);
	assert.deepEqual([...parsePanelState('')], []);
	assert.deepEqual([...parsePanelState('notes,x:y,children:2,b:-1,c:12345678,D:1')], [['children', 2]]);
});

test('one of them is changed, added and taken out', () => {
	assert.equal(withPanelState('', 'graph', 18), 'graph:18');
	assert.equal(withPanelState('graph:18,tree:24', 'graph', 36), 'graph:36,tree:24');
	assert.equal(withPanelState('graph:18,tree:24', 'graph', null), 'tree:24');
	assert.equal(withPanelState('graph:18', 'graph', null), null);
	assert.equal(withPanelState('', 'graph', null), null);
});

test('another graph begins at its top, and what belongs to others stays', () => {
	assert.deepEqual(afresh(), { tops: 'callers:40', more: 'notes:60' });
});

test('what is scrolled is in the address, its beginning is not', () => {
	assert.equal(scrolledTo('graph'), 120);
	assert.equal(scrolledTo('nothing'), 0);
	storeScroll('graph', 17.6);
	assert.equal(text('tops'), 'graph:18,callers:40,tree:48');
	storeScroll('graph', 0);
	assert.equal(text('tops'), 'callers:40,tree:48');
});
