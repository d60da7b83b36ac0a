// Settings as JSON, for those who copy them between projects or keep them in a repository.
import { useState } from 'preact/hooks';
import { tr } from '../i18n/strings/manage';
import { Copy, Failure } from '../ui/parts';

/** `use` takes the edited document; `label` is of its button, without which the text can only be read. */
export function AsJson<T extends object>({ value, label, use }: { value: T; label?: string; use?: (v: T) => void }) {
	const shown = JSON.stringify(value, null, 2);
	const [draft, type] = useState<string | null>(null);
	const [error, fail] = useState<Error | null>(null);
	const take = () => {
		fail(null);
		try {
			const doc: unknown = JSON.parse(draft!);
			if (!doc || typeof doc !== 'object' || Array.isArray(doc)) throw new Error(tr('an object is expected'));
			type(null);
			use!(doc as T);
		} catch (why) {
			fail(new Error(tr('This is not JSON: {message}', { message: (why as Error).message })));
		}
	};
	return (
		<details class="asjson">
			<summary>{tr('As JSON')}</summary>
			<textarea class="mono" name="json" rows={Math.min(24, shown.split('\n').length + 1)} aria-label={tr('As JSON')} spellcheck={false} readOnly={!use} value={draft ?? shown} onInput={(e) => type(e.currentTarget.value)} />
			{error && <Failure error={error} />}
			<div class="row">{use && <button type="button" disabled={draft === null || draft === shown} onClick={take}>{label}</button>}
				{draft !== null && <button type="button" onClick={() => { type(null); fail(null); }}>{tr('Undo changes')}</button>}
				<Copy text={draft ?? shown} /></div>
		</details>
	);
}
