// A button that opens the dialog for files to upload.
import { useState } from 'preact/hooks';
import { tr } from '../i18n/strings/frame';
import { ASIDE, later } from '../ui/later';

const dialog = later<{ close: () => void; details?: boolean }>('upload', async () => (await import('../list/uploads')).UploadDialog, ASIDE);

/** `details`: the form for app, version and scenario is open. */
export function UploadButton({ label = tr('Upload'), details }: { label?: string; details?: boolean }) {
	const [open, show] = useState(false);
	return <>
		<button class="small" onClick={() => show(true)}>{label}</button>
		{open && <dialog.Page close={() => show(false)} details={details} />}
	</>;
}
