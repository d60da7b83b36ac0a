import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Method } from '../../src/api/api';
import { chosen, filterOf, rowText, tsvOf, UNTIMED, withColumn } from '../../src/trace/panels/methodcolumns';
import { wordsOf } from '../../src/api/source';

const m: Method = { method: 1, id: 7, name: 'a.B.c', count: 1200, total_ns: 3e6, sum_ns: 4e6, running_ns: 0, self_ns: 1e6, max_ns: 2e6, p95_ns: 1.5e6,
	cpu_ns: null, waiting_ns: null, resolved: true };
const keys = (text: string, cpu = false) => chosen(text, cpu).map((c) => c.key);

test('columns are those of the address, and of what was recorded', () => {
	assert.deepEqual(keys(''), ['count', 'running_ns', 'self_ns', 'total_ns', 'p95_ns', 'max_ns']);
	assert.ok(keys('', true).includes('waiting_ns'));
	assert.deepEqual(keys('max,sum,nonsense'), ['sum_ns', 'max_ns']);
	assert.deepEqual(keys('none'), []);
	assert.equal(withColumn('', false, 'sum_ns'), 'count,running,self,total,p95,max,sum');
	assert.equal(withColumn('count,running,self,total,p95,max,sum', false, 'sum_ns'), null, 'as at first');
	assert.equal(withColumn('max', false, 'max_ns'), 'none');
});

test('a table and a row as text', () => {
	const words = wordsOf([]);
	assert.equal(tsvOf([m], chosen('count,self,cpu', true), words), 'method\tcalls\tself_ns\tcpu_ns\na.B.c\t1200\t1000000\t');
	assert.equal(rowText(m, chosen('count,p95,cpu', true), words), 'a.B.c: calls 1,200, CPU –, p95 1.50 ms');
	const snapshot = wordsOf([{ source: 'samples', interval_ns: -1 } as never]);
	assert.equal(tsvOf([m], UNTIMED, snapshot), 'method\tself\ttotal\na.B.c\t1\t3');
	assert.equal(rowText(m, UNTIMED, snapshot), 'a.B.c: self 1, total 3');
});

test('a filter is text or an expression', () => {
	assert.deepEqual(filterOf('a.b'), { q: 'a.b', regex: null });
	assert.deepEqual(filterOf('/^a.*b$/'), { q: '^a.*b$', regex: '1' });
	assert.deepEqual(filterOf('//'), { q: '//', regex: null });
});
