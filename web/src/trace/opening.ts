// Addresses by which other tools open a trace, with the view to show.

/** Clock readings at trace time 0, -1 if the upload has none. */
interface Bases { mono_base_ns?: number; boot_base_ns?: number }

/** Trace time as in the Perfetto file: BOOTTIME, or the known clock. */
export function perfettoTime(ns: number, t: Bases): bigint {
	const known = [t.boot_base_ns, t.mono_base_ns].find((b) => b !== undefined && b >= 0);
	return BigInt(known ?? 0) + BigInt(Math.round(ns));
}

export interface PerfettoView {
	tid: number | null;              // whose calls are pinned; null: everyone's
	range: [number, number] | null;  // trace time that is shown first
	bases: Bases;
}

/** Start-up commands of the Perfetto UI that pin the tracks of calls. */
export function pinCalls(tid: number | null): { id: string; args: string[] }[] {
	// a track's path ends with thread and track; a process may have the number of its main thread
	const args = tid === null ? ['^methods( \\(|$)'] : [`\\b${tid}\\b[^0-9]*methods( \\([^)]*\\))?$`, 'path'];
	return [{ id: 'dev.perfetto.PinTracksByRegex', args }];
}

/** `file`: an address that the Perfetto UI fetches itself; without, it waits to be handed one. */
export function perfettoAddress(ui: string, view: PerfettoView, file?: string): string {
	const args = new URLSearchParams();
	if (file) args.set('url', file);
	if (view.range) {
		args.set('visStart', String(perfettoTime(view.range[0], view.bases)));
		args.set('visEnd', String(perfettoTime(view.range[1], view.bases)));
	}
	args.set('startupCommands', JSON.stringify(pinCalls(view.tid)));
	const to = new URL(ui);
	// its router reads %20 but not +
	to.hash = `!/?${args.toString().replaceAll('+', '%20')}`;
	return to.href;
}

export function speedscopeAddress(ui: string, file: string, title: string): string {
	const to = new URL(ui);
	to.hash = `profileURL=${encodeURIComponent(file)}&title=${encodeURIComponent(title)}`;
	return to.href;
}

export function firefoxAddress(ui: string, file: string): string {
	return `${ui.replace(/\/+$/, '')}/from-url/${encodeURIComponent(file)}`;
}

export interface Scope { tid: number | null; range: [number, number] | null; sanitize?: boolean }

/** The query of an export of that much of a trace. */
export function scopeQuery(s: Scope, more: Record<string, string> = {}): Record<string, string> {
	return {
		...(s.tid === null ? {} : { threads: String(s.tid) }),
		...(s.range ? { from: String(Math.floor(s.range[0])), to: String(Math.max(Math.floor(s.range[0]) + 1, Math.ceil(s.range[1]))) } : {}),
		...(s.sanitize ? { sanitize: '1' } : {}),
		...more,
	};
}
