// Limits of the page's gzipped JavaScript: the workbench, which opens a trace; its panels that are loaded when
// first shown; the pages about many traces and those that manage a project, each loaded when opened; the texts
// of another language, loaded for its readers; the messages of the server in that language, loaded with the
// first message.
const KB = 1024;
export const BUDGETS = { workbench: 89 * KB, panels: 32 * KB, fleet: 89 * KB, manage: 32 * KB, chinese: 68 * KB, messages: 31 * KB };
const FLEET = /^(home|inbox|palette|shortcutlist|list|uploads|upload|regressions|search|anrs|anrgroup|locks|fleet|versus|detectors|notifications|issue|source)\w*-/; // files of those pages
const MANAGE = /^(signin|builds|keyspage|people|account|audit|capture|retention|quarantine|health|lost)-/;

/** Which budget a built file counts against; `opens` and `shows` are the files that open a trace, and those of its panels. A
 *  piece that several other pages share counts by the folder that most of it is from. */
export function budgetOf(file, inputs = {}, opens = new Set(), shows = new Set()) {
	if (/^servermessages-/.test(file)) return 'messages';
	if (/\.zh-/.test(file)) return 'chinese';
	if (opens.has(file)) return 'workbench';
	if (FLEET.test(file)) return 'fleet';
	if (MANAGE.test(file)) return 'manage';
	if (shows.has(file)) return 'panels';
	const bytes = { fleet: 0, manage: 0 };
	for (const [path, { bytesInOutput: n }] of Object.entries(inputs)) bytes[/^src\/admin\//.test(path) ? 'manage' : 'fleet'] += n;
	return bytes.manage > bytes.fleet ? 'manage' : 'fleet';
}
