// How much JavaScript the page may have, gzipped: the workbench, in which a trace is read; beside it the
// pages about many traces and those where a project is kept, which nobody loads who does not open them;
// and the tables of another language, which nobody loads who does not read it.
const KB = 1024;
export const BUDGETS = { workbench: 105 * KB, fleet: 60 * KB, manage: 24 * KB, chinese: 60 * KB };
const FLEET = /^(regressions|search|anrs|anrgroup|hangs|locks|fleet|versus|detectors|webhooks|issue|source)\w*-/; // files of those pages
const MANAGE = /^(builds|keyspage|people|account|audit|capture|retention|quarantine)-/;

/** Which budget a built file counts against. */
export const budgetOf = (file) => (/\.zh-/.test(file) ? 'chinese' : FLEET.test(file) ? 'fleet' : MANAGE.test(file) ? 'manage' : 'workbench');
