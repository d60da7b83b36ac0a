/*
 * axe.mjs - violations of axe-core's rules on an open page.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';

import { unreadable } from './browser.mjs';
import { inFull } from './server.mjs';

const source = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/*
 * Violations as lines: the rule, its help text, the element. With `rules`, only of these rules.
 *
 * Without `rules`, the default run checks contrast with unreadable(), which takes a tenth of axe's time, and runs axe in
 * the light theme only: the themes differ only in colours. A full run applies all rules in both themes.
 */
export async function violations(page, rules) {
	const quick = inFull(false, !rules);
	const contrast = quick ? (await unreadable(page)).filter((line) => line.startsWith('contrast')) : [];
	if (quick && (await page.evaluate(() => document.documentElement.dataset.theme)) === 'dark') return contrast;
	if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source);
	const options = {
		resultTypes: ['violations'], ...(rules && { runOnly: { type: 'rule', values: rules } }),
		rules: { 'label-content-name-mismatch': { enabled: true }, ...(quick && { 'color-contrast': { enabled: false } }) }, // the first is experimental
	};
	const found = await page.evaluate(async (o) => {
		const { violations: broken } = await globalThis.axe.run(document, o);
		return broken.flatMap((v) => v.nodes.map((n) => `${v.id}: ${v.help}: ${n.target.join(' ')}`));
	}, options);
	return [...contrast, ...found];
}
