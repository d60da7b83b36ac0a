#!/usr/bin/env python3
"""Perfetto inputs of tests/golden and seeds of the fuzz corpus: made from the field numbers of Perfetto's public
messages, always the same bytes.
   perfetto_cases.py FOLDER-OF-TESTS"""
import os
import struct
import sys
import zlib

BASE = 100_000_000_000  # BOOTTIME of the snapshot
MONO = BASE - 5_000_000_000


def varint(v):
    v &= (1 << 64) - 1
    out = bytearray()
    while v > 0x7F:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def num(field, v):
    return varint(field << 3) + varint(v)


def sub(field, *parts):
    body = b''.join(p.encode() if isinstance(p, str) else p for p in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def fixed64(field, v):
    return varint(field << 3 | 1) + struct.pack('<Q', v)


def packed(field, values):
    return sub(field, *[varint(v) for v in values])


def packet(*parts):
    return sub(1, *parts)


def snapshot(boot=BASE, mono=MONO):
    clock = lambda i, v: sub(1, num(1, i), num(2, v))
    return packet(sub(6, clock(6, boot), clock(3, mono), clock(1, 1_700_000_000_000_000_000)))


def thread_track(uuid, pid, tid, name, seq=1, more=b''):
    return packet(num(10, seq), sub(60, num(1, uuid), sub(4, num(1, pid), num(2, tid), sub(5, name)), more))


def event(t, seq, kind, *parts, flags=0, more=b''):
    head = num(8, t) + num(10, seq) + (num(13, flags) if flags else b'')
    return packet(head, more, sub(11, num(9, kind), *parts))


def own_clock(seq, base, track):
    """A sequence with a clock of differences, a default track and names by number, as exporters write them."""
    return packet(num(10, seq), num(13, 1),
                  sub(6, sub(1, num(1, 64), num(2, 0), num(3, 1), num(4, 1)), sub(1, num(1, 3), num(2, base))),
                  sub(59, num(58, 64), sub(11, num(11, track))))


def minimal():
    return snapshot() + thread_track(7, 10, 11, 'worker') + event(
        BASE + 1000, 1, 1, num(11, 7), sub(23, 'a.B.c')) + event(BASE + 2500, 1, 2, num(11, 7))


def track_events():
    names = sub(12, sub(2, num(1, 1), sub(2, 'com.app.Main.run')), sub(2, num(1, 2), sub(2, 'com.app.Db.query')))
    out = packet(sub(60, num(1, 1), sub(3, num(1, 10), sub(6, 'com.app'))))
    out += own_clock(2, MONO + 1_000_000, 8) + thread_track(7, 10, 11, 'worker', 2)
    out += packet(num(10, 2), num(8, 0), sub(60, num(1, 8), num(5, 7), sub(2, 'methods'), num(15, 2)))
    out += packet(num(8, 0), num(10, 2), names, sub(11, num(9, 1), num(10, 1)))
    for i in range(4):
        out += packet(num(8, 1000), num(10, 2), sub(11, num(9, 1), num(10, 2)))
        out += packet(num(8, 500 + i), num(10, 2), sub(11, num(9, 2)))
    out += packet(num(8, 10), num(10, 2), sub(11, num(9, 2)))
    # a number nobody explained, an end too many, a call that stays open
    out += packet(num(8, 10), num(10, 2), sub(11, num(9, 1), num(10, 9)))
    out += packet(num(8, 10), num(10, 2), sub(11, num(9, 2))) + packet(num(8, 10), num(10, 2), sub(11, num(9, 2)))
    out += packet(num(8, 10), num(10, 2), sub(11, num(9, 1), num(10, 1)))
    # a span of the process, a counter, a moment
    out += packet(num(10, 3), sub(60, num(1, 20), num(5, 1), sub(2, 'network')))
    out += event(BASE + 3_000_000, 3, 1, num(11, 20), sub(23, 'GET /')) + event(BASE + 4_000_000, 3, 2, num(11, 20))
    out += packet(num(10, 3), sub(60, num(1, 21), num(5, 1), sub(2, 'heap'), sub(8, num(4, 1024))))
    out += event(BASE + 3_500_000, 3, 4, num(11, 21), num(30, 64))
    out += event(BASE + 3_600_000, 3, 4, num(11, 21), fixed64(44, struct.unpack('<Q', struct.pack('<d', 70.5))[0]))
    out += event(BASE + 3_700_000, 3, 3, num(11, 7), sub(23, 'tapped'))
    # of Chrome: phases, microseconds
    out += packet(num(10, 4), sub(44, num(1, 10), num(2, 12), sub(5, 'legacy'), num(6, (MONO + 7_000_000) // 1000)))
    out += packet(num(10, 4), num(13, 1), sub(12, sub(2, num(1, 5), sub(2, 'Task'))))
    out += packet(num(10, 4), sub(11, num(1, 250), sub(6, num(1, 5), num(2, ord('X')), num(3, 40))))
    return out


def process_tree():
    proc = lambda p, name: sub(1, num(1, p), num(2, 1), sub(3, name))
    thread = lambda t, p, name: sub(2, num(1, t), sub(2, name), num(3, p))
    return packet(num(8, BASE), sub(2, proc(10, 'com.app'), proc(30, 'surfaceflinger'), thread(11, 10, 'worker'),
                                    thread(13, 10, 'RenderThread')))


def process_stats():
    return packet(num(8, BASE + 500), num(10, 5), sub(9, sub(1, num(1, 10), num(2, 900), num(3, 300), num(10, -800)),
                                                      sub(1, num(1, 30), num(7, 12)), num(2, BASE + 600)))


def ftrace():
    ev = lambda t, pid, *what: sub(2, num(1, t), num(2, pid), *what)
    printed = lambda t, pid, text: ev(t, pid, sub(3, num(1, 0), sub(2, text + '\n')))
    switch = lambda t, p, state, n, name: ev(t, p, sub(4, sub(1, 'x'), num(2, p), num(3, 120), num(4, state),
                                                      sub(5, name), num(6, n), num(7, 120)))
    waking = lambda t, by, who, name: ev(t, by, sub(20, sub(1, name), num(2, who), num(3, 120), num(5, 1)))
    t = BASE + 10_000_000
    # a thread that begins a section on CPU 1 and ends it on CPU 0, whose bundle comes first
    zero = packet(sub(1, num(1, 0), printed(t + 900, 13, 'E|10'), waking(t + 950, 13, 11, 'worker'),
                      switch(t + 1000, 13, 1, 11, 'worker'), printed(t + 1100, 11, 'C|10|frames|60'),
                      printed(t + 1200, 11, 'S|10|load|7'), printed(t + 1900, 11, 'F|10|load|7'),
                      switch(t + 2000, 11, 2, 0, 'swapper'), ev(t + 2050, 0, sub(18, num(1, 11), num(3, 1)))))
    one = packet(sub(1, num(1, 1), switch(t + 100, 0, 0, 13, 'RenderThread'), printed(t + 200, 13, 'B|10|draw'),
                     switch(t + 600, 13, 0, 0, 'swapper'), num(3, 1)))
    # the compact form: columns, the first switch of a CPU does not know who left
    compact = packet(sub(1, num(1, 2), sub(4, sub(5, 'RenderThread'), sub(5, 'swapper'),
                                           packed(1, [t + 3000, 500, 500]), packed(2, [0, 1, 0]), packed(3, [13, 0, 13]),
                                           packed(4, [120, 120, 120]), packed(6, [0, 1, 0]), packed(7, [t + 3800]),
                                           packed(8, [13]), packed(9, [2]), packed(10, [120]), packed(11, [0]),
                                           packed(12, [1]))))
    # a call to another process, received there on another CPU, and its answer
    sent = lambda t, by, n, reply: ev(t, by, sub(50, num(1, n), num(2, 4), num(3, 30), num(5, reply), num(6, 1), num(7, 16)))
    received = lambda t, by, n: ev(t, by, sub(51, num(1, n)))
    zero += packet(sub(1, num(1, 0), received(t + 1700, 30, 77), sent(t + 1750, 30, 78, 1)))
    one += packet(sub(1, num(1, 1), sent(t + 1600, 13, 77, 0), received(t + 1800, 13, 78)))
    # another clock, which the bundle itself relates
    glob = packet(sub(1, num(1, 0), num(5, 2), num(6, 50), num(7, t + 5050), printed(100, 11, 'I|10|frame')))
    odd = packet(sub(1, num(1, 0), num(5, 1), printed(100, 11, 'I|10|no clock')))
    return zero + one + compact + glob + odd


def samples():
    inter = sub(12, sub(5, num(1, 1), sub(2, 'com.app.Main.run')), sub(5, num(1, 2), sub(2, 'com.app.Db.query')),
                sub(5, num(1, 3), sub(2, '')), sub(17, num(1, 1), sub(2, 'libc.so')),
                sub(19, num(1, 1), packed(7, [1])), sub(6, num(1, 1), num(2, 1), num(3, 1)),
                sub(6, num(1, 2), num(2, 2)), sub(6, num(1, 3), num(2, 3), num(3, 1), num(4, 0x1234)),
                sub(7, num(1, 1), packed(2, [1, 2])), sub(7, num(1, 2), num(2, 1), num(2, 3)))
    out = packet(num(10, 9), num(13, 1), inter, sub(59, sub(12, sub(1, num(2, 100)))))
    t = BASE + 20_000_000
    for i, stack in enumerate([1, 1, 2, 1]):
        out += packet(num(8, t + i * 10_000_000), num(10, 9), num(13, 2),
                      sub(66, num(1, 0), num(2, 10), num(3, 14), num(4, stack)))
    out += packet(num(8, t + 1), num(10, 9), sub(66, num(1, 0), num(2, 10), num(3, 14), num(18, 2)))
    out += packet(num(8, t + 1), num(10, 9), num(42, 1))
    out += packet(num(8, t + 2), num(10, 9), num(13, 2), sub(66, num(2, 10), num(3, 14), num(4, 1)))
    inline = sub(5, sub(1, sub(1, 'art.Outer')), sub(1, sub(1, 'art.Inner')))
    out += packet(num(8, t), num(10, 8), sub(135, sub(1, num(1, 1), num(2, 10), num(3, 15)), inline))
    out += packet(num(8, t + 10_000_000), num(10, 8), sub(135, num(2, 1), inline))
    return out


def frames():
    """Events of the compositor: two timelines of one frame of an app, one of the display, one without an end."""
    at = lambda ms, kind, *what: packet(num(8, MONO + 30_000_000 + ms * 1_000_000), num(58, 3), num(10, 11),
                                        sub(76, sub(kind, *what)))
    layer = sub(5, 'TX - com.app/com.app.Main#0')
    out = at(0, 3, num(1, 101), num(2, 900), num(3, 901), num(4, 10), layer)
    out += at(0, 4, num(1, 102), num(2, 900), num(3, 901), num(4, 10), layer, num(6, 2), num(9, 64 | 128))
    out += at(4, 1, num(1, 103), num(2, 901), num(3, 30))
    out += at(16, 5, num(1, 101)) + at(20, 5, num(1, 103)) + at(29, 5, num(1, 102)) + at(30, 5, num(1, 77))
    return out + at(31, 2, num(1, 104), num(2, 902), num(3, 30), num(4, 1), num(7, 1))


def of_old():
    """Spans, moments and flows as Chrome once reported them, by letter and id."""
    t = BASE + 40_000_000
    old = lambda us, phase, *what, **named: event(t + us * 1000, 4, 0, sub(23, named.get('name', 'load')),
                                                  sub(6, num(2, ord(phase)), *what))
    scope = sub(7, 'net')
    out = old(0, 'b', num(6, 5), scope) + old(10, 'b', num(6, 5), scope, name='connect')
    out += old(15, 'n', num(6, 5), scope, name='resolved') + old(20, 'e', num(6, 5), scope, name='connect')
    out += old(30, 'S', num(10, 5)) + old(50, 'F', num(10, 5)) + old(60, 'e', num(6, 5), scope)
    out += old(70, 's', num(6, 9), name='post') + old(80, 'f', num(6, 9), num(18, 10), num(19, 13), name='run')
    out += old(90, 'B', num(18, 10), num(19, 13), num(8, 3), num(13, 2), name='paint')
    return out + old(95, 'E', num(18, 10), num(19, 13), name='paint') + old(97, 'O', name='object') + event(t + 99_000, 1, 5, num(11, 7), sub(23, 'warm'))


def realistic():
    return (snapshot() + process_tree() + process_stats() + track_events() + ftrace() +
            packet(sub(50, zlib.compress(samples(), 9))) + frames() + of_old() +
            snapshot(BASE + 1_000_000_000, MONO + 1_000_000_000) + packet(sub(900, 'a packet of tomorrow')))


def truncated():
    whole = realistic()
    return whole[:len(whole) * 7 // 10]


def garbage():
    a, b = snapshot() + thread_track(7, 10, 11, 'worker'), minimal()
    bad = packet(num(10, 1), b'\x5a\x7f')  # says it has more than it has
    return a + bad + b'\xff\xfe rubbish \x0a\x05 between \x00' + b + b'\x0a\xff\xff\xff\xff\x7f' + b + b[:-1]


def main():
    root = sys.argv[1]
    for name, make in [('minimal', minimal), ('realistic', realistic), ('truncated', truncated), ('garbage', garbage)]:
        folder = os.path.join(root, 'golden', 'perfetto', name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, 'input'), 'wb') as f:
            f.write(make())
    for name, make in [('events', track_events), ('ftrace', ftrace), ('samples', samples), ('frames', frames), ('of_old', of_old)]:
        with open(os.path.join(root, 'fuzz/corpus/perfetto/' + name), 'wb') as f:
            f.write(snapshot() + make())


main()
