// The project's issue tracker: the address of a new issue, and the API by which issues are created.
import { useState } from 'preact/hooks';
import { get, send } from '../api/api';
import { useChange } from '../ui/change';
import { Invalid, useInvalid } from '../ui/invalid';
import { Failure, Panel, Pending, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/notifications';

interface TrackerOf {
	for: string; template: string; api?: string; repository?: string; user?: string; issue_type?: string;
	labels?: string[]; assignees?: Record<string, string>; token_set: boolean; token_lost: boolean;
}

const EXAMPLES: Record<string, { template: string; api: string; repository: string }> = {
	github: { template: 'https://github.com/OWNER/REPO/issues/new?title={title}&body={body}', api: 'https://api.github.com', repository: 'owner/name' },
	gitlab: { template: 'https://gitlab.com/GROUP/PROJECT/-/issues/new?issue[title]={title}&issue[description]={body}', api: 'https://gitlab.com/api/v4', repository: 'group/project' },
	jira: { template: 'https://jira.example.com/secure/CreateIssueDetails!init.jspa?pid=10000&issuetype=1&summary={title}&description={body}', api: 'https://example.atlassian.net', repository: 'KEY' },
	gitea: { template: 'https://gitea.example.com/OWNER/REPO/issues/new?title={title}&body={body}', api: 'https://gitea.example.com/api/v1', repository: 'owner/name' },
};

const KINDS = [['github', 'GitHub'], ['gitlab', 'GitLab'], ['jira', 'Jira'], ['gitea', 'Gitea']] as const;
const ASSIGNEES = 'ann@example.com = ann\n@feed-team = bob';
const LABEL = 'performance', TYPE = 'Bug';

const labelsOf = (text: string) => text.split(',').map((l) => l.trim()).filter(Boolean);
/** "bob@example.com = bob", one per line. */
const assigneesOf = (text: string) => Object.fromEntries(text.split('\n').map((l) => l.split('=').map((p) => p.trim())).filter(([who, login]) => who && login));

/** A line of text. */
export function Field({ name, label, value, put, hint, placeholder, type = 'text' }: { name: string; label: string; value: string; put: (v: string) => void; hint?: string; placeholder?: string; type?: string }) {
	return (
		<label class="list">{label}{hint && <>{' '}<span class="quiet">{hint}</span></>}
			<input name={name} class="mono wide" type={type} autocomplete="off" maxLength={1000} spellcheck={false} value={value} placeholder={placeholder} onInput={(e) => put(e.currentTarget.value)} /></label>
	);
}

function Form({ v, keep }: { v: TrackerOf; keep: (t: object) => Promise<boolean> }) {
	const first = { for: v.for, template: v.template, api: v.api ?? '', repository: v.repository ?? '', user: v.user ?? '', issue_type: v.issue_type ?? '', token: '',
		labels: (v.labels ?? []).join(', '), assignees: Object.entries(v.assignees ?? {}).map(([who, login]) => `${who} = ${login}`).join('\n') };
	const [d, put] = useState(first);
	const set = (name: keyof typeof d) => (value: string) => put({ ...d, [name]: value });
	const example = EXAMPLES[d.for];
	const save = (e: Event) => {
		e.preventDefault();
		const { token, labels, assignees, ...texts } = d;
		void keep({ ...Object.fromEntries(Object.entries(texts).map(([k, x]) => [k, x.trim()])), labels: labelsOf(labels), assignees: assigneesOf(assignees), ...(token && { token }) });
	};
	return (
		<form class="rule" onSubmit={save} aria-label={tr('Issue tracker')}>
			<label class="inline">{tr('Issue tracker')}{' '}<select name="for" value={d.for} onChange={(e) => put({ ...d, for: e.currentTarget.value })}>
				{KINDS.map(([kind, name]) => <option key={kind} value={kind}>{name}</option>)}</select></label>
			<Field name="template" label={tr('URL of a new issue')} hint={tr('with {names}; empty: none', { names: '{title}, {body}' })} value={d.template} put={set('template')} placeholder={example.template} />
			<details open={!!v.api}><summary>{tr('Create issues with a button')}</summary>
				<p class="quiet">{tr('With an API, a second button creates the issue and assigns it to the author of the change. Closing the issue marks its regression as fixed.')}</p>
				<div class="lists">
					<Field name="api" label={tr('API URL')} hint={tr('empty: none')} value={d.api} put={set('api')} placeholder={example.api} />
					{d.api && <>
						<Field name="repository" label={d.for === 'jira' ? tr('Project key') : d.for === 'gitlab' ? tr('Project') : tr('Repository')} value={d.repository} put={set('repository')} placeholder={example.repository} />
						{d.for === 'jira' && <>
							<Field name="user" label={tr('User')} hint={tr('email address, of Jira Cloud only')} value={d.user} put={set('user')} />
							<Field name="issue_type" label={tr('Issue type')} value={d.issue_type} put={set('issue_type')} placeholder={TYPE} />
						</>}
						<Field name="token" label={tr('Token')} hint={v.token_lost ? tr('the stored one cannot be decrypted: enter it again') : v.token_set ? tr('stored; enter another to replace it') : tr('stored encrypted')} value={d.token} put={set('token')} type="password" />
						<Field name="labels" label={tr('Labels')} hint={tr('separated by commas')} value={d.labels} put={set('labels')} placeholder={LABEL} />
					</>}
				</div>
				{d.api && <label class="list">{tr('Assignees')}{' '}<span class="quiet">{tr('one per line: email address or name of an author, or owner = login')}</span>
					<textarea name="assignees" class="mono" rows={3} spellcheck={false} value={d.assignees} placeholder={ASSIGNEES} onInput={(e) => set('assignees')(e.currentTarget.value)} /></label>}
			</details>
			<div class="row"><button class="primary" disabled={JSON.stringify(d) === JSON.stringify(first)}>{tr('Save')}</button></div>
		</form>
	);
}

export function Tracker() {
	const load = useLoad('tracker', () => get<TrackerOf>('/api/v1/tracker'));
	const [error, change] = useChange(load.again);
	const invalid = useInvalid('tracker', load.value);
	return (
		<Panel title={tr('Issue tracker')} id="tracker">
			<Pending of={load} what={tr('Loading the tracker')} />
			<Invalid why={invalid} />
			{load.value && <Form key={JSON.stringify(load.value)} v={load.value} keep={(t) => change(() => send('PUT', '/api/v1/tracker', t))} />}
			{error && <Failure error={error} />}
			{load.value && <p class="quiet">{tr('Regressions and ANR groups get a button that opens a prefilled issue there.')}</p>}
		</Panel>
	);
}
