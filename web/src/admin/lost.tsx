// Shown instead of a page: unknown address, no permission, no role, unknown project.
import { Failure } from '../ui/parts';
import { Refusal } from '../api/api';
import { tr } from '../i18n/strings/frame';

export type Why = 'address' | 'admin' | 'user' | 'role' | 'project';

export function Lost({ why, label = '' }: { why: Why; label?: string }) {
	if (why === 'project')
		return (
			<main><h1>{tr('Project not found')}</h1><div class="notice bad" role="alert">
				<p>{tr('The project in this address does not exist, or you have no access to it.')}</p>
				<p><a class="button" href="/" target="_self">{tr('Show a project you can access')}</a></p>
			</div></main>
		);
	if (why === 'role')
		return (
			<main><h1>{tr('You do not have a role in any project yet.')}</h1><div class="notice">
				<p>{tr('Ask an admin for a role, then reload this page.')}</p>
			</div></main>
		);
	if (why === 'address') return <main><h1>{tr('Page not found')}</h1><Failure title={tr('There is no page at this address.')} error={new Refusal(404, tr('Check the link, or choose a page from the menu.'))} /></main>;
	return (
		<main>
			<h1>{label || tr('Your account')}</h1>
			<div class="notice warn" role="alert">
				<strong>{why === 'admin' ? tr('Only admins of this project can open this page.') : tr('You are signed in with a key, which has no account.')}</strong>
				<p>{why === 'admin' ? tr('Ask an admin for the admin role, or choose another project.') : tr('Sign in with a name and password to open this page.')}</p>
			</div>
		</main>
	);
}
