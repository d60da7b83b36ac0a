/*
 * demo_repository.mjs - the git repository of the demo's app: three tagged versions, two teams in CODEOWNERS, and the
 * commits that made the newest version slower.
 *
 *   node tests/gen/demo_repository.mjs FOLDER     the folder must not exist
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const DAY_S = 24 * 3600;

/* class: its methods with their lines */
const FIRST = {
	'com.acme.shop.App': { onCreate: ['Graph.build(this)', 'HomeActivity.start(this)'] },
	'com.acme.shop.di.Graph': { build: ['Prefs.load(context)', 'NetworkModule.client()'] },
	'com.acme.shop.data.Prefs': { load: ['return context.getSharedPreferences("shop", 0).all'] },
	'com.acme.shop.home.HomeActivity': { onCreate: ['repo.load()', 'layoutInflater.inflate(R.layout.home, root)', 'ImageCache.open(cacheDir)'] },
	'com.acme.shop.data.Repo': { load: ['return JsonParser.parse(file.readText())'] },
	'com.acme.shop.data.JsonParser': { parse: ['val all = JSONArray(text)', 'return (0 until all.length()).map { Product.fromJson(all.getJSONObject(it)) }'] },
	'com.acme.shop.image.ImageCache': { open: ['disk = DiskCache(folder)'], get: ['return memory[key] ?: disk.read(key)'] },
	'com.acme.shop.feed.Feed': { onScroll: ['adapter.onBind(holder, position)'] },
	'com.acme.shop.feed.FeedAdapter': { onBind: ['holder.image = ImageCache.get(rows[position].image)', 'holder.price = Prices.format(rows[position].price)'] },
	'com.acme.shop.text.Prices': { format: ['return formats.get().format(price)'] },
	'com.shop.Cart': { total: ['synchronized(this) { return rows.sumOf { stock.take(it) } }'] },
	'com.shop.Stock': { take: ['synchronized(this) { return cart.total() }'] },
	'com.shop.Orders': { insert: ['synchronized(this) { db.insert("orders", encode(order)) }'], encode: ['return order.toString()'] },
};

const OWNERS = `* @acme/shop
/app/src/main/java/com/acme/shop/data/ @acme/data
/app/src/main/java/com/acme/shop/ads/ @acme/growth
/app/src/main/java/com/shop/ @acme/checkout
`;

/* version, days ago, who, subject, classes that change */
const COMMITS = [
	[undefined, 40, 'Mei Tanaka', 'Start the shop', FIRST],
	['8.2.0', 22, 'Mei Tanaka', 'Read images from the disk in one call', { 'com.acme.shop.image.DiskCache': { read: ['return File(folder, key).readBytes()'] } }],
	['8.3.0', 15, 'Ravi Patel', 'Format prices without a new formatter per row', { 'com.acme.shop.text.Prices': { format: ['return formats.getOrSet(::newFormat).format(price)'] } }],
	[undefined, 10, 'Jonas Weber', 'Validate every product against the schema', { 'com.acme.shop.data.JsonParser': {
		parse: ['val all = JSONArray(text)', 'for (i in 0 until all.length()) schema.validate(all.getJSONObject(i))', 'return (0 until all.length()).map { Product.fromJson(all.getJSONObject(it)) }'] } }],
	['8.4.0', 8, 'Ana Lima', 'Warm up the ads before the first screen', {
		'com.acme.shop.ads.Ads': { warmUp: ['bids = BidCache.load()', 'profile = Targeting.profile()'] },
		'com.acme.shop.home.HomeActivity': { onCreate: ['repo.load()', 'layoutInflater.inflate(R.layout.home, root)', 'Ads.warmUp()', 'ImageCache.open(cacheDir)'] } }],
];

function source(name, methods) {
	const at = name.lastIndexOf('.');
	const body = Object.entries(methods).map(([method, lines]) => `\tfun ${method}() {\n${lines.map((line) => `\t\t${line}\n`).join('')}\t}\n`);
	return `package ${name.slice(0, at)}\n\nclass ${name.slice(at + 1)} {\n${body.join('\n')}}\n`;
}

const folder = process.argv[2];
const now = Math.floor(Date.now() / 1000);
const write = (file, text) => {
	fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
	fs.writeFileSync(path.join(folder, file), text);
};

/* Without the settings of the user. */
function git(author, days, ...args) {
	const date = `${now - days * DAY_S} +0000`;
	execFileSync('git', ['-C', folder, '-c', 'commit.gpgsign=false', '-c', 'gc.auto=0', ...args], { stdio: ['ignore', 'ignore', 'inherit'],
		env: { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: '1', GIT_AUTHOR_NAME: author, GIT_AUTHOR_EMAIL: 'shop@example.com', GIT_COMMITTER_NAME: author, GIT_COMMITTER_EMAIL: 'shop@example.com',
			GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date } });
}

fs.mkdirSync(folder, { recursive: true });
git('', 0, 'init', '-q', '-b', 'main');
write('CODEOWNERS', OWNERS);
for (const [version, days, who, subject, classes] of COMMITS) {
	for (const [name, methods] of Object.entries(classes)) write(`app/src/main/java/${name.replaceAll('.', '/')}.kt`, source(name, methods));
	git(who, days, 'add', '-A');
	git(who, days, 'commit', '-q', '-m', subject);
	if (version) git(who, days, 'tag', `v${version}`);
}
