// Texts of the page: none is left out of the tables, and the tables hold none that nobody says.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';
import { languageOf, words } from '../src/i18n/language';

const HAN = /\p{Script=Han}/u;
const PLACE = /\{(\w+)\}/g;
/** What is called the same in every language: products, formats, names in code, marks. */
const SAME = new Set(['tracewell', 'SQL', 'NULL', 'ANR', 'ANRs', 'CPU', 'ABI', 'UTC', 'JSON', 'ms', 'GiB', 'Android', 'Perfetto', 'speedscope', 'Firefox Profiler', 'Markdown', 'GitHub', 'GitLab', 'Jira', 'Slack',
	'Microsoft Teams', 'curl', 'p50', 'p75', 'p95', 'Webhooks', 'Trace', 'Traces', 'traces', 'Id', 'R8', 'at']);

const SRC = new URL('../src/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, SRC), 'utf8');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((f) => /\.tsx?$/.test(f));
const parsed = files.map((name) => ({ name, ast: ts.createSourceFile(name, read(name), ts.ScriptTarget.ES2022, true, name.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS) }));
const tables = new Map(files.filter((f) => f.endsWith('.zh.ts') && !/\bserver/.test(f)).map((f) => [basename(f, '.zh.ts'), f])); // by part

function each(node: ts.Node, see: (n: ts.Node) => void): void {
	see(node);
	ts.forEachChild(node, (n) => each(n, see));
}

const literal = (n: ts.Node | undefined): n is ts.StringLiteralLike => n !== undefined && ts.isStringLiteralLike(n);

/** What the code says of each part, by its imports. */
function saidOf(): Map<string, Set<string>> {
	const said = new Map<string, Set<string>>([...tables.keys()].map((p) => [p, new Set<string>()]));
	for (const { name, ast } of parsed.filter((f) => basename(f.name) !== 'language.ts')) {
		const part = /import \{ tr \} from '\.[./\w]*\/strings\/(\w+)'/.exec(ast.text)?.[1];
		each(ast, (n) => {
			if (!ts.isCallExpression(n) || !/^tr(\.(rich|many))?$/.test(n.expression.getText())) return;
			const text = n.arguments[n.expression.getText() === 'tr.many' ? 2 : 0];
			assert.ok(part && literal(text), `${name}: ${n.getText().slice(0, 60)}: a text must be written where it is said`);
			said.get(part)!.add(text.text);
		});
	}
	return said;
}

/** The table of a part, read from its source. */
function tableOf(part: string): Map<string, string> {
	const table = new Map<string, string>();
	each(ts.createSourceFile(part, read(tables.get(part)!), ts.ScriptTarget.ES2022, true), (n) => {
		if (ts.isPropertyAssignment(n) && literal(n.name) && literal(n.initializer)) table.set(n.name.text, n.initializer.text);
	});
	return table;
}

const places = (text: string): string[] => [...text.matchAll(PLACE)].map((m) => m[1]);

test('the language is what was chosen, else what the browser asks for, else English', () => {
	assert.equal(languageOf(null, ['zh-CN', 'en']), 'zh-Hans');
	assert.equal(languageOf(null, ['zh']), 'zh-Hans');
	assert.equal(languageOf(null, ['zh-Hans-SG']), 'zh-Hans');
	assert.equal(languageOf(null, ['zh-TW', 'zh-Hant-HK']), 'en', 'another script');
	assert.equal(languageOf(null, ['de', 'zh-CN', 'en']), 'zh-Hans');
	assert.equal(languageOf(null, ['en-GB', 'zh-CN']), 'en');
	assert.equal(languageOf('zh-Hans', ['en']), 'zh-Hans');
	assert.equal(languageOf('en', ['zh-CN']), 'en');
	assert.equal(languageOf('tlh', []), 'en');
});

test('a text takes values, elements and numbers in its places', async () => {
	const tr = await words<{ '{n} of {of}': string; '{n} traces': string; plain: string }>(() => Promise.reject(new Error('English needs none')));
	assert.equal(tr('plain'), 'plain');
	assert.equal(tr('{n} of {of}', { n: 0, of: undefined }), '0 of ');
	assert.equal(tr('{n} of {of}', { n: '{of}', of: 2 }), '{of} of 2', 'a value is no text');
	assert.deepEqual(tr.rich('{n} of {of}', { n: 1, of: null }), [1, ' of ']);
	assert.equal(tr.many(1, '{n} trace', '{n} traces'), '1 trace');
	assert.equal(tr.many(1200, '{n} trace', '{n} traces'), '1,200 traces');
});

test('every text has its Chinese, and no Chinese is left without one', () => {
	const said = saidOf();
	for (const part of tables.keys()) {
		const table = tableOf(part);
		assert.deepEqual([...table.keys()].sort(), [...said.get(part)!].sort(), part);
		for (const [text, chinese] of table) {
			assert.deepEqual(places(chinese).filter((p) => !places(text).includes(p)), [], `${part}: ${text}`);
			const bare = (t: string) => t.replace(PLACE, '').replace(/ · tracewell$| ms\b/, '').trim();
			assert.ok(HAN.test(chinese) || !/[A-Za-z]{2}/.test(bare(chinese)) || SAME.has(bare(text)) || SAME.has(bare(chinese)), `${part}: "${text}" is not translated`);
		}
	}
});

const SHOWN = /^(title|aria-label|aria-description|aria-valuetext|placeholder|alt|label|what|again)$/;
const CODE = /^(code|pre|(Key)?Command|kbd|title)$/; // what is typed is no language's

const wordy = (text: string): boolean => /[A-Za-z]{2}/.test(text) && !SAME.has(text.trim()) && !/^[\w.-]*[.:/@_=][\w./:*-]*$/.test(text.trim());

/** Is a literal what an element shows, be it behind conditions? */
function isShown(n: ts.Node): boolean {
	const up = n.parent;
	if (ts.isConditionalExpression(up)) return up.condition !== n && isShown(up);
	if (ts.isParenthesizedExpression(up)) return isShown(up);
	if (ts.isBinaryExpression(up)) return (/^(\|\||\?\?)$/.test(up.operatorToken.getText()) || (up.operatorToken.getText() === '&&' && up.right === n)) && isShown(up);
	return ts.isJsxExpression(up) && (!ts.isJsxAttribute(up.parent) || SHOWN.test(up.parent.name.getText()));
}

function inCode(n: ts.Node): boolean {
	for (let up = n.parent; up; up = up.parent) if (ts.isJsxElement(up) && CODE.test(up.openingElement.tagName.getText())) return true;
	return false;
}

/** Texts that an element of a file shows and no table knows. */
function leftOf({ name, ast }: { name: string; ast: ts.SourceFile }): string[] {
	const left: string[] = [];
	each(ast, (n) => {
		const text = ts.isJsxText(n) ? n.text : ts.isStringLiteralLike(n) ? n.text : ts.isTemplateExpression(n) ? [n.head, ...n.templateSpans.map((s) => s.literal)].map((s) => s.text).join(' ') : '';
		if (!wordy(text) || inCode(n)) return;
		const shown = ts.isJsxText(n) || (ts.isJsxAttribute(n.parent) ? SHOWN.test(n.parent.name.getText()) : isShown(n));
		if (shown) left.push(`${name}: ${text.trim()}`);
	});
	return left;
}

test('the check finds what is left in a component', () => {
	const found = (code: string) => leftOf({ name: 'x', ast: ts.createSourceFile('x.tsx', code, ts.ScriptTarget.ES2022, true, ts.ScriptKind.TSX) });
	assert.equal(found('<p>Some text</p>').length, 1);
	assert.equal(found('<p title="Some text" class="not shown" />').length, 1);
	assert.equal(found('<p>{on ? "open" : ""}</p>').length, 1);
	assert.equal(found('<p aria-label={`Open ${n}`} />').length, 1);
	assert.deepEqual(found('<p class="a b">{tr("Some text")}<code>some code</code>{a === "this one" && b}</p>'), []);
});

test('no component shows a text that no table knows', () => {
	assert.deepEqual(parsed.flatMap(leftOf), []);
});
