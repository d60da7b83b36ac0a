// The frame: who is signed in, which page, light or dark.
import { signal } from '@preact/signals';
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { api, Refusal, useProject, useTools, type Session } from './api';
import { BuildsPage } from './builds';
import { ListPage } from './list';
import { Busy, Failure } from './parts';
import { follow, go, link, path, text } from './route';
import { SignIn } from './signin';
import { dark, toggle } from './theme';
import { TracePage } from './trace';

const session = signal<Session | null>(null);
const failed = signal<Error | null>(null);

async function load(): Promise<void> {
	try {
		useProject(text('project'));
		const s = await api.session();
		useProject(s.project?.id ?? '');
		useTools(s);
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
	go(`${path.value === '/builds' ? '/builds' : '/'}?project=${encodeURIComponent(id)}`);
	void load();
}

function Head({ s }: { s: Session | null }) {
	const out = async () => {
		await api.signOut().catch((why: Error) => {
			if (!(why instanceof Refusal)) throw why;
		});
		session.value = null;
		await load();
		go('/signin');
	};
	const here = (p: string) => (path.value === p ? 'page' : p === '/' && path.value.startsWith('/traces') ? 'true' : undefined);
	return (
		<header class="top">
			<a class="brand" href={link('/')}><img src="/favicon.svg" alt="" width="20" height="20" />tracewell</a>
			{s?.signed_in && <nav aria-label="Pages">
				<a href={link('/')} aria-current={here('/')}>Traces</a>
				<a href={link('/builds')} aria-current={here('/builds')}>Builds</a>
			</nav>}
			<span class="grow" />
			{s?.signed_in && s.projects.length > 1 && (
				<label class="inline">Project
					<select value={s.project?.id} onChange={(e) => pickProject(e.currentTarget.value)}>
						{s.projects.map((p) => <option key={p.id} value={p.id}>{p.name}</option>)}
					</select>
				</label>)}
			{s?.signed_in && s.projects.length === 1 && <span class="quiet">{s.projects[0].name}</span>}
			<button class="small" onClick={toggle} aria-label={dark.value ? 'Use light colours' : 'Use dark colours'}>
				{dark.value ? 'Light' : 'Dark'}
			</button>
			{s?.signed_in && <button class="small" onClick={out}>Sign out</button>}
		</header>
	);
}

function Page({ s }: { s: Session }) {
	const p = path.value;
	const trace = /^\/traces\/([0-9A-Z]{26})$/.exec(p);
	if (p === '/signin') return <SignIn done={load} />;
	if (!s.signed_in) return <SignIn done={load} />;
	if (trace) return <TracePage key={trace[1]} id={trace[1]} />;
	if (p === '/builds') return <BuildsPage />;
	if (p === '/' || p === '/traces') return <ListPage key={s.project?.id} />;
	return <main><Failure error={new Refusal(404, 'This address leads nowhere.')} /></main>;
}

function App() {
	useEffect(() => {
		document.addEventListener('click', follow);
		void load();
		return () => document.removeEventListener('click', follow);
	}, []);
	const s = session.value;
	return (
		<>
			<Head s={s} />
			{failed.value ? <main>{isForeign(failed.value) ? <Foreign /> : <Failure error={failed.value} retry={load} />}</main>
				: s ? <Page s={s} /> : <main><Busy what="Asking the server who you are" /></main>}
		</>
	);
}

render(<App />, document.getElementById('app')!);
