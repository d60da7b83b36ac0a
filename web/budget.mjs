// How much JavaScript the page may have, gzipped: the workbench, in which a trace is read, and beside it the
// pages about many traces, which nobody loads who does not open them.
const KB = 1024;
export const BUDGETS = { workbench: 120 * KB, fleet: 60 * KB };
const FLEET = /^(regressions|search|anrs|anrgroup|hangs|locks|fleet|versus|detectors|webhooks|issue|source)\w*-/; // files of those pages

/** Which budget a built file counts against. */
export const budgetOf = (file) => (FLEET.test(file) ? 'fleet' : 'workbench');
