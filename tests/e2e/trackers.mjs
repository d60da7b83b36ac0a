/*
 * trackers.mjs - a server with the documented issue APIs of GitHub, GitLab, Jira (Cloud) and Gitea: paths, forms of
 * authentication, JSON members and status codes.  It refuses requests that those would refuse.
 */
import http from 'node:http';

import { atEnd } from './server.mjs';

const TOKEN = 'secret-token-1';
const ACCEPTED = {
	github: (h) => h.authorization === `Bearer ${TOKEN}` && h.accept === 'application/vnd.github+json' && /^\d{4}-\d\d-\d\d$/.test(h['x-github-api-version']) && h['user-agent'],
	gitlab: (h) => h['private-token'] === TOKEN,
	jira: (h) => h.authorization === `Basic ${Buffer.from(`bot@example.com:${TOKEN}`).toString('base64')}`,
	gitea: (h) => h.authorization === `token ${TOKEN}`,
};

export const SETTINGS = {
	github: { for: 'github', repository: 'acme/shop', assignees: { 'ann@example.com': 'bob-gh' } },
	gitlab: { for: 'gitlab', repository: 'acme/mobile/shop', assignees: { Bob: 'bob-gl' } },
	jira: { for: 'jira', repository: 'SHOP', user: 'bot@example.com', issue_type: 'Task', assignees: { '@feed-team': '5b10a2844c20165700ede21g' } },
	gitea: { for: 'gitea', repository: 'acme/shop', assignees: { Bob: 'bob-gt' } },
};

class Trackers {
	constructor(kind) {
		this.kind = kind;
		this.issues = [];
		this.got = []; // requests, in their order
		this.fail = []; // responses of the next requests: [status, headers, body], or null for the usual one
		this.moved = false;
		this.users = new Set(['bob-gh', 'bob-gl', 'bob-gt', '5b10a2844c20165700ede21g']);
		this.http = http.createServer((req, res) => {
			const pieces = [];
			req.on('data', (p) => pieces.push(p)).on('end', () => this.take(req, res, Buffer.concat(pieces).toString('utf8')));
		});
	}

	take(req, res, text) {
		const url = new URL(req.url, 'http://x');
		const body = text ? JSON.parse(text) : null;
		this.got.push({ method: req.method, path: url.pathname, query: url.searchParams, headers: req.headers, body, at: Date.now() });
		const [status, headers, answer] = this.fail.shift() ?? this.answer(req, url, body);
		res.writeHead(status, { 'Content-Type': 'application/json', ...headers });
		res.end(answer === undefined ? '' : JSON.stringify(answer));
	}

	answer(req, url, body) {
		if (!ACCEPTED[this.kind](req.headers)) return [401, {}, this.kind === 'jira' ? { errorMessages: ['You are not authenticated.'] } : { message: 'Bad credentials' }];
		if (body && req.headers['content-type'] !== 'application/json') return [415, {}, { message: 'JSON only' }];
		const [status, answer, headers] = this[this.kind](req.method, decodeURI(url.pathname).replace(/%2F/g, '%2F'), url.searchParams, body, req.url);
		return [status, headers ?? {}, answer];
	}

	one(n) {
		return this.issues.find((i) => String(i.number) === String(n) || i.key === n);
	}

	shown(i) {
		switch (this.kind) {
			case 'gitlab': return { id: 1000 + i.number, iid: i.number, title: i.title, description: i.body, state: i.state === 'open' ? 'opened' : 'closed', web_url: `https://gitlab.example.com/acme/mobile/shop/-/issues/${i.number}` };
			case 'jira': return { id: String(10000 + i.number), key: i.key, fields: { labels: i.labels, status: { name: i.state, statusCategory: { key: i.state === 'open' ? 'new' : 'done' } } } };
			default: return { id: 1000 + i.number, number: i.number, title: i.title, body: i.body, state: i.state, html_url: `https://${this.kind}.example.com/acme/shop/issues/${i.number}` };
		}
	}

	add(title, body, labels, assignee) {
		const number = this.issues.length + 1;
		const made = { number, key: `SHOP-${number}`, title, body, labels, assignee, state: 'open', comments: [] };
		this.issues.push(made);
		return made;
	}

	/** GitHub's and Gitea's, which differ in labels and lists. */
	github(method, path, query, body) {
		const gitea = this.kind === 'gitea';
		if (this.moved && path.startsWith('/api/repos/acme/shop/')) return [method === 'GET' ? 301 : 307, { message: 'Moved Permanently' }, { Location: `${this.url.replace('/api', '')}${path.replace('/repos/acme/shop/', '/repositories/4711/')}${query.size ? `?${query}` : ''}` }];
		const at = /^\/api\/(?:repos\/acme\/shop|repositories\/4711)\/(issues|labels)(?:\/(\d+))?(\/comments)?$/.exec(path);
		if (!at) return [404, { message: 'Not Found' }];
		if (at[1] === 'labels') return gitea ? [200, [{ id: 7, name: 'performance' }, { id: 8, name: 'other' }]] : [404, { message: 'Not Found' }];
		if (!at[2] && method === 'GET') {
			if (query.get('state') !== 'all') return [422, { message: 'state' }];
			const since = query.get('since');
			if (since && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(since)) return [422, { message: 'since' }];
			return [200, this.issues.map((i) => this.shown(i)).reverse()];
		}
		if (!at[2] && method === 'POST') {
			if (typeof body.title !== 'string' || !Array.isArray(body.labels)) return [422, { message: 'Validation Failed' }];
			if (body.labels.some((l) => typeof l !== (gitea ? 'number' : 'string'))) return [422, { message: 'labels' }];
			if (body.assignees?.some((a) => !this.users.has(a))) return [422, { message: 'Validation Failed', errors: [{ field: 'assignees' }] }];
			return [201, this.shown(this.add(body.title, body.body, body.labels, body.assignees?.[0]))];
		}
		const issue = this.one(at[2]);
		if (!issue) return [404, { message: 'Not Found' }];
		if (at[3] && method === 'POST') return issue.comments.push(body.body), [201, { id: 1 }];
		if (method === 'PATCH') issue.state = body.state;
		return [gitea && method === 'PATCH' ? 201 : 200, this.shown(issue)];
	}

	gitea(...a) {
		return this.github(...a);
	}

	gitlab(method, path, query, body, raw) {
		if (path === '/api/users') return [200, [...this.users].filter((u) => u === query.get('username')).map(() => ({ id: 42 }))];
		const at = /^\/api\/projects\/acme%2Fmobile%2Fshop\/issues(?:\/(\d+))?(\/notes)?(?:\?|$)/.exec(raw);
		if (!at) return [404, { message: '404 Project Not Found' }];
		if (!at[1] && method === 'GET') return [200, this.issues.filter((i) => i.body.includes(query.get('search'))).map((i) => this.shown(i))];
		if (!at[1]) {
			if (typeof body.labels !== 'string') return [400, { message: 'labels is invalid' }];
			return [201, this.shown(this.add(body.title, body.description, body.labels.split(','), body.assignee_ids?.[0]))];
		}
		const issue = this.one(at[1]);
		if (!issue) return [404, { message: '404 Not found' }];
		if (at[2]) return issue.comments.push(body.body), [201, { id: 1 }];
		if (method === 'PUT' && body.state_event === 'reopen') issue.state = 'open';
		return [200, this.shown(issue)];
	}

	jira(method, path, query, body) {
		if (path === '/api/rest/api/2/search/jql') {
			const mark = /^project = "SHOP" AND labels = "(tracewell-[0-9a-f]{32})"$/.exec(query.get('jql'))?.[1];
			return mark ? [200, { issues: this.issues.filter((i) => i.labels.includes(mark)).map((i) => this.shown(i)) }] : [400, { errorMessages: ['jql'] }];
		}
		const at = /^\/api\/rest\/api\/2\/issue(?:\/(SHOP-\d+))?(\/transitions|\/comment)?$/.exec(path);
		if (!at) return [404, { errorMessages: ['null for uri'] }];
		if (!at[1]) {
			const f = body.fields;
			if (f.project?.key !== 'SHOP' || f.issuetype?.name !== 'Task' || f.labels.some((l) => l.includes(' '))) return [400, { errorMessages: [], errors: { issuetype: 'Specify a valid issue type' } }];
			if (f.assignee && !this.users.has(f.assignee.accountId)) return [400, { errorMessages: [], errors: { assignee: 'User does not exist' } }];
			const made = this.add(f.summary, f.description, f.labels, f.assignee?.accountId);
			return [201, { id: String(10000 + made.number), key: made.key, self: `https://x/rest/api/2/issue/${made.number}` }];
		}
		const issue = this.one(at[1]);
		if (!issue) return [404, { errorMessages: ['Issue does not exist or you do not have permission to see it.'] }];
		if (at[2] === '/comment') return issue.comments.push(body.body), [201, { id: '1' }];
		if (at[2] === '/transitions' && method === 'POST') return body.transition.id === '11' ? ((issue.state = 'open'), [204, undefined]) : [400, { errorMessages: ['transition'] }];
		if (at[2]) return [200, { transitions: [{ id: '31', name: 'Done', to: { statusCategory: { key: 'done' } } }, { id: '11', name: 'Reopen', to: { statusCategory: { key: 'new' } } }] }];
		return [200, this.shown(issue)];
	}

	/** The project's settings. */
	get settings() {
		return { template: '', labels: ['performance'], ...SETTINGS[this.kind], api: this.url, token: TOKEN };
	}

	of(method, path) {
		return this.got.filter((g) => g.method === method && path.test(g.path));
	}
}

export async function startTrackers(t, kind) {
	const r = new Trackers(kind);
	await new Promise((done) => r.http.listen(0, '127.0.0.1', done));
	r.url = `http://127.0.0.1:${r.http.address().port}/api`;
	atEnd(t, () => { r.http.closeAllConnections(); r.http.close(); });
	return r;
}
