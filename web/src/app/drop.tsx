// Files dropped on any page; the code that sends them and shows their progress is loaded with the first.
import { useLayoutEffect, useState } from 'preact/hooks';
import { may } from '../api/api';
import { tr } from '../i18n/strings/frame';
import { uploads } from '../list/uploadstate';
import { ASIDE, later } from '../ui/later';

const tray = later('tray', async () => (await import('../list/uploads')).Tray, ASIDE);

interface Found { file: File; folder: string }

/** Files of a drop, also in folders.  The drop's data can be read only during the event. */
function filesOf(transfer: DataTransfer): Promise<Found[]> {
	const entries = [...transfer.items].map((i) => i.webkitGetAsEntry?.() ?? null);
	const plain = [...transfer.files].map((file) => ({ file, folder: '' }));
	const out: Found[] = [];
	const walk = async (e: FileSystemEntry): Promise<void> => {
		if (e.isFile) out.push({ file: await new Promise<File>((done, fail) => (e as FileSystemFileEntry).file(done, fail)), folder: e.fullPath.slice(0, -e.name.length) });
		if (!e.isDirectory) return;
		const reader = (e as FileSystemDirectoryEntry).createReader();
		for (;;) {
			const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
			if (some.length === 0) return;
			for (const one of some) await walk(one);
		}
	};
	if (!entries.some((e) => e?.isDirectory)) return Promise.resolve(plain);
	return entries.reduce((before, e) => before.then(() => (e ? walk(e) : undefined)), Promise.resolve()).then(() => out);
}

/** Accepts files dropped on any page, and shows that while they are dragged.  Without permission to upload, only prevents the browser from opening the file. */
export function Drop({ signedIn }: { signedIn: boolean }) {
	const [over, show] = useState(false);
	const [failed, fail] = useState(false); // the code that sends files could not be loaded
	useLayoutEffect(() => {
		const takes = signedIn && may.write;
		const holds = (e: DragEvent) => e.dataTransfer?.types.includes('Files') ?? false;
		const drag = (e: DragEvent) => {
			if (!holds(e)) return;
			e.preventDefault();
			e.dataTransfer!.dropEffect = takes ? 'copy' : 'none';
			if (takes) tray.begin();
			show(true);
		};
		const leave = (e: DragEvent) => {
			if (!e.relatedTarget) show(false);
		};
		const drop = (e: DragEvent) => {
			show(false);
			if (!holds(e)) return;
			e.preventDefault();
			if (!takes) return;
			const files = filesOf(e.dataTransfer!);
			import('../list/uploads').then(async (to) => to.take(await files), () => fail(true));
		};
		addEventListener('dragover', drag);
		addEventListener('dragleave', leave);
		addEventListener('drop', drop);
		return () => {
			removeEventListener('dragover', drag);
			removeEventListener('dragleave', leave);
			removeEventListener('drop', drop);
		};
	}, [signedIn, may.write]);
	return <>
		{over && <div class="dropping" aria-hidden="true"><strong>{!signedIn ? tr('Sign in to upload') : may.write ? tr('Drop to upload') : tr('You cannot upload to this project')}</strong></div>}
		{(failed || uploads.value.length > 0) && <tray.Page />}
	</>;
}
