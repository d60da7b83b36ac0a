// A stored setting that cannot be used: shown above the form that replaces it.
import { useRef } from 'preact/hooks';
import { get } from '../api/api';
import { tr } from '../i18n/strings/frame';
import { serverText } from '../i18n/servertext';
import { useLoad } from './parts';

export interface InvalidSetting { key: string; reason: string }

export const invalidSettings = async (s?: AbortSignal) => (await get<{ settings: InvalidSetting[] }>('/api/v1/settings/invalid', {}, s)).settings;

/** Why the stored setting cannot be used, '' if it can; `now` is its loaded value, another object after each load. */
export function useInvalid(key: string, now: unknown): string {
	const of = useRef({ now, turn: 0 });
	if (of.current.now !== now) of.current = { now, turn: of.current.turn + 1 };
	const load = useLoad(`invalid ${of.current.turn}`, invalidSettings);
	return load.value?.find((s) => s.key === key)?.reason ?? '';
}

export function Invalid({ why }: { why: string }) {
	return why ? <p class="notice warn" role="alert">{tr('The stored setting is invalid: {reason}. Until you save a new one, the values shown here apply.', { reason: serverText(why) })}</p> : null;
}
