// What the health page reads from /metrics.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byLabel, parseMetrics, sumOf, timedRoutes } from '../src/api/metrics';

const text = `# HELP tracewell_queue_traces Traces that wait
# TYPE tracewell_queue_traces gauge
tracewell_queue_traces 12
tracewell_node_info{node="a \\"b\\"\\n\\\\",role="all"} 1
tracewell_limits_hit_total{limit="rate"} 3
tracewell_limits_hit_total{limit="size"} 4
tracewell_request_seconds_bucket{method="GET",route="/a",le="0.1"} 90
tracewell_request_seconds_bucket{method="GET",route="/a",le="1"} 96
tracewell_request_seconds_bucket{method="GET",route="/a",le="10"} 99
tracewell_request_seconds_bucket{method="GET",route="/a",le="+Inf"} 100
tracewell_request_seconds_sum{method="GET",route="/a"} 50
tracewell_request_seconds_count{method="GET",route="/a"} 100
tracewell_request_seconds_bucket{method="GET",route="/b",le="1"} 0
tracewell_request_seconds_bucket{method="GET",route="/b",le="+Inf"} 2
tracewell_request_seconds_sum{method="GET",route="/b"} 30
tracewell_request_seconds_count{method="GET",route="/b"} 2
tracewell_request_seconds_count{method="GET",route="/none"} 0
not a line
`;

test('samples have names, labels with their escapes, and values', () => {
	const all = parseMetrics(text);
	assert.equal(sumOf(all, 'tracewell_queue_traces'), 12);
	assert.equal(sumOf(all, 'tracewell_limits_hit_total'), 7);
	assert.equal(sumOf(all, 'tracewell_none'), null);
	assert.deepEqual(byLabel(all, 'tracewell_limits_hit_total', 'limit'), [['rate', 3], ['size', 4]]);
	assert.equal(all.find((s) => s.name === 'tracewell_node_info')?.labels.node, 'a "b"\n\\');
	assert.deepEqual(parseMetrics(''), []);
});

test('routes are ordered by their slow requests, with the limit of the bucket that has the 95th percentile', () => {
	assert.deepEqual(timedRoutes(parseMetrics(text), 1), [
		{ method: 'GET', route: '/a', count: 100, mean_s: 0.5, p95_s: 1, over: 4 },
		{ method: 'GET', route: '/b', count: 2, mean_s: 15, p95_s: Infinity, over: 2 },
	]);
});
