/*
 * documents.mjs - the documents of the checkout, taken apart: links, anchors, blocks of shell.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { root } from './server.mjs';

export const documents = () => execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
	.filter((name) => fs.existsSync(path.join(root, name)));

export const textOf = (name) => fs.readFileSync(path.join(root, name), 'utf8');

/* Fenced blocks: { language, text, line, before (the line above) }. */
export function blocksOf(text) {
	const all = text.split('\n');
	const blocks = [];
	for (let i = 0; i < all.length; i++) {
		const open = /^ {0,3}```(\w*)\s*$/.exec(all[i]);
		if (!open) continue;
		const from = i + 1;
		for (i = from; i < all.length && !/^ {0,3}```\s*$/.test(all[i]); i++);
		blocks.push({ language: open[1], line: from, text: all.slice(from, i).join('\n') });
	}
	return blocks;
}

/* Code contains no links. */
const prose = (text) => text.replace(/^ {0,3}```[^]*?^ {0,3}```\s*$/gm, '').replace(/`[^`\n]*`/g, '');

export function linksOf(text) {
	const plain = prose(text);
	return [...plain.matchAll(/\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\))?)\)/g)].map((m) => m[1]).concat([...plain.matchAll(/^\[[^\]]+\]: (\S+)/gm)].map((m) => m[1]));
}

/* As forges make them of headings. */
export function anchorsOf(text) {
	const seen = new Map();
	const bare = text.replace(/^ {0,3}```[^]*?^ {0,3}```\s*$/gm, '');
	return new Set([...bare.matchAll(/^#{1,6} +(.+?) *#*$/gm)].map(([, heading]) => {
		const slug = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase().replace(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-');
		const n = seen.get(slug) ?? 0;
		seen.set(slug, n + 1);
		return n ? `${slug}-${n}` : slug;
	}));
}

const whole = (command) => spawnSync('bash', ['-n'], { input: command }).stderr.length === 0;

/* The commands of a block, each with the lines that belong to it; comments are left out. */
export function commandsOf(text) {
	const commands = [];
	let open = '';
	for (const line of text.split('\n')) {
		if (!open && /^\s*(#|$)/.test(line)) continue;
		open += (open ? '\n' : '') + line;
		if (line.endsWith('\\') || !whole(open)) continue;
		commands.push(open);
		open = '';
	}
	if (open) commands.push(open);
	return commands;
}
