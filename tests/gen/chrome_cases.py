#!/usr/bin/env python3
"""Writes the inputs of the golden cases of Chrome's JSON traces. The same bytes on every machine.
   chrome_cases.py FOLDER      (tests/golden of the checkout)"""
import json
import os
import random
import sys

MINIMAL = '''[{"name":"main","ph":"X","ts":1000000.5,"dur":2500.25,"tdur":1000,"pid":7,"tid":7},
{"name":"inner","ph":"B","ts":1001000,"pid":7,"tid":7,"tts":50},
{"ph":"E","ts":1002000,"pid":7,"tid":7,"tts":450}
'''

BROWSER, RENDERER = 2211, 2290
MAIN, IO, COMPOSITOR = 2211, 2240, 2301


def event(ph, us, pid, tid, name, cat='toplevel', **more):
    return dict(ph=ph, ts=us, pid=pid, tid=tid, name=name, cat=cat, **more)


def browser(frames):
    """A page that loads and draws: tasks with both clocks, requests, frames that go through two processes."""
    rnd = random.Random(11)
    out = [{'ph': 'M', 'pid': p, 'tid': t, 'ts': 0, 'name': n, 'args': {'name': v}} for p, t, n, v in (
        (BROWSER, 0, 'process_name', 'Browser'), (RENDERER, 0, 'process_name', 'Renderer'),
        (BROWSER, MAIN, 'thread_name', 'CrBrowserMain'), (BROWSER, IO, 'thread_name', 'Chrome_IOThread'),
        (RENDERER, COMPOSITOR, 'thread_name', 'Compositor'))]
    out.append({'ph': 'M', 'pid': BROWSER, 'tid': MAIN, 'ts': 0, 'name': 'thread_sort_index', 'args': {'sort_index': -1}})
    t = 7_200_000_000.0
    for n in range(frames):
        us = round(t + rnd.random() * 100, 3)
        out.append(event('b', us, BROWSER, IO, 'URLRequest', 'netlog', id2={'local': hex(100 + n)}))
        out.append(event('b', us + 5, BROWSER, IO, 'SOCKET', 'netlog', id2={'local': hex(100 + n)}))
        out.append(event('n', us + 7, BROWSER, IO, 'bytes', 'netlog', id2={'local': hex(100 + n)}))
        out.append(event('s', us + 20, BROWSER, MAIN, 'frame', 'flow', id=n))
        # a task is written when it ends: it begins before the lines above it
        out.append(event('X', us, BROWSER, MAIN, 'ThreadPool_RunTask', dur=round(900 + rnd.random(), 3), tts=1000 + n, tdur=400))
        out.append(event('t', us + 300, RENDERER, COMPOSITOR, 'frame', 'flow', id=n))
        out.append(event('B', us + 300, RENDERER, COMPOSITOR, 'Draw', 'cc', tts=20 * n))
        out.append(event('B', us + 310, RENDERER, COMPOSITOR, 'monitor contention with owner DB (2250) at void a.B.c()(B.java:5) '
                         'waiters=0 blocking from void d.E.f()(E.java:6)', 'cc'))
        out.append(event('E', us + 340, RENDERER, COMPOSITOR, '', 'cc'))
        out.append(event('E', us + 390, RENDERER, COMPOSITOR, 'Draw', 'cc', tts=20 * n + 15))
        out.append(event('f', us + 395, BROWSER, MAIN, 'frame', 'flow', id=n, bp='e'))
        out.append(event('i', us + 400, RENDERER, COMPOSITOR, 'vsync', s='gpt'[n % 3]))
        out.append(event('C', us + 410, BROWSER, MAIN, 'memory', args={'heap': 1 << 20, 'code': 0.25 + n}))
        out.append(event('C', us + 410, BROWSER, MAIN, 'fps', args={'value': 60 - n % 2}))
        out.append(event('e', us + 500, BROWSER, IO, 'SOCKET', 'netlog', id2={'local': hex(100 + n)}))
        out.append(event('e', us + 520, BROWSER, IO, 'URLRequest', 'netlog', id2={'local': hex(100 + n)}))
        out.append(event('S', us, BROWSER, MAIN, 'Scroll', 'input', id='word-%d' % n))
        out.append(event('T', us + 50, BROWSER, MAIN, 'Scroll', 'input', id='word-%d' % n, args={'step': 'one'}))
        out.append(event('F', us + 90, BROWSER, MAIN, 'Scroll', 'input', id='word-%d' % n))
        t += 16_667
    out.append(event('N', t, BROWSER, MAIN, 'tree', id='0x7'))
    out.append(event('P', t, BROWSER, MAIN, 'sample', sf=3))
    return {'displayTimeUnit': 'ms', 'otherData': {'version': 'a "quoted" } ]'}, 'traceEvents': out, 'stackFrames': {'3': {'name': 'x'}},
            'systemTraceEvents': '# tracer: nop\n   Compositor-2301 (2290) [001] ...1 7200.010000: tracing_mark_write: B|2290|kernel "side"\n'
                                 '   Compositor-2301 (2290) [001] ...1 7200.010100: tracing_mark_write: E|2290\n',
            'metadata': {'clock-domain': 'LINUX_CLOCK_MONOTONIC', 'os-name': 'Android'}}


# what is odd: each costs itself
TRUNCATED = '''{"traceEvents": [
{"ph":"X","ts":5000000,"dur":10,"pid":"app","tid":"render","name":"words for ids"},
{"ph":"X","ts":"5000001","dur":"8","pid":"1","tid":"2","name":"numbers as words"},
{"ph":"X","ts":5000002,"dur":-4,"pid":1,"tid":2,"name":"ends before it begins"},
{"ph":"X","pid":1,"tid":2,"name":"no time"},
{"ph":"X","ts":1e300,"pid":1,"tid":2,"name":"no possible time"},
{"ph":"Q","ts":1,"name":"no such phase"}, {"ts":2}, {"ph": nonsense}, 17, "x",
{"ph":"E","ts":5000003,"pid":1,"tid":2},
{"ph":"F","ts":5000003,"pid":1,"tid":2,"id":4,"name":"never begun"},
{"ph":"f","ts":5000003,"pid":1,"tid":2,"id":4,"name":"never begun"},
{"ph":"b","ts":5000003,"pid":1,"tid":2,"cat":"c","name":"no id"},
{"ph":"b","ts":5000004,"pid":1,"tid":2,"cat":"c","id":18446744073709551615,"name":"never ended"},
{"ph":"C","ts":5000004,"pid":1,"tid":2,"name":"no numbers","args":{"a":"b"}},
{"ph":"X","ts":5000005,"dur":3,"pid":1,"tid":2,"name":"bytes \xff"},
{"ph":"B","ts":5000006,"pid":1,"tid":2,"name":"open", "args":{"s":"}]"}},
{"ph":"B","ts":5000007,"pid":1,"tid":2,"name":"cu'''

GARBAGE = '{"traceEvents": "none", "displayTimeUnit":"ns"}'


def main():
    for case, data in (('minimal', MINIMAL.encode()), ('realistic', json.dumps(browser(12), indent=0).encode()),
                       ('truncated', TRUNCATED.encode('latin-1')), ('garbage', GARBAGE.encode())):
        os.makedirs(os.path.join(sys.argv[1], 'chrome', case), exist_ok=True)
        with open(os.path.join(sys.argv[1], 'chrome', case, 'input'), 'wb') as f:
            f.write(data)


main()
