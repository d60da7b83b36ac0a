import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useProject } from '../../src/api/api';
import { clearStatements, rememberStatement, statementsRun } from '../../src/trace/state/statements';

/** As a browser's, whose items are properties. */
class Items {
	[key: string]: unknown;
	getItem(key: string) { return this[key] ?? null; }
	setItem(key: string, value: string) { this[key] = value; }
	removeItem(key: string) { delete this[key]; }
}

test('statements are stored per project, and none after signing out', () => {
	const items = new Items();
	Object.defineProperty(globalThis, 'localStorage', { value: items, configurable: true });
	items.setItem('tracewell-theme', 'dark');
	useProject('one');
	rememberStatement('SELECT 1');
	rememberStatement('SELECT 2');
	rememberStatement('SELECT 1');
	assert.deepEqual(statementsRun(), ['SELECT 1', 'SELECT 2'], 'the last first, each once');
	useProject('two');
	assert.deepEqual(statementsRun(), []);
	rememberStatement('SELECT 3');
	assert.deepEqual(statementsRun(), ['SELECT 3']);
	clearStatements();
	assert.deepEqual(statementsRun(), []);
	useProject('one');
	assert.deepEqual([statementsRun(), Object.keys(items)], [[], ['tracewell-theme']]);
	useProject('');
});
