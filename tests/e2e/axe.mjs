/*
 * axe.mjs - what axe-core finds against a page that is open.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';

const source = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/* Violations as lines: the rule, what it says, where. */
export async function violations(page) {
	await page.evaluate(source);
	return page.evaluate(async () => {
		const found = await globalThis.axe.run(document, { resultTypes: ['violations'] });
		return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${v.help}: ${n.target.join(' ')}`));
	});
}
