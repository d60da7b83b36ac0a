#!/usr/bin/env python3
"""Writes the inputs of the golden cases of the text traces: kernel text, systrace pages, btrace's side files.
The same bytes on every machine.      atrace_cases.py FOLDER      (tests/golden of the checkout)"""
import base64
import gzip
import os
import random
import sys
import zlib

HEAD = '# tracer: nop\n#\n# entries-in-buffer/entries-written: %d/%d   #P:4\n#\n' \
       '#           TASK-PID    TGID   CPU#  ||||    TIMESTAMP  FUNCTION\n' \
       '#              | |        |      |   ||||       |         |\n'


def line(task, tid, tgid, cpu, flags, time_us, event, args):
    return '%16s-%-5d (%5s) [%03d] %s %d.%06d: %s: %s\n' % (
        task, tid, tgid if tgid else '-----', cpu, flags, time_us // 1000000, time_us % 1000000, event, args)


def mark(task, tid, tgid, cpu, time_us, text):
    return line(task, tid, tgid, cpu, '...1', time_us, 'tracing_mark_write', text)


def switch(cpu, time_us, prev, prev_state, nxt):
    return line(prev[0] if prev[1] else '<idle>', prev[1], prev[2], cpu, 'd..2', time_us, 'sched_switch',
                'prev_comm=%s prev_pid=%d prev_prio=120 prev_state=%s ==> next_comm=%s next_pid=%d next_prio=120' % (
                    prev[0], prev[1], prev_state, nxt[0], nxt[1]))


MAIN = ('.acme.shop', 21010, 21010)
RENDER = ('RenderThread', 21034, 21010)
BINDER = ('Binder:21010_2', 21021, 21010)
DISK = ('disk - [1] (w)', 21055, 21010)
KWORKER = ('kworker/u16:3', 344, 0)
IDLE = ('swapper/0', 0, 0)


def frame(out, t, n, rnd):
    """One frame of an application: input, layout, a contended lock, drawing on another thread."""
    def main(us, text):
        out.append((t + us, mark(*MAIN, 0, t + us, text)))
    out.append((t, switch(0, t, IDLE, 'R', MAIN)))
    main(20, 'B|21010|Choreographer#doFrame %d' % n)
    main(40, 'B|21010|input')
    main(60 + rnd.randrange(20), 'S|21010|deliverInputEvent|%d' % n)
    main(300, 'F|21010|deliverInputEvent|%d' % n)
    main(310, 'E|21010')
    main(320, 'B|21010|traversal')
    main(400, 'B|21010|monitor contention with owner disk - [1] (w) (21055) at void com.acme.db.Store.put(java.lang.'
         'String, int)(Store.java:88) waiters=1 blocking from int com.acme.db.Store.size()(Store.java:31)')
    out.append((t + 420, switch(0, t + 420, MAIN, 'S', IDLE)))
    out.append((t + 2400, line(*DISK, 1, 'd..3', t + 2400, 'sched_waking',
                               'comm=.acme.shop pid=21010 prio=110 target_cpu=000')))
    out.append((t + 2440, switch(0, t + 2440, IDLE, 'R', MAIN)))
    main(2460, 'E|21010')
    main(2500, 'B|21010|draw')
    main(2520, 'B|21010|prepareRoot RootRenderNode(com.acme.shop/com.acme.shop.MainActivity@NO_ID)')
    main(2800, 'E|21010')
    main(2900, 'E|21010')
    main(2910, 'E')
    main(2990, 'E|')
    main(3000, 'C|21010|queued frames|%d' % (n % 3))
    out.append((t + 3010, switch(0, t + 3010, MAIN, 'D', KWORKER)))
    out.append((t + 3100, line(*KWORKER, 0, 'd..2', t + 3100, 'sched_blocked_reason',
                               'pid=21010 iowait=1 caller=filemap_fault+0x1c/0x40')))
    out.append((t + 3110, line(*KWORKER, 0, 'd..3', t + 3110, 'sched_wakeup',
                               'comm=.acme.shop pid=21010 prio=110 target_cpu=000')))
    out.append((t + 3150, switch(0, t + 3150, KWORKER, 'R+', MAIN)))
    out.append((t + 3200, mark(*RENDER, 2, t + 3200, 'B|21010|DrawFrames %d' % n)))
    out.append((t + 3900, mark(*RENDER, 2, t + 3900, 'E|21010')))
    out.append((t + 3950, switch(0, t + 3950, MAIN, 'S', IDLE)))


def kernel_lines(frames):
    rnd = random.Random(11)
    out = [(500, mark('<...>', 19161, 0, 1, 4000000500, 'trace_event_clock_sync: parent_ts=4000.020500')),
           (510, mark('<...>', 19161, 0, 1, 4000000510, 'trace_event_clock_sync: realtime_ts=1790000000123')),
           (700, line(*KWORKER, 3, 'd.h1', 4000000700, 'cpu_frequency', 'state=1804800 cpu_id=0')),
           (701, line(*KWORKER, 3, 'd.h1', 4000000701, 'cpu_frequency_limits', 'min=300000 max=2841600 cpu_id=0')),
           (702, line(*KWORKER, 3, 'd.h1', 4000000702, 'clock_set_rate', 'gpu state=257000000 cpu_id=3')),
           (703, line(*KWORKER, 3, 'd.h1', 4000000703, 'cpu_idle', 'state=4294967295 cpu_id=3'))]
    for n in range(frames):
        frame(out, 4000001000 + n * 16667, n, rnd)
    out += [(900000, mark(*BINDER, 1, 4000900000, 'G|21010|downloads|image 7|7')),
            (900010, mark(*BINDER, 1, 4000900010, 'I|21010|cache miss')),
            (900020, mark(*BINDER, 1, 4000900020, 'N|21010|downloads|retry')),
            (900030, mark(*MAIN, 1, 4000900030, 'H|21010|downloads|7')),
            (900040, mark(*BINDER, 1, 4000900040, 'B|21010|Lock contention on Class linker classes lock (owner tid: 21010)')),
            (900050, mark(*BINDER, 1, 4000900050, 'E|21010')),
            (900060, mark('HeapTaskDaemon', 21019, 21010, 1, 4000900060, 'B|21010|Background concurrent copying GC')),
            (900990, mark('HeapTaskDaemon', 21019, 21010, 1, 4000900990, 'E|21010')),
            (901000, mark(*MAIN, 1, 4000901000, 'B|21010|never ended')),
            (901010, mark('HeapTaskDaemon', 21019, 21010, 1, 4000901010, 'E|21010'))]
    return [text for _, text in sorted(out, key=lambda e: e[0] if e[0] < 4000000000 else e[0] - 4000000000)]


def kernel_text(frames):
    return HEAD % (1200, 1340) + ''.join(kernel_lines(frames))


ATRACE_MINIMAL = """\
# tracer: nop
          thread-12    (   10) [000] ...1     5.000001: tracing_mark_write: B|10|outer
          thread-12    (   10) [000] ...1     5.000002: tracing_mark_write: B|10|a|b
          thread-12    (   10) [001] ...1     5.000004: tracing_mark_write: E|10
          thread-12    (   10) [001] ...1     5.000005: tracing_mark_write: E|10
"""

ATRACE_GARBAGE = """\
capturing trace... done
TRACE:
# tracer: nop
CPU:2 [LOST 17 EVENTS]
 -1 [] no
   a-b - [x] (c)-12   (-----) [001] d..1 5.000001: print: 0xffffff8000: B|10|first line
second line of the print
          thread-12    (   10) [000] ...1 5.000002: tracing_mark_write: S|10||3
          thread-12    (   10) [000] ...1 5.000002: tracing_mark_write: C|10|x|1e3
          thread-12    (   10) [000] ...1 5.000002: tracing_mark_write: B|ten|x
          thread-12    (   10) [000] ...1 5.000003: tracing_mark_write: B|10|
          thread-12    (   10) [000] ...1 5.000004: tracing_mark_write: just words
          thread-12    (   10) [000] ...1 5.000005: tracing_mark_write: E
          thread-12    (   10) [000] ...1 5.000006: tracing_mark_write: E
          thread-12    (   10) [000] ...1 5.000007: tracing_mark_write: E|10
          thread-12    (   10) [000] ...1 5.000008: tracing_mark_write: F|10|x|1
          thread-12    (   10) [000] ...1 5.000009: sched_switch: prev_comm=a ==> next_comm=b
          thread-12    (   10) [000] ...1 1.000009: tracing_mark_write: B|10|before the beginning
          thread-13    (   10) [000] ...1 123456789012.000009: tracing_mark_write: E
  10/task/99
  thread-99    [000] 5.1: a:b: c
  odd-14    [000] 5.2:x
"""


def write(folder, fmt, case, data):
    path = os.path.join(folder, fmt, case)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, 'input'), 'wb') as f:
        f.write(data.encode('latin-1') if isinstance(data, str) else data)


def main():
    folder = sys.argv[1]
    write(folder, 'atrace', 'minimal', ATRACE_MINIMAL)
    write(folder, 'atrace', 'realistic', kernel_text(12))
    packed = zlib.compress(kernel_text(6).encode(), 9)
    write(folder, 'atrace', 'truncated', b'capturing trace... done\nTRACE:\n' + packed[:len(packed) * 3 // 4])
    write(folder, 'atrace', 'garbage', ATRACE_GARBAGE)


main()
