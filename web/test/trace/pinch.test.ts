import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pinchOn } from '../../src/trace/graph/pinch';

const finger = (pointerId: number, offsetX: number, offsetY = 10, pointerType = 'touch') => ({ pointerId, offsetX, offsetY, pointerType }) as PointerEvent;

function graph() {
	const did: string[] = [];
	return { did, pinch: pinchOn(({ x, y }) => did.push(`into ${x},${y}`), () => did.push('up')) };
}

test('fingers that spread go into what is between them, once', () => {
	const { did, pinch } = graph();
	pinch.onPointerDown(finger(1, 100));
	pinch.onPointerDown(finger(2, 160, 30));
	pinch.onPointerMove(finger(2, 165, 30));
	assert.deepEqual(did, [], 'they tremble');
	pinch.onPointerMove(finger(2, 260, 30));
	pinch.onPointerMove(finger(2, 300, 30));
	assert.deepEqual(did, ['into 130,20']);
	assert.ok(pinch.wasPinch());
	pinch.onPointerEnd(finger(1, 100));
	pinch.onPointerEnd(finger(2, 300));
	assert.ok(pinch.wasPinch(), 'the click that follows is no tap');
});

test('fingers that come together go up, and the next tap is one', () => {
	const { did, pinch } = graph();
	pinch.onPointerDown(finger(1, 100));
	pinch.onPointerDown(finger(2, 200));
	pinch.onPointerMove(finger(1, 150));
	assert.deepEqual(did, ['up']);
	pinch.onPointerEnd(finger(1, 150));
	pinch.onPointerEnd(finger(2, 200));
	pinch.onPointerDown(finger(3, 100));
	pinch.onPointerMove(finger(3, 190));
	pinch.onPointerEnd(finger(3, 190));
	assert.ok(!pinch.wasPinch());
	assert.deepEqual(did, ['up'], 'one finger does nothing');
});

test('a mouse pinches nothing, nor does it end a pinch of before', () => {
	const { did, pinch } = graph();
	pinch.onPointerDown(finger(1, 100));
	pinch.onPointerDown(finger(2, 200));
	pinch.onPointerEnd(finger(1, 100));
	pinch.onPointerEnd(finger(2, 200));
	pinch.onPointerDown(finger(9, 50, 10, 'mouse'));
	assert.ok(!pinch.wasPinch());
	assert.deepEqual(did, []);
});
