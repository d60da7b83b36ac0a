// Files dropped on any page; what shows their progress is loaded with the first.
import { useLayoutEffect, useState } from 'preact/hooks';
import { may } from '../api/api';
import { tr } from '../i18n/strings/frame';
import { take, uploads } from '../list/upload';
import { ASIDE, later } from '../ui/later';

const tray = later('tray', async () => (await import('../list/uploads')).Tray, ASIDE);

/** Files of a drop, also those in folders.  What it holds can be read during the event only. */
function filesOf(transfer: DataTransfer): Promise<File[]> {
	const entries = [...transfer.items].map((i) => i.webkitGetAsEntry?.() ?? null);
	const plain = [...transfer.files];
	const out: File[] = [];
	const walk = async (e: FileSystemEntry): Promise<void> => {
		if (e.isFile) out.push(await new Promise<File>((done, fail) => (e as FileSystemFileEntry).file(done, fail)));
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

/** Takes what is dropped on any page, and shows that it would. */
export function Drop() {
	const [over, show] = useState(false);
	useLayoutEffect(() => {
		const holds = (e: DragEvent) => may.write && (e.dataTransfer?.types.includes('Files') ?? false);
		const drag = (e: DragEvent) => {
			if (!holds(e)) return;
			e.preventDefault();
			e.dataTransfer!.dropEffect = 'copy';
			tray.begin();
			show(true);
		};
		const leave = (e: DragEvent) => {
			if (!e.relatedTarget) show(false);
		};
		const drop = (e: DragEvent) => {
			show(false);
			if (!holds(e)) return;
			e.preventDefault();
			void filesOf(e.dataTransfer!).then(take);
		};
		addEventListener('dragover', drag);
		addEventListener('dragleave', leave);
		addEventListener('drop', drop);
		return () => {
			removeEventListener('dragover', drag);
			removeEventListener('dragleave', leave);
			removeEventListener('drop', drop);
		};
	}, []);
	return <>
		{over && <div class="dropping" aria-hidden="true"><strong>{tr('Drop to upload')}</strong></div>}
		{uploads.value.length > 0 && <tray.Page />}
	</>;
}
