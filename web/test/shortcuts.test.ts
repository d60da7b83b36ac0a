import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Scene } from '../src/trace/timeline/scene';
import { SHORTCUTS } from '../src/app/shortcuts';
import { keysOn } from '../src/trace/timeline/timelineinput';

/** Every key that a keyboard has for a page, plain and with Shift. */
const ALL = [...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)), 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'PageUp',
	'PageDown', 'Enter', 'Escape', 'Backspace', 'Delete', 'Insert', 'Tab', ...Array.from({ length: 12 }, (_, i) => `F${i + 1}`)];

/** What the timeline answers: the canvas does nothing else with a key. */
function answered(key: string, shiftKey: boolean): string {
	const done: string[] = [];
	const note = (what: string) => (...a: unknown[]) => done.push(`${what}(${JSON.stringify(a)})`);
	const scene = { view: { from: 1000, to: 2000 }, top: 50, height: 100, move: note('move'), scroll: note('scroll') } as unknown as Scene;
	const act = new Proxy({}, { get: (_, name) => note(String(name)) });
	keysOn(scene, act as Parameters<typeof keysOn>[1])({ key, shiftKey, ctrlKey: false, metaKey: false, altKey: false, preventDefault: () => {} } as KeyboardEvent);
	return done.join();
}

const NAMES: Record<string, string> = { '↑': 'ArrowUp', '↓': 'ArrowDown', '←': 'ArrowLeft', '→': 'ArrowRight', 'Page ↑': 'PageUp', 'Page ↓': 'PageDown', Esc: 'Escape', '−': '-', Enter: 'Enter', F10: 'F10' };

/** The key events of a line of the list; gestures are none, and + is also typed without Shift. */
const keysOf = (shown: string): string[] => shown.split(/ \/ |, /).flatMap((piece) => {
	const [, shift = '', key] = /^(Shift\+)?(.+)$/.exec(piece)!;
	const name = NAMES[key] ?? (key.length === 1 ? key : '');
	return name ? [shift.replace('+', ' ') + name, ...(name === '+' ? ['='] : [])] : [];
});

test('the list of keys is what the timeline answers to, no more and no less', () => {
	const listed = SHORTCUTS.filter((s) => s.canvas === 'timeline').flatMap((s) => s.keys.flatMap(([shown]) => keysOf(shown)));
	assert.equal(new Set(listed).size, listed.length, 'no key twice');
	const plain = ALL.filter((k) => answered(k, false));
	assert.deepEqual(plain.sort(), listed.filter((k) => !k.startsWith('Shift ')).sort());
	const shifted = ALL.filter((k) => answered(k, true) !== answered(k, false)).map((k) => `Shift ${k}`);
	assert.deepEqual(shifted.sort(), listed.filter((k) => k.startsWith('Shift ')).sort());
});

test('each line of the list says one thing of its own', () => {
	for (const { title, keys } of SHORTCUTS) {
		assert.equal(new Set(keys.map(([shown]) => shown)).size, keys.length, title);
		assert.ok(keys.every(([shown, does]) => does && shown), title);
	}
});
