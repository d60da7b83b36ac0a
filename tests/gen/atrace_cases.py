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


RHEA_MINIMAL = """\
512|TRACE_START|987654321000123|28069|2147483647|2|1
123456.790000001 28069: B|28069|outer
123456.790000002 28069: B|28069|Class:method[a|b, c: d]
123456.790000004 28069: E|28069
123456.790000005 28069: E|28069
517|TRACE_END|987654322000123|28069|2147483647|2|1
"""

# main thread only, a bare E, names that are facts, an E without a B; the file ends in a line
RHEA_TRUNCATED = """\
512|TRACE_START|5000000123|9|2147483647|2|1
.900000000: B|9|Looper.loop
1.000000000: B|9|<rhea-draft>binder transact[a.b.IUnknown:5]
1.000000100: E
1.000000200: B|9|Object#wait(obj:0x1f3a, timeout:250)
1.250000200: E|9
1.300000000: E|9
1.300000001: E|9
1.400000000: B|9|DefineClass Lcom/acme/A;
1.4000000"""

RHEA_GARBAGE = """\
9|TRACE_START|1|7|2147483647|2|1
2.000000001 8: B|7|x
2.000001 8: B|7|six digits are another version
2.00000000 8: B|7|eight digits
2.000000002 8 B|7|no colon
2.000000002 8: S|7|async is not kept by the phone|1
2.000000003 8: B|seven|x
2.000000004 8: E|7|with a name|TRACE_END|
2.000000005 8: E
0.100000000 8: B|7|long before
what is this
"""


def rhea_text(calls):
    """An application's sections as btrace 2.0's hooks and the system write them."""
    rnd = random.Random(7)
    out = ['512|TRACE_START|4012000000123|21010|2147483647|2|1\n']
    t = 4000 * 10**9 + 123456789

    def put(tid, text, step=None):
        nonlocal t
        t += step if step is not None else 500 + rnd.randrange(4000)
        out.append('%d.%09d %d: %s\n' % (t // 10**9, t % 10**9, tid, text))
    facts = ['write:/data/user/0/com.acme.shop/files/cart.db-wal,size:4096', 'open:/data/app/base.apk', 'io:sync',
             'pread:/data/app/base.apk,size:512,offset:8192', 'DefineClass Lcom/acme/shop/Cart;', 'Thread#sleep',
             'VerifyClass com.acme.shop.Cart', 'Object#wait(obj:0x2f81, timeout:0)', 'Object#notifyAll(obj:0x2f81)',
             'Unsafe#park(obj:0x5d1, time:0)', 'Unsafe#unpark(obj:0x5d1)', 'pthread_create tid=21077',
             '<rhea-draft>binder transact[android.content.pm.IPackageManager:5]',
             'draw TextView(item_row.xml@0x7f0a0012)', 'draw the rest', 'Lock contention on intern table lock (owner tid: 21055)',
             'monitor contention with owner DB writer (2) (21055) at void com.acme.db.Store.put(int)(Store.java:88) waiters=0 '
             'blocking from void com.acme.ui.Row.bind()(Row.java:12)', 'Explicit concurrent copying GC', 'Choreographer#doFrame']
    for n in range(calls):
        tid = 21010 if n % 3 else 21034
        put(tid, 'B|21010|' + facts[n % len(facts)])
        if n % 4 == 0:
            put(tid, 'B|21010|Row:bind[%d]' % n)
            put(tid, 'E|21010' if n % 8 else 'E')
        put(tid, 'E|21010')
    out.append('%d|TRACE_END|4013000000123|21010|2147483647|2|1\n' % (512 + len(out)))
    return ''.join(out)


RHEA1_MINIMAL = """\
512|TRACE_START|1306401857000000|10|2147483647|2|1
1306401.857369 10: B|10|monotonic_time: 232073.280777
1306401.857370 10: B|10|B:Application:onCreate
1306401.857380 10: B|10|VerifyClass com.acme.A
1306401.857390 10: E|10
1306401.857400 10: B|10|E:Application:onCreate
600|TRACE_END|1306401858000000|10|2147483647|2|1
"""

RHEA1_TRUNCATED = """\
512|TRACE_START|1306401857000000|10|2147483647|2|1
1306401.857370: B|10|B:17
1306401.857380: B|10|B:18
1306401.857390: E|10
1306401.857400: B|10|E:"""

RHEA1_GARBAGE = """\
1306401.857370 10: B|10|E:X
1306401.857371 10: B|10|B:
1306401.857372 10: B|10|T:Y
1306401.857373 10: E|10
1306401.857374 10: B|10|monotonic_time: soon
1306401.857375 10: B|10|B:A
nonsense
1306401.857376 10: B|10|E:B
"""


def rhea1_text():
    """Calls, exceptions and recursion of two threads; test_rhea.c has what each should give."""
    rnd = random.Random(5)
    out = ['512|TRACE_START|1306401857000000|16667|2147483647|2|1\n']
    t = 1306401857369

    def put(tid, text):
        nonlocal t
        t += 1 + rnd.randrange(300)
        out.append('%d.%06d %d: %s\n' % (t // 10**6, t % 10**6, tid, text))

    def call(tid, name, depth):
        put(tid, 'B|16667|B:' + name)
        for i in range(depth):
            call(tid, '%s.%d' % (name, i), depth - 1)
        how = rnd.randrange(12)
        if how == 0:
            put(tid, 'B|16667|T:' + name)      # thrown and left
        elif how == 1:
            pass                                # left by what a callee threw
        elif how == 2:
            put(tid, 'B|16667|T:' + name)      # thrown and caught
            put(tid, 'B|16667|E:' + name)
        else:
            if how == 3:
                put(tid, 'B|16667|read:/proc/self/stat,size:1024')
                put(tid, 'E|16667')
            put(tid, 'B|16667|E:' + name)
    put(16667, 'B|16667|monotonic_time: 232073.280777')
    for n in range(6):
        call(16667 if n % 2 else 16690, 'Page%d:open' % n, 3)
    out.append('900|TRACE_END|1306402857000000|16667|2147483647|2|1\n')
    return ''.join(out)


BINDER_TXT = """\
#android.os.IHintManager
TRANSACTION_createHintSession:1
TRANSACTION_getHintSessionPreferredRate:2
#android.content.pm.IPackageManager
TRANSACTION_getPackageInfo:5
"""

BINDER_GARBAGE = """\
#android.os.IHintManager
TRANSACTION_a:1
TRANSACTION_b:2
TRANSACTION_c:3
FIRST_CALL_TRANSACTION:1

TRANSACTION_b
TRANSACTION_c:-1
TRANSACTION_d:4294967296
:4
#no such thing
#
TRANSACTION_e:1
"""


def binder_text():
    out = []
    for n in range(20):
        out.append('#android.%s.IService%d\n' % ('os' if n % 2 else 'view', n))
        for code in range(1, n + 2):
            out.append('TRANSACTION_call%d:%d\n' % (code, code))
    out.append('LAST_CALL_TRANSACTION:16777215\n')
    return ''.join(out)


# what Chrome adds on the kernel's clock, when systrace records both
CHROME = """{"traceEvents": [
{"ph": "M", "pid": 21010, "tid": 21034, "name": "thread_name", "args": {"name": "Chrome <compositor>"}},
{"ph": "X", "pid": 21010, "tid": 21034, "cat": "viz", "name": "DrawFrame", "ts": 4000021000.5, "dur": 250, "tdur": 90},
{"ph": "b", "pid": 21010, "tid": 21034, "cat": "net", "id": "0x1", "name": "load <a>", "ts": 4000021100},
{"ph": "X", "pid": 21010, "tid": 21034, "cat": "viz", "name": "DrawFrame", "ts": 21, "dur": 250},
{"ph": "e", "pid": 21010, "tid": 21034, "cat": "net", "id": "0x1", "name": "load <a>", "ts": 4000022100}
], "metadata": {"clock-domain": "LINUX_CLOCK_MONOTONIC"}}
"""

PAGE = '<!DOCTYPE html>\n<html>\n<head><title>Android System Trace</title>\n<script>\n"use strict";if(1>0){}\n</script>\n' \
       '</head>\n<body>\n%s</body>\n</html>\n'


def page_2012(text):
    lines = ''.join(l.replace('\\', '\\\\').replace('"', '\\"') + '\\n\\\n' for l in text.splitlines())
    return PAGE % ('  <script>\n  var linuxPerfData = "\\\n' + lines + '         \\n";\n  </script>\n')


PS = """\
PROCESS DUMP
USER           PID  PPID     VSZ    RSS WCHAN            PC S NAME                       COMM
u0_a123      21010   812 5123456 123456 SyS_epoll_wait   0 S com.acme.shop              .acme.shop
root             2     0       0      0 kthreadd         0 S [kthreadd]                 kthreadd
a row that is none
USER           PID   TID CMD
u0_a123      21010 21055 disk - [1] (w)
u0_a123      21010 21099 idle-worker
CGROUP DUMP
1:cpu:/
"""


def section(text):
    return '  <script class="trace-data" type="application/text">\n%s  </script>\n' % text


def page_2014(text):
    return PAGE % (section(PS) + section(text) + section(CHROME) + section('{"clocks":"x<y"}\n'))


def viewer(data):
    return PAGE % ('<script id="viewer-data" type="application/json">\n%s\n</script>\n' %
                   base64.encodebytes(data).decode())


def zipped(text):
    return gzip.compress(text.encode(), 9, mtime=0)


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
    write(folder, 'systrace', 'minimal', page_2012(ATRACE_MINIMAL.replace('outer', 'a "quoted\\\\ name')))
    write(folder, 'systrace', 'realistic', page_2014(kernel_text(4)))
    write(folder, 'systrace', 'zipped', viewer(zipped(kernel_text(2))))
    write(folder, 'systrace', 'truncated', viewer(zipped(kernel_text(3)))[:1300])
    write(folder, 'systrace', 'garbage', viewer(zipped('{"traceEvents":[]}')))
    write(folder, 'rhea_atrace', 'minimal', RHEA_MINIMAL)
    write(folder, 'rhea_atrace', 'realistic', rhea_text(190))
    write(folder, 'rhea_atrace', 'truncated', RHEA_TRUNCATED)
    write(folder, 'rhea_atrace', 'garbage', RHEA_GARBAGE)
    write(folder, 'rhea1', 'minimal', RHEA1_MINIMAL)
    write(folder, 'rhea1', 'realistic', rhea1_text())
    write(folder, 'rhea1', 'truncated', RHEA1_TRUNCATED)
    write(folder, 'rhea1', 'garbage', RHEA1_GARBAGE)
    write(folder, 'binder', 'minimal', BINDER_TXT)
    write(folder, 'binder', 'realistic', binder_text())
    write(folder, 'binder', 'truncated', BINDER_TXT[:-3])
    write(folder, 'binder', 'garbage', BINDER_GARBAGE)


main()
