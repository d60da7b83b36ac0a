/*
 * repository.mjs - a git repository as an Android app has one, made by `git` in a folder of the test:
 * two versions, a method that changed twice, a file that moved, a merge, owners.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/* Only with its own configuration, at a fixed time that advances by an hour per commit. */
export class Repository {
	constructor(folder) {
		this.folder = folder;
		this.hour = 0;
		fs.mkdirSync(folder, { recursive: true });
		this.git('init', '-q', '-b', 'main');
	}

	git(...args) {
		const at = `2026-01-01T${String(Math.floor(this.hour / 60) % 24).padStart(2, '0')}:${String(this.hour % 60).padStart(2, '0')}:00Z`;
		return execFileSync('git', ['-c', 'commit.gpgsign=false', '-c', 'core.fsync=none', '-c', 'gc.auto=0', ...args], { cwd: this.folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'],
			env: { PATH: process.env.PATH, HOME: this.folder, GIT_CONFIG_NOSYSTEM: '1', GIT_AUTHOR_NAME: this.who ?? 'Ann', GIT_AUTHOR_EMAIL: 'ann@example.com', GIT_COMMITTER_NAME: 'CI', GIT_COMMITTER_EMAIL: 'ci@example.com',
				GIT_AUTHOR_DATE: at, GIT_COMMITTER_DATE: at } }).trim();
	}

	write(file, text) {
		const at = path.join(this.folder, file);
		fs.mkdirSync(path.dirname(at), { recursive: true });
		fs.writeFileSync(at, text);
	}

	/* Commits all files; returns the commit's id. */
	commit(summary, who) {
		this.hour++;
		this.who = who;
		this.git('add', '-A');
		this.git('commit', '-q', '--allow-empty', '-m', summary);
		return this.git('rev-parse', 'HEAD');
	}
}

const feed = (load, more = '') => `package com.example.feed

import android.util.Log

/** Rows of the feed. */
class FeedAdapter(private val rows: List<Row>) {
	@Synchronized
	fun load(page: Int): Int {
${load.map((l) => `\t\t${l}`).join('\n')}
	}

	fun size() = rows.size
${more}
	companion object {
		fun create() = FeedAdapter(emptyList())
	}
}

fun topLevel(name: String) {
	Log.d("feed", "\${name.map { it + 1 }}")
}
`;

const OLD = 'app/src/main/java/com/example/feed/FeedAdapter.kt';
const NEW = 'app/src/main/kotlin/com/example/feed/FeedAdapter.kt';

export function shopRepository(folder) {
	const r = new Repository(folder);
	const ids = {};
	r.write('.github/CODEOWNERS', '* @org/everyone\n*.kt @org/kotlin\n/app/src/main/kotlin/com/example/feed/ @org/feed ann@example.com\n/app/src/main/java/com/example/feed/ @org/feed-old\n');
	r.write('app/src/main/java/com/example/Main.java', 'package com.example;\n\npublic class Main {\n\tint plain() {\n\t\treturn 1;\n\t}\n\n\tint plain(int n) {\n\t\treturn n;\n\t}\n}\n');
	r.write(OLD, feed(['return page']));
	ids.first = r.commit('Begin');
	r.git('tag', 'v1.0');
	r.write('README', 'nothing of it');
	r.commit('Tell of it');
	r.write(OLD, feed(['val slow = rows.map { it.copy() }', 'return page + slow.size']));
	ids.slow = r.commit('Copy rows before use <b>now</b>', 'Bob');
	r.write(OLD, feed(['val slow = rows.map { it.copy() }', 'return page + slow.size'], '\n\tfun more() = 2\n'));
	ids.beside = r.commit('Another method');
	fs.mkdirSync(path.join(folder, path.dirname(NEW)), { recursive: true });
	r.git('mv', OLD, NEW);
	ids.moved = r.commit('Move Kotlin where it belongs');
	r.git('checkout', '-q', '-b', 'side', 'HEAD~1');
	r.write('docs/x.md', 'x');
	r.commit('Beside');
	r.git('checkout', '-q', 'main');
	r.hour++;
	r.git('merge', '-q', '--no-ff', '-m', 'Merge side', 'side');
	r.write(NEW, feed(['val slow = rows.map { it.copy() }', 'Log.d("feed", "loaded")', 'return page + slow.size'], '\n\tfun more() = 2\n'));
	ids.logged = r.commit('Log each load', 'Cleo');
	r.git('tag', '-a', '-m', 'two', 'v1.1');
	return { r, ids };
}
