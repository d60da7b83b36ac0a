// The project's rules that classify methods as app or library code, for "App frames only".
import { useEffect, useState } from 'preact/hooks';
import { api, may, type Frames } from '../../api/api';
import { serverText } from '../../i18n/servertext';
import { Busy, Failure, Panel, useLoad } from '../../ui/parts';
import { tr } from '../../i18n/strings/trace';

interface Draft {
	off: string[];
	framework: string;
	app: string;
}

const lines = (s: string) => s.split('\n').map((l) => l.trim()).filter(Boolean);
const draftOf = (f: Frames): Draft => ({ off: f.presets.filter((p) => !p.enabled).map((p) => p.id), framework: f.framework.join('\n'), app: f.app.join('\n') });

function List({ label, hint, value, change }: { label: string; hint: string; value: string; change: (v: string) => void }) {
	return (
		<label class="list">{label} <span class="quiet">{hint}</span>
			<textarea rows={4} spellcheck={false} class="mono" readOnly={!may.write} value={value} onInput={(e) => change(e.currentTarget.value)} /></label>
	);
}

export function FramesPanel() {
	const load = useLoad('frames', api.frames);
	const [draft, edit] = useState<Draft | null>(null);
	const [message, show] = useState('');
	const [error, fail] = useState<Error | null>(null);
	useEffect(() => {
		if (load.value) edit(draftOf(load.value));
	}, [load.value]);
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	if (!load.value || !draft) return <Busy what={tr('Loading rules')} />;
	const save = async (e: Event) => {
		e.preventDefault();
		fail(null);
		try {
			edit(draftOf(await api.setFrames({ off: draft.off, framework: lines(draft.framework), app: lines(draft.app) })));
			show(tr('Saved.'));
		} catch (why) {
			fail(why as Error);
		}
	};
	const change = (d: Partial<Draft>) => {
		show('');
		edit({ ...draft, ...d });
	};
	return (
		<Panel title={tr('App frames')} id="frames">
			<p>{tr("“App frames only” charges time in library code to the app frame that called it. The longest matching prefix decides; methods without a match belong to the app.")}</p>
			<form onSubmit={save}>
				<fieldset class="presets"><legend>{tr("Library code")}</legend>
					{load.value.presets.map((p) => (
						<label key={p.id} class="inline" title={p.prefixes.join(' ')}>
							<input type="checkbox" disabled={!may.write} checked={!draft.off.includes(p.id)}
								onChange={(e) => change({ off: e.currentTarget.checked ? draft.off.filter((x) => x !== p.id) : [...draft.off, p.id] })} /> {serverText(p.title)}</label>))}
				</fieldset>
				<div class="lists">
					<List label={tr("Also treat as library")} hint={tr('one prefix per line, e.g. com.vendor.sdk')} value={draft.framework} change={(framework) => change({ framework })} />
					<List label={tr("Always app code")} hint={tr('one prefix per line')} value={draft.app} change={(app) => change({ app })} />
				</div>
				{error && <Failure error={error} />}
				{may.write && <div class="row"><button type="submit">{tr('Save')}</button><span role="status" class="quiet">{message}</span></div>}
			</form>
		</Panel>
	);
}
