// How much JavaScript the page may have, gzipped: the workbench, in which a trace is read; beside it the
// pages about many traces and those where a project is kept, which nobody loads who does not open them;
// and the tables of another language, which nobody loads who does not read it; of those apart what the
// server says, which comes with its first sentence.
const KB = 1024;
export const BUDGETS = { workbench: 112 * KB, fleet: 60 * KB, manage: 24 * KB, chinese: 60 * KB, said: 30 * KB };
const FLEET = /^(regressions|search|anrs|anrgroup|hangs|locks|fleet|versus|detectors|webhooks|issue|source)\w*-/; // files of those pages
const MANAGE = /^(builds|keyspage|people|account|audit|capture|retention|quarantine)-/;

/** Which budget a built file counts against. */
export const budgetOf = (file) => (/^said-/.test(file) ? 'said' : /\.zh-/.test(file) ? 'chinese' : FLEET.test(file) ? 'fleet' : MANAGE.test(file) ? 'manage' : 'workbench');
