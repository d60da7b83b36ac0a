// A regression or a group of ANRs as an issue: copied for a tracker, opened there filled in, or created there.
import { useState } from 'preact/hooks';
import { get } from '../api/api';
import { Choice, Copy, Pending, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/regressions';
import { Ticket } from './ticket';

interface Issue { for: string; title: string; body: string; url: string | null }

const FORMS: [string, string][] = [['github', 'GitHub'], ['gitlab', 'GitLab'], ['jira', 'Jira'], ['gitea', 'Gitea']];

function Text({ path }: { path: string }) {
	const tracker = useLoad('tracker', () => get<{ for: string; api?: string; token_set: boolean }>('/api/v1/tracker'));
	const [picked, pick] = useState('');
	const form = picked || tracker.value?.for || 'github';
	const load = useLoad(`issue ${path} ${form}`, () => get<Issue>(`${path}/issue`, { for: form }));
	const v = load.value;
	return (
		<div class="issue">
			<div class="row"><Choice label={tr('Issue text for')} value={form} options={FORMS} onPick={pick} />
				{v && <><Copy text={v.title} label={tr('Copy the title')} /><Copy text={v.body} label={tr('Copy the text')} /></>}
				{v?.url && <a class="button" href={v.url} target="_blank" rel="noopener noreferrer">{tr('Open a new issue')}</a>}</div>
			<Pending of={load} what={tr('Writing the issue')} />
			{tracker.value?.api && tracker.value.token_set && <Ticket path={path} tracker={FORMS.find(([name]) => name === tracker.value?.for)?.[1] ?? ''} />}
			{v && <><p><strong>{v.title}</strong></p><pre class="body" tabIndex={0} aria-label={tr('Issue text')}>{v.body}</pre></>}
		</div>
	);
}

/** path: API path of the issue's subject. */
export function IssueText({ path }: { path: string }) {
	const [open, show] = useState(false);
	return <><button aria-expanded={open} onClick={() => show(!open)}>{tr('Issue text')}</button>{open && <Text path={path} />}</>;
}
