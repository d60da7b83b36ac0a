// The application shell: session, current page, theme.
import { effect, signal, untracked } from '@preact/signals';
import { render } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { aheadOfTrace, aheadSettled, api, dropAhead, may, Refusal, useProject, useScope, useTools, type Session } from '../api/api';
import { away, expired, returned } from '../api/health';
import { Drop } from './drop';
import { Find } from './find';
import { ShortcutKey } from './shortcutkey';
import { language, LANGUAGES, switchLanguage, type Language } from '../i18n/language';
import { Navigation } from './navigation';
import { allowed, placeOf, PLACES, trace, traceOf } from './pages';
import { later } from '../ui/later';
import '../ui/safetext';
import { UploadButton } from './uploadbutton';
import { coarse, narrow } from '../ui/narrow';
import { Busy, Failure } from '../ui/parts';
import { Popover } from '../ui/popover';
import { flush, follow, go, link, path, set, text } from '../ui/route';
import type { Why } from '../admin/lost';
import { tr } from '../i18n/strings/frame';
import { dark, toggle } from '../ui/theme';
import { clearStatements } from '../trace/state/statements';

if (coarse) void import('../ui/longpress');

const session = signal<Session | null>(null);
const ended = signal(false); // the session ended, not by signing out
const failed = signal<Error | null>(null);

const RETRY_MS = 5000; // while the session cannot be loaded

let last = new AbortController(); // of the latest load, which ends the one before
let project: string | undefined; // in the address, when it was loaded
let retry: ReturnType<typeof setTimeout> | undefined;

/** Loads the session.  A link to a trace selects the trace's project, which is added to the address. */
async function fetchSession(signal: AbortSignal): Promise<Session> {
	const id = traceOf(path.value);
	const s = await api.session(id, signal);
	const other = s.trace_project;
	if (!id || !other || !s.project || other.id === s.project.id || project) return s;
	project = other.id;
	useProject(project);
	dropAhead();
	set({ project: other.id });
	aheadOfTrace(id);
	return api.session('', signal);
}

async function load(): Promise<void> {
	last.abort();
	clearTimeout(retry);
	const { signal } = (last = new AbortController());
	try {
		project = text('project');
		useProject(project);
		const s = await fetchSession(signal).catch(async (why: unknown) => {
			if (!(why instanceof Refusal) || why.status !== 401) throw why;
			await api.signOut(); // the session has ended: the browser may drop its cookie
			return api.session('', signal);
		});
		if (signal.aborted) return;
		useProject(s.project?.id ?? '');
		useTools(s);
		useScope(s);
		ended.value = !s.signed_in && (ended.value || session.value?.signed_in === true);
		if (!s.signed_in) clearStatements();
		session.value = s;
		failed.value = null;
	} catch (why) {
		if (signal.aborted) return;
		failed.value = why as Error;
		if (why instanceof Refusal && why.afterMs) retry = setTimeout(load, (why.retryMs = Math.max(RETRY_MS, why.afterMs)));
	}
}

/* Another project was chosen, or the back button leads to one. */
effect(() => {
	const named = text('project');
	if (project !== undefined && named !== project) void untracked(load);
});

const lost = later<{ why: Why; label?: string }>('lost', async () => (await import('../admin/lost')).Lost);
const signIn = later<{ done: () => Promise<void>; provider?: string; ended?: boolean }>('signin', async () => (await import('../admin/signin')).SignIn);

function isForeign(why: Error): boolean {
	return why instanceof Refusal && why.status === 404 && text('project') !== '';
}

/** Leads to another project.  The path remains only for pages that every project has. */
function pickProject(id: string): void {
	const kept = PLACES.some((p) => p.at === path.value && p.label);
	go(`${kept ? path.value : '/'}?project=${encodeURIComponent(id)}`);
}

async function leave(): Promise<void> {
	session.value = null;
	await load();
	go('/signin');
}

/** Skips the header by keyboard: the next Tab focuses the first control of the page. */
function Skip() {
	const skip = () => {
		const main = document.querySelector('main');
		if (main) main.tabIndex = -1;
		main?.focus();
	};
	return <button class="skip" onClick={skip}>{tr('Skip to the content')}</button>;
}

/** The other language, by its own name. */
function Languages() {
	const others = (Object.keys(LANGUAGES) as Language[]).filter((one) => one !== language);
	return <>{others.map((one) => <button key={one} class="small" lang={one} onClick={() => { flush(); switchLanguage(one); }}>{LANGUAGES[one]}</button>)}</>;
}

function Head({ s }: { s: Session | null }) {
	const out = async () => {
		await api.signOut().catch((why: Error) => {
			if (!(why instanceof Refusal)) throw why;
		});
		await leave();
	};
	const few = narrow.value; // one row, with the rest in a menu
	const project = <>
		{s?.signed_in && s.projects.length > 1 && (
			<label class="inline">{tr('Project')}
				<select value={s.project?.id} onChange={(e) => pickProject(e.currentTarget.value)}>
					{s.projects.map((p) => <option key={p.id} value={p.id}>{p.name}</option>)}
					{s.projects_are_capped && <option disabled>{tr('More projects')}</option>}
				</select>
			</label>)}
		{s?.signed_in && s.projects.length === 1 && <span class="quiet">{s.projects[0].name}</span>}
	</>;
	const rest = <>
		{(s || failed.value) && <Languages />}
		{(s || failed.value) && <button class="small" onClick={toggle} aria-label={dark.value ? tr('Use light colours') : tr('Use dark colours')}>
			{dark.value ? tr('Light') : tr('Dark')}
		</button>}
		{s?.user && <a href={link('/account')} title={tr('Your account')}>{s.user}</a>}
		{s?.signed_in && <button class="small" onClick={out}>{tr('Sign out')}</button>}
	</>;
	return (
		<header class="top">
			<Skip />
			<a class="brand" href={link('/')}><img src="/favicon.svg" alt="" width="20" height="20" />tracewell</a>
			{s?.signed_in && <Navigation s={s} />}
			<span class="grow" />
			{s?.signed_in && s.scope !== 'public' && <Find s={s} />}
			{!few && project}
			{s?.signed_in && may.write && <UploadButton />}
			{!few ? rest : (s || failed.value) && <Popover small label={<span role="img" aria-label={tr('More')}>⋯</span>} title={tr('More')}>{() => <>{project}{rest}</>}</Popover>}
		</header>
	);
}

function Page({ s }: { s: Session }) {
	const p = path.value;
	const id = traceOf(p);
	if (p === '/signin') return <signIn.Page done={load} provider={s.oidc?.name} />;
	if (!s.signed_in) return <signIn.Page done={load} provider={s.oidc?.name} ended={ended.value} />;
	if (id && s.scope !== 'public') return <trace.Page key={id} id={id} />;
	const place = placeOf(p);
	if (s.scope === 'public' && (!place || place.needs === 'role' || !allowed(place, s))) return <lost.Page why="role" />;
	if (place && allowed(place, s)) return <place.page.Page key={s.project?.id} {...place.props?.({ s, leave })} />;
	return place ? <lost.Page key={p} why={place.needs === 'user' ? 'user' : 'admin'} label={place.label} /> : <lost.Page key={p} why="address" />;
}

/** Covers a part of the page, so that nothing moves when it appears. */
function Away() {
	if (!away.value) return null;
	return <p class="notice warn away" role="alert">{tr.rich('{bold} The page keeps what it shows and continues when the server responds again.', { bold: <strong>{tr('The server is not responding.')}</strong> })}</p>;
}

function App() {
	useLayoutEffect(() => {
		document.addEventListener('click', follow);
		const refused = expired.subscribe((n) => {
			if (n === 0 || !session.value?.signed_in) return;
			flush(); // after signing in again, the state is unchanged
			void load();
		});
		const back = returned.subscribe(() => failed.value && void load());
		return () => {
			refused();
			back();
			document.removeEventListener('click', follow);
		};
	}, []);
	const s = session.value;
	return (
		<>
			<Head s={s} />
			<Away />
			{failed.value ? isForeign(failed.value) ? <lost.Page why="project" /> : <main><Failure error={failed.value} retry={load} /></main>
				: s ? <><Page s={s} /><ShortcutKey /><Drop signedIn={s.signed_in} /></> : <main><Busy what={tr('Checking your session')} /></main>}
		</>
	);
}

const FIRST_RENDER_MS = 150;

/** Loads the page's code and a trace's data while the session is requested. Resolves when the page can be drawn. */
function begin(): Promise<unknown> {
	const id = traceOf(path.value);
	const known = load();
	const code = (id ? trace : (placeOf(path.value) ?? PLACES[0]).page).begin();
	if (id) aheadOfTrace(id);
	return Promise.all([code, known.then(() => (session.value?.signed_in ? aheadSettled() : signIn.begin()))]);
}

/* Each loading state that is rendered delays the first picture by a frame. */
void Promise.race([begin(), new Promise((late) => setTimeout(late, FIRST_RENDER_MS))]).then(() => render(<App />, document.getElementById('app')!));
