// The frame: who is signed in, which page, light or dark.
import { signal } from '@preact/signals';
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { aheadOfTrace, api, may, Refusal, useProject, useScope, useTools, type Session } from './api';
import { beginWorker } from './callworker';
import { later } from './later';
import { away, expired } from './health';
import { Keys } from './keys';
import { Busy, Failure } from './parts';
import { flush, follow, go, link, path, text } from './route';
import { SignIn } from './signin';
import { dark, toggle } from './theme';

const list = later('list', async () => (await import('./list')).ListPage);
const builds = later('builds', async () => (await import('./builds')).BuildsPage);
const keys = later('keys', async () => (await import('./keyspage')).KeysPage);
const people = later<{ project: string; provider: string }>('people', async () => (await import('./people')).PeoplePage);
const anrs = later('anrs', async () => (await import('./anrs')).AnrsPage);
const fleet = later('fleet', async () => (await import('./fleet')).FleetPage);
const locks = later('locks', async () => (await import('./locks')).LocksPage);
const audit = later('audit', async () => (await import('./audit')).AuditPage);
const retention = later('retention', async () => (await import('./retention')).RetentionPage);
const quarantine = later('quarantine', async () => (await import('./quarantine')).QuarantinePage);
const account = later<{ name: string; provider: Session['oidc']; out: () => Promise<void> }>('account', async () => (await import('./account')).AccountPage);
const capture = later('capture', async () => (await import('./capture')).CapturePage);
const webhooks = later('webhooks', async () => (await import('./webhooks')).WebhooksPage);
const source = later('source', async () => (await import('./sourcecode')).SourcePage);
const regressions = later('regressions', async () => (await import('./regressions')).RegressionsPage);
const search = later('search', async () => (await import('./search')).SearchPage);
const detectors = later('detectors', async () => (await import('./detectors')).DetectorsPage);
const versus = later('versus', async () => (await import('./versus')).VersusPage);
const compare = later('compare', async () => (await import('./compare')).ComparePage);
const trace = later<{ id: string }>('trace', async () => (await import('./trace')).TracePage);

const session = signal<Session | null>(null);
const ended = signal(false); // the session, without being asked to
const failed = signal<Error | null>(null);

async function load(): Promise<void> {
	try {
		useProject(text('project'));
		const s = await api.session().catch(async (why: unknown) => {
			if (!(why instanceof Refusal) || why.status !== 401) throw why;
			await api.signOut(); // the session is over: the browser may forget it
			return api.session();
		});
		useProject(s.project?.id ?? '');
		useTools(s);
		useScope(s);
		ended.value = !s.signed_in && (ended.value || session.value?.signed_in === true);
		session.value = s;
		failed.value = null;
	} catch (why) {
		failed.value = why as Error;
	}
}

function isForeign(why: Error): boolean {
	return why instanceof Refusal && why.status === 404 && text('project') !== '';
}

function Foreign() {
	return (
		<div class="notice bad" role="alert">
			<strong>There is no such project.</strong>
			<p>The address names a project that is not here, or not yours to see.</p>
			<p><a class="button" href="/" target="_self">Show what is here</a></p>
		</div>
	);
}

/** Another project's list: a trace, a build or a page of the list of this one is not in it. */
function pickProject(id: string): void {
	useProject(id);
	go(`${['/builds', '/keys', '/fleet', '/fleet/methods', '/fleet/findings', '/fleet/compare', '/search', '/regressions', '/anrs', '/locks', '/capture', '/source', '/webhooks', '/detectors', '/people', '/audit', '/retention', '/quarantine'].includes(path.value) ? path.value : '/'}?project=${encodeURIComponent(id)}`);
	void load();
}

async function leave(): Promise<void> {
	session.value = null;
	await load();
	go('/signin');
}

function Head({ s }: { s: Session | null }) {
	const out = async () => {
		await api.signOut().catch((why: Error) => {
			if (!(why instanceof Refusal)) throw why;
		});
		await leave();
	};
	const here = (p: string) => (path.value === p ? 'page' : p === '/' && /^\/(traces|compare)/.test(path.value) ? 'true' : undefined);
	return (
		<header class="top">
			<a class="brand" href={link('/')}><img src="/favicon.svg" alt="" width="20" height="20" />tracewell</a>
			{s?.signed_in && <nav aria-label="Pages">
				<a href={link('/')} aria-current={here('/')}>Traces</a>
				<a href={link('/fleet')} aria-current={path.value === '/fleet/methods' || path.value === '/fleet/findings' ? 'true' : here('/fleet')}>Fleet</a>
				<a href={link('/search')} aria-current={here('/search')}>Search</a>
				<a href={link('/regressions')} aria-current={here('/regressions')}>Regressions</a>
				<a href={link('/fleet/compare')} aria-current={here('/fleet/compare')}>Compare</a>
				<a href={link('/anrs')} aria-current={path.value.startsWith('/anrs/') ? 'true' : here('/anrs')}>ANRs</a>
				<a href={link('/locks')} aria-current={here('/locks')}>Locks</a>
				<a href={link('/detectors')} aria-current={here('/detectors')}>Detectors</a>
				<a href={link('/builds')} aria-current={here('/builds')}>Builds</a>
				<a href={link('/keys')} aria-current={here('/keys')}>Keys</a>
				<a href={link('/capture')} aria-current={here('/capture')}>Capture</a>
				<a href={link('/source')} aria-current={here('/source')}>Source</a>
				<a href={link('/retention')} aria-current={here('/retention')}>Retention</a>
				{may.admin && <a href={link('/webhooks')} aria-current={here('/webhooks')}>Webhooks</a>}
				{may.admin && <a href={link('/quarantine')} aria-current={here('/quarantine')}>Quarantine</a>}
				{may.admin && <a href={link('/people')} aria-current={here('/people')}>People</a>}
				{may.admin && <a href={link('/audit')} aria-current={here('/audit')}>Changes</a>}
			</nav>}
			<span class="grow" />
			{s?.signed_in && s.projects.length > 1 && (
				<label class="inline">Project
					<select value={s.project?.id} onChange={(e) => pickProject(e.currentTarget.value)}>
						{s.projects.map((p) => <option key={p.id} value={p.id}>{p.name}</option>)}
					</select>
				</label>)}
			{s?.signed_in && s.projects.length === 1 && <span class="quiet">{s.projects[0].name}</span>}
			{(s || failed.value) && <button class="small" onClick={toggle} aria-label={dark.value ? 'Use light colours' : 'Use dark colours'}>
				{dark.value ? 'Light' : 'Dark'}
			</button>}
			{s?.user && <a href={link('/account')} title="Your account">{s.user}</a>}
			{s?.signed_in && <button class="small" onClick={out}>Sign out</button>}
		</header>
	);
}

function NoRole() {
	return (
		<main><div class="notice">
			<strong>You have no role in any project yet.</strong>
			<p>Ask an admin for one, then load this page again.</p>
		</div></main>
	);
}

function traceOf(p: string): string | undefined {
	return /^\/traces\/([0-9A-Z]{26})$/.exec(p)?.[1];
}

function Page({ s }: { s: Session }) {
	const p = path.value;
	const id = traceOf(p);
	if (p === '/signin') return <SignIn done={load} provider={s.oidc?.name} />;
	if (!s.signed_in) return <SignIn done={load} provider={s.oidc?.name} ended={ended.value} />;
	if (id) return <trace.Page key={id} id={id} />;
	if (p === '/builds') return <builds.Page key={s.project?.id} />;
	if (p === '/keys') return <keys.Page key={s.project?.id} />;
	if (p === '/regressions') return <regressions.Page key={s.project?.id} />;
	if (p === '/fleet/compare') return <versus.Page key={s.project?.id} />;
	if (p === '/search') return <search.Page key={s.project?.id} />;
	if (p === '/capture') return <capture.Page key={s.project?.id} />;
	if (p === '/webhooks' && may.admin) return <webhooks.Page key={s.project?.id} />;
	if (p === '/source') return <source.Page key={s.project?.id} />;
	if (p === '/people' && may.admin) return <people.Page key={s.project?.id} project={s.project?.name ?? ''} provider={s.oidc?.name ?? ''} />;
	if (p === '/audit' && may.admin) return <audit.Page key={s.project?.id} />;
	if (p === '/quarantine' && may.admin) return <quarantine.Page key={s.project?.id} />;
	if (p === '/account' && s.user) return <account.Page name={s.user} provider={s.oidc} out={leave} />;
	if (s.scope === 'public') return <NoRole />;
	if (/^\/anrs(\/|$)/.test(p)) return <anrs.Page key={s.project?.id} />;
	if (/^\/fleet(\/|$)/.test(p)) return <fleet.Page key={s.project?.id} />;
	if (p === '/detectors') return <detectors.Page key={s.project?.id} />;
	if (p === '/locks') return <locks.Page key={s.project?.id} />;
	if (p === '/retention') return <retention.Page key={s.project?.id} />;
	if (p === '/compare') return <compare.Page key={s.project?.id} />;
	if (p === '/' || p === '/traces') return <list.Page key={s.project?.id} />;
	return <main><h1>No such page</h1><Failure error={new Refusal(404, 'This address leads nowhere.')} /></main>;
}

/** Stands over the page, so that nothing moves when it comes and goes. */
function Away() {
	if (!away.value) return null;
	return <p class="notice warn away" role="alert"><strong>The server does not answer.</strong> What is shown stays; the page goes on by itself as soon as the server is back.</p>;
}

function App() {
	useEffect(() => {
		document.addEventListener('click', follow);
		const refused = expired.subscribe((n) => {
			if (n === 0 || !session.value?.signed_in) return;
			flush(); // signed in again, all is as it was
			void load();
		});
		return () => {
			refused();
			document.removeEventListener('click', follow);
		};
	}, []);
	const s = session.value;
	return (
		<>
			<Head s={s} />
			<Away />
			{failed.value ? <main>{isForeign(failed.value) ? <Foreign /> : <Failure error={failed.value} retry={load} />}</main>
				: s ? <><Page s={s} /><Keys /></> : <main><Busy what="Asking the server who you are" /></main>}
		</>
	);
}

/** While the server is asked who this is, the page's code comes, and what a trace needs. */
function beginEarly(): void {
	const id = traceOf(path.value);
	const known = load();
	if (id) preload(document.querySelector<HTMLMetaElement>('meta[name=trace-modules]')?.content ?? '');
	const pages: Record<string, { begin: () => void }> = { '/fleet': fleet, '/fleet/methods': fleet, '/fleet/findings': fleet, '/fleet/compare': versus, '/anrs': anrs, '/locks': locks, '/builds': builds, '/keys': keys, '/compare': compare, '/people': people, '/audit': audit, '/account': account, '/capture': capture, '/source': source, '/webhooks': webhooks, '/retention': retention, '/quarantine': quarantine, '/regressions': regressions, '/search': search };
	(id ? trace : pages[path.value] ?? list).begin();
	if (!id) return;
	aheadOfTrace(id);
	beginWorker();
	Promise.all([import('./trace'), known]).then(([m]) => m.openEarly(id)).catch(() => undefined); // who draws the calls asks for them, too
}

/** What a module needs is asked for with it, not once it was read. */
function preload(modules: string): void {
	for (const href of modules.split(' ').filter(Boolean)) document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href }));
}

beginEarly();
render(<App />, document.getElementById('app')!);
