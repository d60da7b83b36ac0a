// Limits of the page's gzipped JavaScript: the workbench, which shows one trace; the pages about many traces
// and those that manage a project, each loaded when opened; the texts of another language, loaded for
// its readers; the messages of the server in that language, loaded with the first message.
const KB = 1024;
export const BUDGETS = { workbench: 120 * KB, fleet: 80 * KB, manage: 32 * KB, chinese: 68 * KB, messages: 30 * KB };
const FLEET = /^(home|inbox|palette|list|uploads|upload|regressions|search|anrs|anrgroup|hangs|locks|fleet|versus|detectors|webhooks|issue|source)\w*-/; // files of those pages
const MANAGE = /^(builds|keyspage|people|account|audit|capture|retention|quarantine|health)-/;

/** Which budget a built file counts against; a piece that several pages share by the folder that most of it is from. */
export function budgetOf(file, inputs = {}) {
	if (/^servermessages-/.test(file)) return 'messages';
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
