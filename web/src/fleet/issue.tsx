// A regression or a group of ANRs as an issue: copied for GitHub, GitLab or Jira, or opened there.
import { useState } from 'preact/hooks';
import { get } from '../api/api';
import { Choice, Copy, Pending, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/regressions';

interface Issue { for: string; title: string; body: string; url: string | null }

const FORMS: [string, string][] = [['github', 'GitHub'], ['gitlab', 'GitLab'], ['jira', 'Jira']];

function Text({ path }: { path: string }) {
	const tracker = useLoad('tracker', () => get<{ for: string }>('/api/v1/tracker'));
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
			{v && <><p><strong>{v.title}</strong></p><pre class="body" tabIndex={0} aria-label={tr('Issue text')}>{v.body}</pre></>}
		</div>
	);
}

/** path: of the API, of what the issue is about. */
export function IssueText({ path }: { path: string }) {
	const [open, show] = useState(false);
	return <><button aria-expanded={open} onClick={() => show(!open)}>{tr('Issue text')}</button>{open && <Text path={path} />}</>;
}
