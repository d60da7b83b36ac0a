#!/usr/bin/env python3
"""A simulated phone that records ART method traces (.trace), in every layout there is.

   art.py LAYOUT [--seed N] [--calls N] [--threads N] [--json FILE]  > file.trace

Layouts: v1-wall v1-cpu v1-dual (text header, then records; v1-global is Dalvik's first), stream-wall
stream-dual, v2b-wall v2b-dual v2c-wall v2c-dual (a header and packets, streaming), v2b-late (methods
named after their use), long-running, counts.  The same seed gives the same calls in each.  --json writes
the facts about them: per thread and method the calls, and the sums of wall and CPU time.
Knows nothing of tracewell; written from the layouts alone."""
import argparse
import json
import struct
import sys

ENTER, EXIT, UNROLL = 0, 1, 2
START_NS = 662173553092000
PID = 15983
POINTERS = 0x7132A000
TICKS = 250000000


class Random:
    def __init__(self, seed):
        self.state = seed * 2654435761 % (1 << 64) or 1

    def below(self, n):
        x = self.state
        x ^= x >> 12
        x ^= x << 25 & (1 << 64) - 1
        x ^= x >> 27
        self.state = x
        return (x * 2685821657736338717 >> 16 & (1 << 32) - 1) % n


class Thread:
    def __init__(self, number, tid, name):
        self.number, self.tid, self.name = number, tid, name
        self.events = []  # action, method, wall_ns, cpu_ns
        self.wall, self.cpu, self.stack = 1000 * number, 0, []
        self.children = []

    def advance(self, random, scale):
        step = (1 + random.below(40)) * scale
        self.wall += step + (random.below(200) * scale if random.below(20) == 0 else 0)
        self.cpu += step // 2 // 1000 * 1000
        return self.wall, self.cpu


def simulate(seed, calls, threads):
    """Calls on each thread, times in whole microseconds so that every layout can hold them."""
    random = Random(seed)
    methods = [('com.example.feature%d.Worker$%d' % (i % 7, i % 3), 'step%d' % i,
                '(I)V' if i % 2 else '()V', 'Worker.java') for i in range(40)]
    methods[3] = ('com.example.Ünï', '<init>', '()V', '')
    made = [Thread(i + 1, PID + i, 'main' if i == 0 else 'pool-1-thread-%d' % i) for i in range(threads)]
    for thread in made:
        for _ in range(calls):
            while thread.stack and random.below(3) == 0:
                action = UNROLL if random.below(50) == 0 else EXIT
                thread.events.append((action, thread.stack.pop(), *thread.advance(random, 1000)))
            if len(thread.stack) < 30:
                method = random.below(len(methods)) if random.below(4) else random.below(5)
                thread.stack.append(method)
                thread.events.append((ENTER, method, *thread.advance(random, 1000)))
        while len(thread.stack) > 1:  # one call stays open
            thread.events.append((EXIT, thread.stack.pop(), *thread.advance(random, 1000)))
    return methods, made


def uleb(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def sleb(n):
    out = bytearray()
    while not -64 <= n < 64:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n & 127]))


def text_header(version, clock, threads, methods, extra=''):
    out = '*version\n%d\ndata-file-overflow=false\nclock=%s\nelapsed-time-usec=20000\n' % (version, clock)
    out += 'clock-call-overhead-nsec=50\nvm=art\npid=%d\n%s*threads\n' % (PID, extra)
    out += ''.join('%d\t%s\n' % (t.number, t.name) for t in threads)
    out += '*methods\n'
    out += ''.join('%#x\t%s\n' % (4 * i, '\t'.join(m)) if i else '0\t%s\n' % '\t'.join(m)
                   for i, m in enumerate(methods))
    return (out + '*end\n').encode()


def v1_lead(version, size):
    return struct.pack('<4sHHQH14x', b'SLOW', version, 32, START_NS // 1000, size)


def v1_record(version, clock, thread, event):
    action, method, wall, cpu = event
    word = 4 * method | action
    if version == 1:
        return struct.pack('<BII', thread.number, word, wall // 1000)
    if version == 3:
        return struct.pack('<HIII', thread.number, word, cpu // 1000, wall // 1000)
    return struct.pack('<HII', thread.number, word, (cpu if clock == 'thread-cpu' else wall) // 1000)


def in_order(threads):
    """Records as one buffer of the recorder has them: by time, ties by thread."""
    rows = [(e[2], t.number, i, t, e) for t in threads for i, e in enumerate(t.events)]
    return [(t, e) for _, _, _, t, e in sorted(rows, key=lambda r: r[:3])]


def v1(version, clock, methods, threads):
    out = text_header(version, clock, threads, methods) + v1_lead(version, 14 if version == 3 else 0)
    return out + b''.join(v1_record(version, clock, t, e) for t, e in in_order(threads))


def stream(version, clock, methods, threads):
    out = bytearray(v1_lead(0xF0 | version, 14 if version == 3 else 10))
    named, known = set(), set()
    for thread, event in in_order(threads):
        if thread not in known:
            name = thread.name.encode()
            out += struct.pack('<HBHH', 0, 2, thread.number, len(name)) + name
            known.add(thread)
        if event[1] not in named:
            line = ('%#x\t%s\n' % (4 * event[1], '\t'.join(methods[event[1]]))).encode()
            out += struct.pack('<HBH', 0, 1, len(line)) + line
            named.add(event[1])
        out += v1_record(version, clock, thread, event)
    text = text_header(version, clock, threads, [])
    return bytes(out) + struct.pack('<HBI', 0, 3, len(text)) + text


def pointer(method):
    return POINTERS + 48 * method


def v2_thread(thread):
    name = thread.name.encode()
    return struct.pack('<BIH', 0, thread.tid, len(name)) + name


def v2_method(method, methods):
    text = ('\t'.join(methods[method]) + '\n').encode()
    return struct.pack('<BQH', 1, pointer(method), len(text)) + text


def entries(thread, count, body):
    return struct.pack('<BI', 2, thread.tid) + struct.pack('<I', count)[:3] + struct.pack('<I', len(body)) + body


def block_b(events, dual, start):
    """Records from the running values `start`; returns them and the values after them."""
    out, (value, wall, cpu) = bytearray(), start
    for action, method, at, cpu_at in events:
        word = pointer(method) | action
        out += sleb(word - value) + uleb(at - wall) + (uleb(cpu_at - cpu) if dual else b'')
        value, wall, cpu = word, at, cpu_at
    return bytes(out), (value, wall, cpu)


def block_c(events, dual):
    out, value, last = bytearray(), 0, 0
    for action, method, at, cpu_at in events:
        word = at * TICKS // 1000000000 << 2 | action
        out += sleb(word - value) + (sleb(cpu_at) if dual else b'')
        value = word
        if action == ENTER:
            out += sleb(pointer(method) - last)
            last = pointer(method)
    return bytes(out)


def v2(form, dual, late, methods, threads):
    version = 0xF5 if dual else 0xF4
    out = bytearray(struct.pack('<4sHQ', b'SLOW', version, START_NS))
    out += struct.pack('<QQ2x', 1000000000000, TICKS) if form == 'c' else bytes(18)
    named = b''.join(v2_method(m, methods) for m in range(len(methods)))
    out += b'' if late else named
    at = {t: 0 for t in threads}
    for flush in range(max(len(t.events) for t in threads) // 90 + 1):
        for thread in threads:
            events = thread.events[at[thread]:at[thread] + 90]
            at[thread] += len(events)
            if not events:
                continue
            if flush == 0:
                out += v2_thread(thread)
            if form == 'c':
                out += entries(thread, len(events), block_c(events, dual))
                continue
            half = 50 if flush % 3 == 1 else len(events)  # one flush in two blocks
            body, values = block_b(events[:half], dual, (0, 0, 0))
            out += entries(thread, len(events[:half]), body)
            if events[half:]:
                out += entries(thread, len(events), block_b(events[half:], dual, values)[0])
    text = ('*version\n%d\nclock=%s\nelapsed-time-nsec=20000000\nvm=art\npid=%d\n*end\n' % (
        version & 15, 'dual' if dual else 'wall', PID)).encode()
    return bytes(out) + (named if late else b'') + struct.pack('<BH', 3, len(text)) + text


def long_running(methods, threads):
    out = bytearray(struct.pack('<BQQ', 3, START_NS + 10**9, START_NS))
    for thread in threads:
        body, value, last = bytearray(), 0, 0
        for action, method, wall, _ in thread.events:
            word = START_NS + wall << 1 | (action != ENTER)
            body += sleb(word - value)
            value = word
            if action == ENTER:
                body += sleb(pointer(method) - last)
                last = pointer(method)
        out += entries(thread, len(thread.events), bytes(body))
    return bytes(out) + b''.join(map(v2_thread, threads)) + b''.join(
        v2_method(m, methods) for m in range(len(methods)))


def counts(methods, threads):
    out = bytearray(struct.pack('<BQQ', 3, START_NS + 10**9, START_NS))
    for thread in threads:
        body, value = bytearray(), 0
        for action, method, _, _ in thread.events:
            word = pointer(method) if action == ENTER else value | 1
            body += sleb(word - value)
            value = word
        out += struct.pack('<BI', 2, thread.tid) + struct.pack('<I', len(thread.events))[:3] + bytes(4) + body
    return bytes(out) + b''.join(map(v2_thread, threads)) + b''.join(
        v2_method(m, methods) for m in range(len(methods)))


LAYOUTS = {
    'v1-global': lambda m, t: v1(1, 'global', m, t),
    'v1-wall': lambda m, t: v1(2, 'wall', m, t),
    'v1-cpu': lambda m, t: v1(2, 'thread-cpu', m, t),
    'v1-dual': lambda m, t: v1(3, 'dual', m, t),
    'stream-wall': lambda m, t: stream(2, 'wall', m, t),
    'stream-dual': lambda m, t: stream(3, 'dual', m, t),
    'v2b-wall': lambda m, t: v2('b', False, False, m, t),
    'v2b-dual': lambda m, t: v2('b', True, False, m, t),
    'v2b-late': lambda m, t: v2('b', True, True, m, t),
    'v2c-wall': lambda m, t: v2('c', False, False, m, t),
    'v2c-dual': lambda m, t: v2('c', True, False, m, t),
    'long-running': long_running,
    'counts': counts,
}


def truth(methods, threads):
    """What every reader should find: by thread name, and by method name, over finished calls."""
    by_method, slices = {}, {}
    last = max(t.events[-1][2] for t in threads)
    for thread in threads:
        stack = []
        for action, method, wall, cpu in thread.events + [(EXIT, None, last, -1)]:
            if action == ENTER:
                stack.append((method, wall, cpu))
                slices[thread.name] = slices.get(thread.name, 0) + 1
                continue
            begun = stack.pop()
            name = '.'.join(methods[begun[0]][:2])
            row = by_method.setdefault(name, {'count': 0, 'sum_ns': 0, 'cpu_ns': 0})
            row['count'] += 1
            row['sum_ns'] += wall - begun[1]
            nested = any(method == begun[0] for method, _, _ in stack)  # recursion counts once
            row['cpu_ns'] += cpu - begun[2] if cpu >= 0 and not nested else 0
    return {'slices': slices, 'methods': by_method}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('layout', choices=sorted(LAYOUTS))
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--calls', type=int, default=100)
    parser.add_argument('--threads', type=int, default=3)
    parser.add_argument('--json')
    args = parser.parse_args()
    methods, threads = simulate(args.seed, args.calls, args.threads)
    sys.stdout.buffer.write(LAYOUTS[args.layout](methods, threads))
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump(truth(methods, threads), f, indent=1, sort_keys=True)


if __name__ == '__main__':
    main()
