/*
 * axe.mjs - what axe-core finds against a page that is open.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';

const source = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/* Violations as lines: the rule, its help text, the element. With `rules`, only of these rules. */
export async function violations(page, rules) {
	if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source);
	return page.evaluate(async (values) => {
		const found = await globalThis.axe.run(document, { resultTypes: ['violations'], ...(values && { runOnly: { type: 'rule', values } }) });
		return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${v.help}: ${n.target.join(' ')}`));
	}, rules);
}
