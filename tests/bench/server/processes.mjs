/* processes.mjs - the processor time of a process and its children. */
import fs from 'node:fs';

const TICKS = 100; // a second, of /proc

/* ms of a process and of its ended children; 0: the process has ended itself. */
function ticksOf(pid) {
	try {
		return fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 15).reduce((sum, n) => sum + (Number(n) * 1000) / TICKS, 0);
	} catch (e) {
		if (e.code !== 'ENOENT' && e.code !== 'ESRCH') throw e;
		return 0;
	}
}
const childrenOf = (pid) => fs.readdirSync(`/proc/${pid}/task`).flatMap((tid) => fs.readFileSync(`/proc/${pid}/task/${tid}/children`, 'utf8').trim().split(' ').filter(Boolean));
export const cpuOf = (pid) => [pid, ...childrenOf(pid)].reduce((sum, of) => sum + ticksOf(of), 0);
