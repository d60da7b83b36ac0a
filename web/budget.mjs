// How much JavaScript the page may have, gzipped: the workbench, in which a trace is read; beside it the
// pages about many traces and those where a project is kept, which nobody loads who does not open them;
// and the tables of another language, which nobody loads who does not read it; of those apart what the
// server says, which comes with its first sentence.
const KB = 1024;
export const BUDGETS = { workbench: 120 * KB, fleet: 80 * KB, manage: 32 * KB, chinese: 68 * KB, said: 30 * KB };
const FLEET = /^(home|inbox|palette|list|uploads|upload|regressions|search|anrs|anrgroup|hangs|locks|fleet|versus|detectors|webhooks|issue|source)\w*-/; // files of those pages
const MANAGE = /^(builds|keyspage|people|account|audit|capture|retention|quarantine|health)-/;

/** Which budget a built file counts against; a piece that several pages share by the folder that most of it is from. */
export function budgetOf(file, inputs = {}) {
	if (/^said-/.test(file)) return 'said';
	if (/\.zh-/.test(file)) return 'chinese';
	if (FLEET.test(file)) return 'fleet';
	if (MANAGE.test(file)) return 'manage';
	const bytes = {};
	for (const [path, { bytesInOutput: n }] of Object.entries(inputs)) {
		const folder = /^src\/(fleet|list)\//.test(path) ? 'fleet' : /^src\/admin\//.test(path) ? 'manage' : 'workbench';
		bytes[folder] = (bytes[folder] ?? 0) + n;
	}
	return file.startsWith('chunk-') ? Object.keys(bytes).sort((a, b) => bytes[b] - bytes[a])[0] ?? 'workbench' : 'workbench';
}
