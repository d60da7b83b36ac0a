// The call that is selected, as the address holds it: "tid.start.depth".
import type { CallId } from '../worker/messages';

export function parseCall(text: string): CallId | null {
	const [, tid, start, depth] = /^(\d{1,16})\.(\d{1,16})\.(\d{1,5})$/.exec(text)?.map(Number) ?? [];
	return depth === undefined ? null : { tid, start, depth };
}

export const formatCall = ({ tid, start, depth }: CallId): string => `${tid}.${start}.${depth}`;
