// The source of a method, as text.
import { count, DAY_MS } from '../i18n/format';
import { tr } from '../i18n/strings/sources';

export interface Commit { id: string; author: string; email?: string; time_ms: number; summary: string; link: string | null }
export interface Source {
	method: string; repository: string | null; link?: string | null; path?: string; found?: boolean; commit?: string; base_commit?: string;
	commit_from?: 'build' | 'name' | 'newest'; base_commit_from?: 'build' | 'name'; base_note?: string;
	lines?: [number, number][]; is_method?: boolean; note?: string; owners?: { section: string; names: string[]; line: number }[]; owners_file?: string; owners_error?: string;
	newest_ms?: number; commits?: Commit[]; more?: boolean; reason?: string;
}
export interface Repository { name: string; packages?: string[]; link?: string; commit_link?: string; roots?: string[]; refs?: string[]; clone?: string; owners?: string; show_emails?: boolean }

const LAST_MS = 253402300799999; // of the year 9999

/** The address, when it leads to a web server; the settings allow no other. */
export const safe = (to: string | null | undefined): string | undefined => (to && /^https?:\/\//.test(to) ? to : undefined);

export const shortOf = (commit: string) => commit.slice(0, 10);

/** ":12-20" after a path. */
export function numbersOf(v: Source): string {
	return (v.lines ?? []).map(([a, b]) => `${a}${b > a ? `-${b}` : ''}`).join(', ').replace(/^(?=.)/, ':');
}

export const namesOf = (v: Source): string => [...new Set((v.owners ?? []).flatMap((o) => o.names))].join(' ');

/** "2026-01-31"; '' for an invalid time of a commit. */
export function dayOf(ms: number): string {
	return ms >= 0 && ms <= LAST_MS ? new Date(ms).toISOString().slice(0, 10) : '';
}

/** The age of the clone, as a sentence. */
export function ageOf(newest: number, now = Date.now()): string {
	if (!newest) return tr('The clone has no readable commit.');
	if (!(newest <= now + DAY_MS)) return tr('The age of the clone is unknown: its newest commit is in the future.');
	const days = Math.floor((now - newest) / DAY_MS);
	return tr('The newest commit of the clone is {days}.', { days: days < 1 ? tr('of today') : days === 1 ? tr('a day old') : tr('{days} days old', { days: count(days) }) });
}

/** The source of the commits, if it is not a tag: "by the commit of its build". */
export function fromOf(v: Source): string {
	const head = v.commit_from === 'build', base = v.base_commit_from === 'build';
	const by = head && base ? tr('the commits of their builds') : base ? tr('the commit of the earlier build') : head ? tr('the commit of its build') : '';
	return by && tr('By {by}{commit}.', { by, commit: v.commit ? `: ${v.base_commit ? `${shortOf(v.base_commit)}..` : ''}${shortOf(v.commit)}` : '' });
}

const listed = (text: string) => text.split('\n').map((l) => l.trim()).filter(Boolean);

export type Draft = Record<'name' | 'packages' | 'link' | 'commit_link' | 'roots' | 'refs' | 'clone' | 'owners', string> & { emails: boolean };

export function draftOf(r?: Repository): Draft {
	const lines = (l?: string[]) => (l ?? []).join('\n');
	return { name: r?.name ?? '', packages: lines(r?.packages), link: r?.link ?? '', commit_link: r?.commit_link ?? '', roots: lines(r?.roots), refs: lines(r?.refs), clone: r?.clone ?? '', owners: r?.owners ?? '', emails: r?.show_emails ?? false };
}

/** Without empty members; the server validates the rest. */
export function repositoryOf(d: Draft): Repository {
	const all: Repository = { name: d.name.trim(), packages: listed(d.packages), link: d.link.trim(), commit_link: d.commit_link.trim(), roots: listed(d.roots), refs: listed(d.refs), clone: d.clone.trim(), owners: d.owners.trim(), show_emails: d.emails };
	return Object.fromEntries(Object.entries(all).filter(([key, v]) => key === 'name' || (Array.isArray(v) ? v.length : v))) as unknown as Repository;
}
