// The server's sentences in Chinese: each has its own, the table holds none that the server does not
// say, and what it makes of a sentence with values, or of one that it does not know.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pieces, sentences, translate } from '../src/i18n/servermessages';
import { messageTranslator } from '../src/i18n/messagematch';
import { callsOf, everything, sample, SOURCES, textsOf, type Source } from './csource';

const HAN = /\p{Script=Han}/u;

/** Whose words are for the command line, for the log, or for whoever starts a server. */
const NOT_THE_PAGE = new RegExp('^server/(?:\\w+/)*(' + [
	'cli\\w*|doctor\\w*|local_trace|push_client|proxy|gate|mcp|data_\\w+|check|crew', // commands
	'backup\\w*|migrate\\w*|project_\\w+|rebuild|catalogue_(migrate\\w*|move|check|cursor|upgrade|record)|quota_file', // commands on a folder
	'config|role|tls|oidc|storage_\\w+|catalogue_(shared|postgres\\w*|sqlite)|pool|jail|http_listen', // a server's start
	'jwt\\w*|oidc_\\w+|s3\\w*|store_\\w+|spool|secret|trace_(file|sql)\\w*|blob_store|preflight|io|periodic|lost|trace_record', // the log, or a word of its own
	'catalogue_(search_index|rollup_add|rollup_tree|job)|rollup_tree_add|rollup_trace|jobs_(store|hook|sweep|digest)|hook_send|ticket|blob|hook_body',
].join('|') + ')\\.');
const DECODES = /^server\/decode\/(child|worker|compile_mapping|jobs_map)\.c$|^decoder/;
const HIDDEN = /^TW_(IO|BUG)$/; // the answer tells of the log instead; of a decode they are told

/** What a value is, by a table of members: after `.form =`, or as the last text of a macro of such a line. */
const forms = (s: Source): string[] => [
	...s.tokens.flatMap((t, i) => (t === 'form' && s.tokens[i - 1] === '.' ? textsOf(s.tokens.slice(i + 2, s.tokens.findIndex((o, k) => k > i && /^[,}]$/.test(o))), s) : [])),
	...callsOf(s, /^(TEXT|LIST)$/).flatMap(({ args }) => (args[2] ? textsOf(args[2], s) : [])),
];
const wordy = (text: string) => /[A-Za-z]{2,} [a-z]{2,}/.test(text);
const at = (name: string): Source => SOURCES.find((s) => s.name.endsWith(`/${name}`))!;

function refusals(s: Source): string[] {
	const of = (name: RegExp, format: number, behind = '') => callsOf(s, name).flatMap(({ args }) => {
		const code = args[1]?.join('') ?? '';
		return (HIDDEN.test(code) && !DECODES.test(s.name)) || args.length <= format ? [] : textsOf(args[format], s).map((text) => text + behind);
	});
	return [...of(/^tw_fail$/, 2), ...of(/^tw_fail_at$/, 3), ...of(/^tw_fail_errno$/, 2, ': %s')];
}

const ofCalls = (file: string, names: RegExp): string[] => callsOf(at(file), names).flatMap(({ args }) => args.flatMap((a) => textsOf(a, at(file))));
const ofDefs = (file: string, name: RegExp, ...places: number[]): string[] => callsOf(at(file), name).flatMap(({ args }) => places.flatMap((i) => textsOf(args[i], at(file))));
const WITHIN = { anr_rules: 'rule 1: ', capture: 'capture rule r: ', source_rules: 'repository r: ', detect_read: 'rule 1 (id): ' }; // what stands before a refusal of theirs
const PRINTS = /^(tw_arena_printf|snprintf)$/;

/** Everything of the server that a page shows and that is a sentence, and by which its values stand. */
function shown(): string[] {
	const page = SOURCES.filter((s) => /\.[ch]$/.test(s.name) && !NOT_THE_PAGE.test(s.name));
	return [...new Set([
		...page.flatMap(refusals).filter((f) => wordy(sample(f)) && !/^(each of )?%s must be %s$/.test(f)), // with each of the forms below
		...page.flatMap(forms).filter(wordy).map((form) => `member must be ${form}`),
		...Object.entries(WITHIN).flatMap(([f, before]) => [...forms(at(`${f}.c`)).map((form) => `member must be ${form}`), ...refusals(at(`${f}.c`))].filter((t) => wordy(sample(t)) && !/^(rules|repositories|rule %zu|capture rule|repository) /.test(t)).map((what) => before + what)),
		...ofCalls('source_link.c', /^refuse$/).filter(wordy).map((why) => `repository r: link ${why}`),
		...ofCalls('api_source.c', /^say_why$/).filter(wordy),
		...ofCalls('anr_cause.c', PRINTS).filter((f) => wordy(sample(f)) && !/^%s%s|^Lock%s%s|^an unnamed lock/.test(f)), // lists, and what has two forms, which stand below
		...ofDefs('repairs.def', /^REPAIR$/, 2),
		...ofDefs('detect_rules.def', /^DETECTOR$/, 3, 6),
		...ofDefs('start_phases.def', /^PHASE$/, 1).filter((t) => / /.test(t)),
	])];
}

test('the sources are read: formats over several lines, macros in them, both sides of a condition', () => {
	const all = shown();
	assert.ok(all.length > 400, `${all.length}`);
	for (const f of ['no such trace', '%s must be a number from %ld to %ld', 'kind', 'the sums of ANRs and locks are damaged', 'JSON on the main thread',
		'rollups by label are not stored by class or os: omit one of them'])
		assert.ok(f === 'kind' || all.includes(f) || all.some((a) => a.startsWith(f.slice(0, 20))), f);
});

test('every sentence of the server has its Chinese', () => {
	const left = shown().filter((f) => {
		const chinese = translate(sample(f));
		return !HAN.test(chinese) || /(^|[^`])\b[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}/.test(chinese);
	});
	assert.deepEqual(left, [], 'messages of the server that src/i18n/zh/server.zh.ts and servertrace.zh.ts lack');
});

/** Is an entry what makes one of those that are put together? */
function puts(key: string): boolean {
	const without = (table: Record<string, string>) => Object.fromEntries(Object.entries(table).filter(([k]) => k !== key));
	const rest = messageTranslator(without(sentences), without(pieces));
	return PUT_TOGETHER.some(([english, chinese]) => rest(english) !== chinese);
}

test('the table holds nothing that the server does not say', () => {
	const all = everything();
	const left = [...Object.keys(sentences), ...Object.keys(pieces)].filter((key) => {
		const literals = key.split(/\{\d+[!?#]?\}/).map((l) => l.trim().replace(/^[:;,)(]\s*|\s*[(:]$/g, '')).filter((l) => /[A-Za-z]{2}/.test(l));
		return !literals.every((l) => all.includes(l)) && !puts(key);
	});
	assert.deepEqual(left, []);
});

test('a sentence says the values of its English, each once or not at all', () => {
	for (const [english, chinese] of [...Object.entries(sentences), ...Object.entries(pieces)]) {
		const holes = (t: string) => [...t.matchAll(/\{(\d+)[!?#]?\}/g)].map((m) => +m[1]);
		assert.deepEqual(holes(english), holes(english).map((_, i) => i + 1), english);
		for (const n of holes(chinese)) assert.ok(holes(english).includes(n), `${english}: {${n}}`);
		assert.ok(HAN.test(chinese) || !/[A-Za-z]{3}/.test(chinese.replace(/\{\d+[!?#]?\}|\/\w+\/|JSON|true|false|info|warning|error/g, '')) || chinese.length < 40, english);
	}
});

/* What is put together of several: each way in which the server does. */
const PUT_TOGETHER: [string, string][] = [
	['main waits 5 s for a lock of Cart held by DB-writer, which runs Db.execute for OrderDao.insert', '主线程等待 5 s：Cart 的锁由 DB-writer 持有，后者正在执行 Db.execute（由 OrderDao.insert 调用）'],
	['main waits for the class lock of Cart held by thread 12, which sleeps in A.b', '主线程等待：Cart 的类锁由线程 12 持有，后者在 A.b 中休眠'],
	['main waits 5 s for a lock of Cart held by thread 12, which the dump does not have', '主线程等待 5 s：Cart 的锁由线程 12 持有，而转储中没有该线程'],
	['main waits for a lock held by a, which waits for a lock of B held by c, which waits in D.e', '主线程等待：某个锁由 a 持有，后者在等待 B 的锁（由 c 持有），后者在 D.e 中等待'],
	['main waits for a lock held by a, which waits for a lock of B; 3 threads further on, c runs D.e', '主线程等待：某个锁由 a 持有，后者在等待 B 的锁；再经过 3 个线程，c 正在执行 D.e'],
	['main did not respond for 5 s: it sleeps in Cart.total', '主线程 5 s 未响应：在 Cart.total 中休眠'],
	['main waits for a lock whose holder is not seen, in A.b', '主线程在 A.b 中等待锁，看不到持有者'],
	['main runs Main.go', '主线程正在执行 Main.go'],
	['deadlock: main waits 5 s for a lock of A held by w, which waits for a lock of B held by main', '死锁：主线程等待 5 s A 的锁（由 w 持有），w 又在等待 B 的锁（由主线程持有）'],
	['possible deadlock: main waits for a lock of A held by w; w waits for a lock of B held by x, which waits for a lock of C held by y, in a ring of 3 threads',
		'可能的死锁：主线程等待 A 的锁（由 w 持有）；w 等待 B 的锁（由 x 持有），x 又在等待 C 的锁（由 y 持有），共 3 个线程成环'],
	['main runs A.b; also a deadlock: u waits for a lock of R held by v, which waits for a lock of L held by u, and 2 more', '主线程正在执行 A.b；另有死锁：u 等待 R 的锁（由 v 持有），v 又在等待 L 的锁（由 u 持有），还有 2 个'],
	['possible deadlock: main waits for a lock of A held by w, which waits for a lock of B held by main', '可能的死锁：主线程等待 A 的锁（由 w 持有），w 又在等待 B 的锁（由主线程持有）'],
	['deadlock: main waits for a lock of A held by w; w waits for a lock of B held by x, which waits for a lock of C held by w', '死锁：主线程等待 A 的锁（由 w 持有）；w 等待 B 的锁（由 x 持有），x 又在等待 C 的锁（由 w 持有）'],
	['main runs A.b; also a deadlock: u waits for a lock of R held by v, which waits for a lock of L held by u', '主线程正在执行 A.b；另有死锁：u 等待 R 的锁（由 v 持有），v 又在等待 L 的锁（由 u 持有）'],
	['main runs A.b; also a possible deadlock: u waits for a lock of R held by v, which waits for a lock of L held by u', '主线程正在执行 A.b；另有可能的死锁：u 等待 R 的锁（由 v 持有），v 又在等待 L 的锁（由 u 持有）'],
	['main runs A.b; also a possible deadlock: u waits for a lock of R held by v, which waits for a lock of L held by u, and 1 more', '主线程正在执行 A.b；另有可能的死锁：u 等待 R 的锁（由 v 持有），v 又在等待 L 的锁（由 u 持有），还有 1 个'],
	['main waits 5 s for a lock of C held by W, which runs X.y for Z.w; also a deadlock: s waits for a lock of R held by c, which waits for a lock of L held by s',
		'主线程等待 5 s：C 的锁由 W 持有，后者正在执行 X.y（由 Z.w 调用）；另有死锁：s 等待 R 的锁（由 c 持有），c 又在等待 L 的锁（由 s 持有）'],
	['main was in A.b in 5 of 8 samples over 2.1 s', '2.1 s 内的 8 次采样中，主线程有 5 次停在 A.b'],
	['the clone has no tag, branch or commit v1 (or any other form of the name): fetch it, or set how versions are named', '克隆中没有标签、分支或提交 v1，也没有其他可能的名称：请拉取它，或设置版本的命名方式'],
	['Deadlock of A and B', 'A 和 B 的死锁'],
	['Lock of Db, held in Feed.load', 'Db 的锁，持有于 Feed.load'],
	['Lock, held in unknown code', '锁，持有于未知代码'],
	['JSON on the main thread: 25 ms in Gson.fromJson, called by Feed.load.', '主线程上的 JSON 处理：Gson.fromJson 耗时 25 ms，调用方为 Feed.load。'],
	['Our own title: 1.25 s in a wait.', 'Our own title：一次等待耗时 1.25 s。'],
	['25 ms in A.b, of that 20 ms in C.d.', 'A.b 耗时 25 ms，其中 C.d 占 20 ms。'],
	['p95 of cold_start is 12 % slower (1.2 s → 1.34 s, 95 % confidence interval +5.0 % to +19 %), most of it in a.b.C.', 'cold_start 的 p95 变慢 12%（1.2 s → 1.34 s，95% 置信区间：+5.0% 至 +19%），大部分来自 a.b.C。'],
	['median of cold_start is 4.0 % faster (1 s → 960 ms, 95 % confidence interval about -4.0 %); no single method changes significantly.', 'cold_start 的中位数变快 4.0%（1 s → 960 ms，95% 置信区间：约 -4.0%）；没有单个方法发生显著变化。'],
	['this key has reached its limit of 100 requests a minute; retry in 9 s', '这个密钥每分钟最多 100 个请求，已用完；请在 9 秒后再来'],
	['rule 2 (json): threshold_ms must be a number of milliseconds from 0 to 600000', '规则 2（json）：threshold_ms 必须是 0 到 600000 的毫秒数'],
	['rule 1: each of groups must be a group\'s key of 16 digits, 0-9 and a-f', '规则 1：groups 的每一项必须是分组编号：16 位 0-9、a-f'],
	['rule 1: action must be skip, merge or name, not blame', '规则 1：action 必须是 skip, merge or name，不能是 blame'],
];

test('what the server puts together is translated completely', () => {
	for (const [english, chinese] of PUT_TOGETHER) assert.equal(translate(english), chinese);
});

test('verdicts of the reports that are kept for tests have no English left', () => {
	const verdicts = [...readFileSync(new URL('../../tests/golden/anr/realistic/expected', import.meta.url), 'utf8').matchAll(/"verdict":("(?:[^"\\]|\\.)*")/g)].map((m) => JSON.parse(m[1]) as string);
	assert.ok(verdicts.length > 1);
	for (const v of verdicts) assert.doesNotMatch(translate(v), /\b(main|waits|held|which|runs|beside)\b/, v);
});

test('values are what they were, messages in messages are translated, other texts stay unchanged', () => {
	assert.equal(translate('no such trace'), '没有这个 Trace');
	assert.equal(translate('decoding used more CPU time than it may and was stopped (signal 9)'), '解码占用的 CPU 时间超过上限，已中止（信号 9）');
	assert.equal(translate('this trace could not be decoded: no readable record'), '这个 Trace 无法解码：没有可读的记录');
	assert.equal(translate('JSON on the main thread'), '主线程上的 JSON 处理');
	assert.equal(translate('JSON on the main thread of ours'), 'JSON on the main thread of ours', 'a title of a project');
	assert.equal(translate('Look: what is in it.'), 'Look: what is in it.', 'no duration, no finding');
	assert.equal(translate('Sleep in Feed.load'), '休眠：Feed.load');
	assert.equal(translate('to be or not to be'), 'to be or not to be');
	assert.equal(translate(''), '');
	assert.equal(translate('No such trace.'), '没有这个 Trace。');
});

test('a long text of a stranger costs one walk', () => {
	const begun = process.cpuUsage();
	translate('main waits for '.repeat(20000) + 'x');
	translate('a'.repeat(500_000));
	assert.ok(process.cpuUsage(begun).user < 2e6, 'µs of processor time: some 50,000');
});
