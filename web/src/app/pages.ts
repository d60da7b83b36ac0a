// Every page: its address, component, permission and place in the navigation.
import { may, type Session } from '../api/api';
import { later, type Later } from '../ui/later';
import { tr } from '../i18n/strings/frame';

/** The viewer, for pages that need it. */
interface Viewer {
	s: Session;
	leave: () => Promise<void>;
}

export interface Place {
	at: string;
	page: Later<any>; // its properties are those that `props` returns
	props?: (v: Viewer) => object;
	needs?: 'role' | 'admin' | 'user';
	below?: boolean; // also for addresses below it
	of?: string; // the page that represents it in the navigation
	group?: 'fleet' | 'problems' | 'manage' | '';
	label?: string;
}

const graphs = () => import('../fleet/graphpages');
const home = later('home', async () => (await import('./home')).HomePage);
const list = later('list', async () => (await import('../list/list')).ListPage);
const fleet = later('fleet', async () => (await import('../fleet/fleet')).FleetPage);
const account = later<{ name: string; provider: Session['oidc']; out: () => Promise<void> }>('account', async () => (await import('../admin/account')).AccountPage);
const people = later<{ project: string; provider: string }>('people', async () => (await import('../admin/people')).PeoplePage);

const inbox = later<{ name: string }>('inbox', async () => (await import('../fleet/inbox')).InboxPage);

export const trace = later<{ id: string }>('trace', async () => (await import('../trace/trace')).TracePage);

/** In the order of the navigation. */
export const PLACES: Place[] = [
	{ at: '/', group: '', label: tr('Overview'), needs: 'role', page: home },
	{ at: '/traces', group: '', label: tr('Traces'), needs: 'role', page: list },
	{ at: '/inbox', group: '', label: tr('Inbox'), needs: 'role', page: inbox, props: ({ s }) => ({ name: s.user ?? '' }) },
	{ at: '/compare', of: '/traces', needs: 'role', page: later('compare', async () => (await graphs()).ComparePage) },
	{ at: '/fleet', of: '/', needs: 'role', page: home },
	{ at: '/fleet/methods', group: 'fleet', label: tr('Methods'), needs: 'role', page: fleet },
	{ at: '/fleet/flame', group: 'fleet', label: tr('Flame graph'), needs: 'role', page: later('fleetflame', async () => (await graphs()).FlamePage) },
	{ at: '/fleet/findings', group: 'fleet', label: tr('Findings'), needs: 'role', page: fleet },
	{ at: '/fleet/compare', group: 'fleet', label: tr('Compare'), page: later('versus', async () => (await graphs()).VersusPage) },
	{ at: '/search', group: 'fleet', label: tr('Slow calls'), page: later('search', async () => (await import('../fleet/search')).SearchPage) },
	{ at: '/regressions', group: 'problems', label: tr('Regressions'), page: later('regressions', async () => (await import('../fleet/regressions')).RegressionsPage) },
	{ at: '/anrs', group: 'problems', label: tr('ANRs'), needs: 'role', page: later('anrs', async () => (await import('../fleet/anrs')).AnrsPage), below: true },
	{ at: '/locks', group: 'problems', label: tr('Locks'), needs: 'role', page: later('locks', async () => (await import('../fleet/locks')).LocksPage) },
	{ at: '/detectors', group: 'problems', label: tr('Detectors'), needs: 'role', page: later('detectors', async () => (await import('../admin/detectors')).DetectorsPage) },
	{ at: '/capture', group: 'manage', label: tr('Capture'), page: later('capture', async () => (await import('../admin/capture')).CapturePage) },
	{ at: '/builds', group: 'manage', label: tr('Builds'), page: later('builds', async () => (await import('../admin/builds')).BuildsPage) },
	{ at: '/source', group: 'manage', label: tr('Source'), page: later('source', async () => (await import('../source/sourcecode')).SourcePage) },
	{ at: '/retention', group: 'manage', label: tr('Retention'), needs: 'role', page: later('retention', async () => (await import('../admin/retention')).RetentionPage) },
	{ at: '/quarantine', group: 'manage', label: tr('Quarantine'), needs: 'admin', page: later('quarantine', async () => (await import('../admin/quarantine')).QuarantinePage) },
	{ at: '/notifications', group: 'manage', label: tr('Notifications'), needs: 'admin', page: later('notifications', async () => (await import('../admin/notifications')).NotificationsPage) },
	{ at: '/keys', group: 'manage', label: tr('Projects and keys'), page: later('keys', async () => (await import('../admin/keyspage')).KeysPage) },
	{ at: '/people', group: 'manage', label: tr('People'), needs: 'admin', page: people, props: ({ s }) => ({ project: s.project?.name ?? '', provider: s.oidc?.name ?? '' }) },
	{ at: '/health', group: 'manage', label: tr('Health'), needs: 'role', page: later('health', async () => (await import('../admin/health')).HealthPage) },
	{ at: '/audit', group: 'manage', label: tr('Audit log'), needs: 'admin', page: later('audit', async () => (await import('../admin/audit')).AuditPage) },
	{ at: '/account', needs: 'user', page: account, props: ({ s, leave }) => ({ name: s.user, provider: s.oidc, out: leave }) },
];

/** The page at an address, without a check of permissions. */
export function placeOf(path: string): Place | undefined {
	return PLACES.find((p) => p.at === path) ?? PLACES.find((p) => p.below && path.startsWith(`${p.at}/`));
}

export function traceOf(path: string): string | undefined {
	return /^\/traces\/([0-9A-Z]{26})$/.exec(path)?.[1];
}

/** May this viewer see it?  A missing role is checked separately (main.tsx). */
export function allowed(p: Place, s: Session): boolean {
	return p.needs === 'admin' ? may.admin : p.needs !== 'user' || Boolean(s.user);
}

/** How the navigation marks a page's link at an address. */
export function current(p: Place, path: string): 'page' | 'true' | undefined {
	if (p.at === path) return 'page';
	const here = placeOf(path);
	return here === p || here?.of === p.at || (p.at === '/traces' && traceOf(path)) ? 'true' : undefined;
}
