// The build id of an ELF file, such as a .so: the server names native frames by the symbols of their build id.
const NOTES_MAX = 64 * 1024;
const PT_NOTE = 4;
const NT_GNU_BUILD_ID = 3;
const GNU = 0x474e5500;

const aligned = (n: number) => Math.ceil(n / 4) * 4;

function buildIdIn(notes: DataView, little: boolean): string {
	for (let at = 0; at + 16 <= notes.byteLength;) {
		const [name, id, type] = [0, 4, 8].map((field) => notes.getUint32(at + field, little));
		const from = at + 12 + aligned(name);
		if (type === NT_GNU_BUILD_ID && name === 4 && notes.getUint32(at + 12) === GNU && from + id <= notes.byteLength)
			return Array.from({ length: id }, (_, i) => notes.getUint8(from + i).toString(16).padStart(2, '0')).join('');
		at = from + aligned(id);
	}
	return '';
}

/** Its hex digits; '' if the file has none. */
export async function buildIdOf(file: Blob): Promise<string> {
	const read = async (at: number, bytes: number) => new DataView(await file.slice(at, at + bytes).arrayBuffer());
	const head = await read(0, 64);
	if (head.byteLength < 64) return '';
	const wide = head.getUint8(4) === 2;
	const little = head.getUint8(5) === 1;
	const word = (v: DataView, at: number) => (wide ? Number(v.getBigUint64(at, little)) : v.getUint32(at, little));
	const size = head.getUint16(wide ? 54 : 42, little);
	if (size < (wide ? 56 : 32)) return '';
	const segments = await read(word(head, wide ? 32 : 28), size * head.getUint16(wide ? 56 : 44, little));
	for (let at = 0; at + size <= segments.byteLength; at += size) {
		if (segments.getUint32(at, little) !== PT_NOTE) continue;
		const notes = await read(word(segments, at + (wide ? 8 : 4)), Math.min(word(segments, at + (wide ? 32 : 16)), NOTES_MAX));
		const id = buildIdIn(notes, little);
		if (id) return id;
	}
	return '';
}
