#!/usr/bin/env python3
"""Writes the golden inputs of the formats with sampled stacks: tests/golden/<format>/<case>/input.
Deterministic: the same bytes every time.  `expected` is made by tests/golden/check --rewrite and reviewed."""
import json
import json
import os
import random
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
METHODS = ['android.app.ActivityThread.main', 'com.example.shop.Cart.update', 'com.example.shop.Cart.total',
           'com.example.net.Client.call', 'com.example.net.Socket.read', 'com.example.json.Reader.next',
           'com.example.ui.List.bind', 'com.example.ui.Image.decode', 'java.util.HashMap.get']


def walk(seed, n, deepest=7):
    """n stacks (method numbers, outermost first), each a small change of the one before."""
    r, stack = random.Random(seed), [0]
    for _ in range(n):
        if r.random() < 0.3:
            del stack[r.randrange(1, len(stack) + 1):]
        while len(stack) < deepest and r.random() < 0.5:
            stack.append(r.randrange(1, len(METHODS)))
        yield list(stack)


def write(fmt, case, data):
    folder = os.path.join(HERE, '../golden', fmt, case)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'input'), 'wb') as f:
        f.write(data if isinstance(data, bytes) else data.encode())


class Profilo:
    """Difference coding with the wraps a device has."""

    def __init__(self):
        self.text = 'dt\nver|3\nid|AbCdEfGhIjK\nprec|6\npid|23725\narch|arm64\n\n'
        self.last, self.id = [0] * 6, 0

    def entry(self, kind, us, tid, call=0, match=0, extra=0):
        self.id += 1
        now = [self.id, us, tid, call, match, extra]
        by = []
        for i, (a, b) in enumerate(zip(now, self.last)):
            bits = 64 if i in (1, 5) else 32
            by.append((a - b + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
        self.last = now
        self.text += '|'.join([str(by[0]), kind] + [str(v) for v in by[1:]]) + '\n'
        return self.id

    def string(self, kind, parent, text):
        self.id += 1
        self.text += '%d|%s|%d|%s\n' % (self.id, kind, parent, text)
        return self.id

    def name(self, entry, text):
        self.string('STRING_VALUE', self.string('STRING_KEY', entry, '__name'), text)


def profilo():
    p = Profilo()
    p.entry('TRACE_START', 1000, 23725, match=1, extra=7)
    p.name(p.entry('MARK_PUSH', 1010, 23725), 'inflate | layout')
    p.entry('MARK_POP', 1050, 23725)
    for f in (5, 6):
        p.entry('STACK_FRAME', 1060, 23738, extra=f << 32 | 9)
    p.string('STRING_NAME', p.entry('JAVA_FRAME_NAME', 1061, 23738, extra=5 << 32 | 9), 'a.B.run')
    p.entry('COUNTER', 1062, 23738, call=9240581, extra=30)
    write('profilo', 'minimal', p.text)
    write('profilo', 'truncated', p.text[:-9])
    lines = p.text.split('\n')
    lines[9] = lines[9].replace('|', '?')
    lines.insert(12, 'x|MARK_PUSH|y')
    write('profilo', 'garbage', '\n'.join(lines))
    p, r = Profilo(), random.Random(7)
    p.entry('TRACE_START', 50204738439, 23725, match=1, extra=7460043096821407771)
    p.string('STRING_VALUE', p.string('STRING_KEY', p.entry('PROCESS_LIST', 50204738440, 23743), 'processes'),
             'com.example.shop(23725)')
    us = 50204738441
    for i, (a, b) in enumerate(zip(walk(1, 90), walk(2, 90))):
        us += r.randrange(4000, 6000)
        p.name(p.entry('MARK_PUSH', us, 23739), 'frame %d' % (i % 5))
        p.name(p.entry('MARK_PUSH', us + 100, 23725), 'traversal')
        for m in a:
            p.entry('STACK_FRAME', us + 200, 23725, extra=m << 32 | 3)
        for m in b:
            p.entry('STACK_FRAME', us - (9000 if i % 9 == 8 else 150), 23738, extra=m << 32 | 3)
        p.entry('COUNTER', us + 300, 23745, call=9240593, extra=1000 + 10 * i)
        p.entry('MARK_POP', us + 900, 23725)
        p.entry('MARK_POP', us + 2000, 23739)
    for m, name in enumerate(METHODS):
        p.string('STRING_NAME', p.entry('JAVA_FRAME_NAME', us, 23745, extra=m << 32 | 3), name)
    for tid, name in ((23725, 'main'), (23738, 'busy-thread'), (23739, 'RenderThread')):
        p.string('STRING_VALUE', p.string('STRING_KEY', p.entry('TRACE_THREAD_NAME', us, tid), str(tid)), name)
    p.entry('TRACE_END', us + 5000, 23725)
    write('profilo', 'realistic', p.text)


def frame(name):
    module, function = name.rsplit('.', 1)
    return {'module': module, 'function': function, 'in_app': name.startswith('com.example')}


def cases(fmt, minimal, realistic, cut, damage):
    """truncated: the minimal text without its last `cut` bytes; garbage: minimal with a piece replaced."""
    write(fmt, 'minimal', minimal)
    write(fmt, 'realistic', realistic)
    write(fmt, 'truncated', minimal[:-cut])
    assert damage[0] in minimal
    write(fmt, 'garbage', minimal.replace(*damage))


def sentry():
    small = {'version': '1', 'platform': 'android', 'profile': {
        'frames': [frame(m) for m in METHODS[:3]], 'stacks': [[1, 0], [2, 0], [0]],
        'samples': [{'elapsed_since_start_ns': str(t), 'stack_id': i, 'thread_id': '1'}
                    for t, i in ((0, 0), (10, 1), (20, 2))],
        'thread_metadata': {'1': {'name': 'main'}}}}
    big = {'version': '2', 'profiler_id': '71bba98d90b545c39f2ae73f702d7ef4', 'chunk_id': 'c1', 'platform': 'android',
           'release': 'com.example.shop@8.3.1', 'debug_meta': {'images': []},
           'measurements': {'cpu_usage': {'unit': 'percent', 'values': [
               {'timestamp': 1753439655.1 + i / 2, 'value': 12.5 + i} for i in range(6)]}},
           'profile': {'frames': [frame(m) for m in METHODS], 'stacks': [], 'samples': [],
                       'thread_metadata': {'1': {'name': 'main'}, '57': {'name': 'http-nio-8080'}}}}
    r, seen = random.Random(3), {}
    for i, stacks in enumerate(zip(walk(3, 150), walk(4, 150))):
        for tid, stack in zip(('1', '57'), stacks):
            key = tuple(reversed(stack))
            if key not in seen:
                seen[key] = len(seen)
                big['profile']['stacks'].append(list(key))
            big['profile']['samples'].append({'timestamp': round(1753439655.0 + i * 0.0099 + r.random() / 1000, 6),
                                              'stack_id': seen[key], 'thread_id': tid})
    cases('sentry', json.dumps(small), json.dumps(big), 60, ('"stack_id": 1', '"stack_id": 77'))


def java_samples():
    small = {'format': 'java-stacks/1', 'pid': 4711, 'clock': 'elapsed_realtime', 'start_ns': 987654321000,
             'interval_ms': 20, 'frames': ['a.B.main(B.java:12)', {'c': 'a.C', 'm': 'run'}],
             'stacks': [[1, 0], [0], []], 'threads': {'1': {'name': 'main', 'sys_tid': 4711}},
             'samples': [[0, 1, 0, 1000], [20000000, 1, 1, 9000], [40000000, 1, 2]]}
    big = dict(small, frames=[m + '(Unknown Source)' for m in METHODS], stacks=[], samples=[],
               threads={'1': {'name': 'main', 'sys_tid': 4711}, '2': {'name': 'worker', 'sys_tid': 4720}})
    for i, stacks in enumerate(zip(walk(5, 200), walk(6, 200))):
        for thread, stack in zip((1, 2), stacks):
            big['samples'].append([i * 20000000 + (2000000000 if i > 150 else 0), thread, len(big['stacks'])])
            big['stacks'].append(stack[::-1])
    cases('java_samples', json.dumps(small), json.dumps(big), 20, ('20000000, 1, 1', '"x", 1, 1'))


def matrix():
    def issue(time, stack, **more):
        cost = max(int(line.split(',')[3]) for line in stack.split())
        return dict({'machine': 'HIGH', 'cpu_app': 0.1, 'mem': 5820000000, 'mem_free': 1200000, 'detail': 'NORMAL',
                     'cost': cost, 'scene': 'com.example.shop.MainActivity', 'stack': stack, 'stackKey': '2|',
                     'tag': 'Trace_EvilMethod', 'process': 'com.example.shop', 'time': time}, **more)

    small = issue(1700000000800, '0,1048574,1,800\n1,2,1,500\n2,3,4,450\n1,5,1,200\n')
    r, big = random.Random(8), []
    for i in range(12):
        stack, cost, depth = ['0,1048574,1,%d' % 1500], 1500, 0
        for _ in range(25):
            depth = r.randrange(1, depth + 2) if depth else 1
            stack.append('%d,%d,%d,%d' % (depth, r.randrange(1, 90), r.choice([1, 1, 1, 3]), 5 * r.randrange(1, 40)))
        big.append(issue(1700000000000 + 9000 * i, '\n'.join(stack) + '\n'))
    big.append(issue(1700000200000, '0,1048574,1,6000\n1,8,1,3000000000000', detail='ANR', isProcessForeground=True,
                     threadStack='at com.example.db.Store.lock(Store.java:1)\nat a.B.main(B.java:2)\n'))
    big.append({'tag': 'Trace_FPS', 'scene': 'Main', 'fps': 58.7, 'time': 1700000300000, 'dropLevel': {'HIGH': 3}})
    cases('matrix', json.dumps(small), '\n'.join(json.dumps(i) for i in big), 60, ('1,2,1,500', '1,two,1,500'))


BASE = 0x70A1B2C300


def sampling(records, version=5, extra=b'{"processId":28069}'):
    """records: (type, tid, begin, end, cpu, objects, bytes, switches, stack of methods outermost first)"""
    data = struct.pack('<IIIQIi', 0x01020304, 0, version, 987654400, len(records), len(extra)) + extra
    for kind, tid, begin, end, cpu, objects, size, switches, stack in records:
        data += struct.pack('<HHIQQQQ', kind, tid, 7, begin, end, cpu, cpu if end else 0)
        data += struct.pack('<QQIIIII', objects, size, 0, switches, 0, len(stack), len(stack))
        data += b''.join(struct.pack('<Q', BASE + 16 * m) for m in reversed(stack))
    return data


def btrace3():
    zero = 987654321000123
    small = [(9, 28069, zero, 0, 5000000, 10, 4096, 1, [0, 1]),
             (9, 28069, zero + 1000000, 0, 5900000, 14, 4352, 1, [0, 1]),
             (8, 28069, zero + 2000000, zero + 9000000, 6000000, 14, 4352, 2, [0, 2]),
             (23, 9065, zero + 2000000, zero + 8900000, 300000, 1, 64, 0, [3])]
    data = sampling(small)
    write('btrace3', 'minimal', data)
    write('btrace3', 'truncated', data[:-30])
    write('btrace3', 'garbage', data.replace(struct.pack('<HHI', 23, 9065, 7), struct.pack('<HHI', 999, 9065, 7)))
    r, records = random.Random(9), []
    for tid, seed in ((28069, 10), (9065, 11)):
        at, cpu, objects, size, switches = zero, 0, 0, 0, 0
        for stack in walk(seed, 200):
            kind = r.choice([9, 9, 9, 9, 10, 10, 6, 2, 11])
            span = r.randrange(1, 40) * 500000 if kind in (2, 6, 11) else 0
            objects, size, switches = objects + r.randrange(40), size + r.randrange(4000), switches + (span > 0)
            records.append((kind, tid, at, at + span if span else 0, cpu, objects, size, switches, stack))
            at += span + r.randrange(1000000, 1300000)
            cpu += r.randrange(600000, 1000000)
    records.sort(key=lambda x: x[3] or x[2])
    write('btrace3', 'realistic', sampling(records))

    def names(pairs, threads, count=None):
        data = struct.pack('<QII', 0, 1, len(pairs) if count is None else count)
        for pointer, name in pairs:
            data += struct.pack('<QH', pointer, len(name)) + name.encode()
        return data + b''.join(struct.pack('<HB', tid, len(n)) + n.encode() for tid, n in threads)

    full = names([(BASE + 16 * i, 'void %s(int, java.lang.String)' % m) for i, m in enumerate(METHODS)] +
                 [(BASE + 4096, '')], [(28069, 'com.example.shop\n'[-15:]), (9065, 'OkHttp Dispatch\n')])
    two = names([(BASE, 'void a.B.main(int)'), (BASE + 16, 'void a.B.c()')], [(28069, 'main\n')])
    write('btrace3_names', 'minimal', two)
    write('btrace3_names', 'realistic', full)
    write('btrace3_names', 'truncated', two[:50])
    write('btrace3_names', 'garbage', two + bytes(range(7)))


class Simpleperf:
    """What `simpleperf report-sample --protobuf --show-callchain` writes."""

    def __init__(self, off_cpu=False):
        self.data = b'SIMPLEPERF' + struct.pack('<H', 1)
        self.record(5, self.text(1, 'cpu-clock:u') + self.text(2, 'com.example.shop') + self.text(4, '34') +
                    self.number(6, int(off_cpu)))

    @staticmethod
    def varint(v):
        out = b''
        while v > 127:
            out, v = out + bytes([v & 127 | 128]), v >> 7
        return out + bytes([v])

    def number(self, field, v):
        return self.varint(field << 3) + self.varint(v % (1 << 64))

    def text(self, field, v):
        v = v if isinstance(v, bytes) else v.encode()
        return self.varint(field << 3 | 2) + self.varint(len(v)) + v

    def record(self, kind, message):
        message = self.text(kind, message)
        self.data += struct.pack('<I', len(message)) + message

    def sample(self, time, tid, stack, failed=0):
        """stack: (file, symbol), outermost first"""
        frames = b''.join(self.text(3, self.number(1, 4096 * f + 16 * max(0, m)) + self.number(2, f) + self.number(3, m))
                          for f, m in reversed(stack))
        self.record(1, self.number(1, time) + self.number(2, tid) + frames + self.number(4, 1000000) + self.number(5, 0) +
                    (self.text(6, self.number(1, failed) + self.number(3, failed)) if failed else b''))

    def end(self, files, threads, lost=0):
        self.record(2, self.number(1, 400) + self.number(2, lost))
        for i, (path, symbols) in enumerate(files):
            self.record(3, self.number(1, i) + self.text(2, path) + b''.join(self.text(3, n) for n in symbols))
        for tid, pid, name in threads:
            self.record(4, self.number(1, tid) + self.number(2, pid) + self.text(3, name))
        self.data += struct.pack('<I', 0)
        return self.data


def simpleperf():
    zero, files = 987654321000, [('/system/lib64/libc.so', ['__libc_init']), ('/data/app/base.apk', ['a.B.main', 'a.C.run'])]
    p = Simpleperf()
    for at, stack in ((0, [(0, 0), (1, 0)]), (1000000, [(0, 0), (1, 0), (1, 1)]), (2000000, [(0, 0), (1, 0), (0, -1)])):
        p.sample(zero + at, 4711, stack)
    small = p.end(files, [(4711, 4711, 'main')])
    write('simpleperf', 'minimal', small)
    write('simpleperf', 'truncated', small[:-100])
    at = small.index(struct.pack('<I', 0)[1:] + b'\x0a', 100) - 1  # the size of a sample's record
    write('simpleperf', 'garbage', small[:at] + b'\xff' * 3 + small[at + 3:] + b'behind')
    files = [('/apex/com.android.runtime/lib64/bionic/libc.so', ['__libc_init', '__start_thread', 'read']),
             ('/data/app/~~x==/com.example.shop-y==/base.apk', METHODS), ('[kernel.kallsyms]', []),
             ('/apex/com.android.art/lib64/libart.so', ['art_quick_invoke_stub', 'art::gc::Heap::AllocObject(art::Thread*)'])]
    r, samples = random.Random(21), []
    for tid, seed, root in ((28069, 22, (0, 0)), (28101, 23, (0, 1))):
        time = zero + r.randrange(1000000)
        for stack in walk(seed, 250):
            leaf = r.choice([[], [], [], [(0, 2), (2, -1)], [(3, 1)], [(3, -1)]])
            samples.append((time, tid, [root, (3, 0)] + [(1, m) for m in stack] + leaf, r.choice([0] * 60 + [3])))
            time += r.randrange(980000, 1020000) if r.random() < 0.98 else 40000000
    p = Simpleperf()
    for sample in sorted(samples):
        p.sample(*sample)
    write('simpleperf', 'realistic', p.end(files, [(28069, 28069, 'com.example.shop'), (28101, 28069, 'OkHttp Dispatch')], 7))


class PerfData:
    """perf.data as simpleperf writes it; files=1: with the list of files of older versions."""
    SAMPLE_TYPE = 0x1 | 0x2 | 0x4 | 0x20 | 0x40 | 0x80 | 0x100  # ip, tid, time, callchain, id, cpu, period

    def __init__(self, meta=(), events=1):
        self.meta, self.events, self.records, self.files = dict({'simpleperf_version': '1.build.9'}, **dict(meta)), events, [], []

    def record(self, kind, body, misc=2, time=0, pid=0, tid=0, event=0):
        if kind < 64 and kind != 9:  # the kernel's id of a record: tid, time, id, cpu
            body += struct.pack('<IIQQII', pid, tid, time, 100 + event, 0, 0)
        self.records.append(struct.pack('<IHH', kind, misc, 8 + len(body)) + body)

    @staticmethod
    def padded(text):
        text = text.encode() + b'\0'
        return text + bytes(-len(text) % 8)

    def map(self, pid, start, size, offset, path, time=0, prot=5, misc=2):
        self.record(10, struct.pack('<IIQQQIIQQII', pid, pid if pid < 1 << 31 else 0, start, size, offset, 0, 0, 0, 0, prot, 2) +
                    self.padded(path), misc, time, pid if pid < 1 << 31 else 0)

    def comm(self, pid, tid, name, time=0, misc=2):
        self.record(3, struct.pack('<II', pid, tid) + self.padded(name), misc, time, pid, tid)

    def fork(self, pid, tid, ppid, ptid, time):
        self.record(7, struct.pack('<IIIIQ', pid, ppid, tid, ptid, time), 2, time, pid, tid)

    def sample(self, time, pid, tid, user, kernel=(), event=0):
        """Addresses, innermost first."""
        chain = ([(1 << 64) - 128] + list(kernel) if kernel else []) + ([(1 << 64) - 512] + list(user) if user else [])
        ip = (list(kernel) + list(user))[0]
        self.record(9, struct.pack('<QIIQQIIQQ', ip, pid, tid, time, 100 + event, 0, 0, 1000000, len(chain)) +
                    struct.pack('<%dQ' % len(chain), *chain), 1 if kernel else 2)

    def file(self, path, kind, symbols, min_vaddr=0, offset=0):
        self.files.append((path, kind, symbols, min_vaddr, offset))

    def file2(self, path, kind, symbols, min_vaddr, offset):
        m = self.text(1, path) + self.number(2, kind) + self.number(3, min_vaddr)
        for vaddr, size, name in symbols:
            m += self.text(4, self.number(1, vaddr) + self.number(2, size) + self.text(3, name))
        return m + self.text({3: 5}.get(kind, 6), self.number(1, offset))

    @staticmethod
    def number(field, v):
        return Simpleperf.varint(field << 3) + Simpleperf.varint(v)

    @staticmethod
    def text(field, v):
        return Simpleperf.varint(field << 3 | 2) + Simpleperf.varint(len(v)) + (v if isinstance(v, bytes) else v.encode())

    @staticmethod
    def file1(path, kind, symbols, min_vaddr, offset):
        m = path.encode() + b'\0' + struct.pack('<IQI', kind, min_vaddr, len(symbols))
        for vaddr, size, name in symbols:
            m += struct.pack('<QI', vaddr, size) + name.encode() + b'\0'
        return m + (struct.pack('<IQ', 1, offset) if kind == 3 else struct.pack('<Q', offset))

    def packed(self, data):
        """Records as zstd in blocks that are not compressed, cut anywhere between records of type 81."""
        frame, at = b'\x28\xb5\x2f\xfd\x00\x58', 0
        while at < len(data):
            n = min(700, len(data) - at)
            frame += struct.pack('<I', (at + n == len(data)) | n << 3)[:3] + data[at:at + n]
            at += n
        return b''.join(struct.pack('<IHH', 81, 0, 8 + len(frame[i:i + 999])) + frame[i:i + 999] for i in range(0, len(frame), 999))

    def end(self, files=2, packed=False, order=None):
        data = b''.join(order(self.records) if order else self.records)
        if packed:
            data = packed(self.records) if callable(packed) else self.packed(data)
        attr = lambda i: struct.pack('<IIQQQQQ', 1, 128, i, 1000000, self.SAMPLE_TYPE, 0, 1 << 18 | 1 << 10) + bytes(128 - 48)
        ids_at, attrs_at = 104, 104 + 8 * self.events
        data_at = attrs_at + 144 * self.events
        make = self.file2 if files == 2 else self.file1
        listed = b''.join(struct.pack('<I', len(m)) + m for m in (make(*f) for f in self.files))
        meta = b''.join(k.encode() + b'\0' + v.encode() + b'\0' for k, v in self.meta.items())
        features = sorted([(129, meta), (132 if files == 2 else 128, listed), (11, struct.pack('<II', 1, 16) + b'record' + bytes(10))])
        at, sections = data_at + len(data) + 16 * len(features), b''
        for _, f in features:
            sections += struct.pack('<QQ', at, len(f))
            at += len(f)
        bits = sum(1 << bit for bit, _ in features).to_bytes(32, 'little')
        return (b'PERFILE2' + struct.pack('<QQQQQQQQ', 104, 144, attrs_at, 144 * self.events, data_at, len(data), 0, 0) + bits +
                b''.join(struct.pack('<Q', 100 + i) for i in range(self.events)) +
                b''.join(attr(i) + struct.pack('<QQ', ids_at + 8 * i, 8) for i in range(self.events)) +
                data + sections + b''.join(f for _, f in features))


def perf_data():
    zero, pid, libc, dex, art, jit = 987654321000, 4711, 0x7000000000, 0x7100000000, 0x7200000000, 0x7300000000
    kernel = 0xffffffc008000000

    def recording(meta=(('clockid', 'monotonic'),), events=1):
        p = PerfData(meta, events)
        p.map((1 << 32) - 1, 0, (1 << 64) - 1, 0, '[kernel.kallsyms]', misc=1)
        p.comm(pid, pid, 'com.example.shop')
        p.map(pid, libc, 0x10000, 0x40000, '/apex/com.android.runtime/lib64/bionic/libc.so')
        p.map(pid, dex, 0x100000, 0, '/data/app/com.example.shop/base.apk')
        p.map(pid, art, 0x100000, 0x200000, '/apex/com.android.art/lib64/libart.so')
        p.map(pid, jit, 0x100, 0, '/data/TemporaryFile-1_jit_app_cache:0-8', prot=0x4005)
        p.file('[kernel.kallsyms]', 0, [(kernel, 0x100, 'el0_svc'), (kernel + 0x100, 0x80, 'do_futex')])
        p.file('/apex/com.android.runtime/lib64/bionic/libc.so', 2,
               [(0x51000, 0x40, '__libc_init'), (0x51040, 0x40, '__start_thread'), (0x51080, 0x10, 'syscall')], 0x50000, 0x40000)
        p.file('/data/app/com.example.shop/base.apk', 3, [(0x1000 + 64 * i, 64, name) for i, name in enumerate(METHODS)], 0, 0x1000)
        p.file('/apex/com.android.art/lib64/libart.so', 2, [(0x301000, 0x100, 'art::interpreter::DoCall'), (0x302000, 0x100, 'art::gc::Heap::Alloc')],
               0x300000, 0x200000)
        p.file('/data/TemporaryFile-1_jit_app_cache:0-8', 2, [(jit, 0x100, 'com.example.shop.Cart.compiled')], 0, 0)
        return p

    init, start, call, alloc = libc + 0x1010, libc + 0x1050, art + 0x1010, art + 0x2010
    method = lambda i: dex + 0x1000 + 64 * i + 8
    p = recording()
    p.sample(zero, pid, pid, [method(0), call, init])
    p.sample(zero + 1000000, pid, pid, [alloc, jit + 4, method(1), call, call, method(0), call, init])
    p.sample(zero + 2000000, pid, pid, [libc + 0x1084, method(0), init], [kernel + 0x110, kernel + 8])
    p.sample(zero + 3000000, pid, pid, [libc + 0x9000, libc + 0x9400, 0x123456])
    small = p.end()
    write('perf_data', 'minimal', small)
    write('perf_data', 'truncated', small[:small.index(struct.pack('<Q', zero + 3000000)) + 20])
    at = small.index(struct.pack('<Q', zero + 1000000)) - 24  # the head of the second sample
    write('perf_data', 'garbage', small[:at] + b'\xff' * 8 + small[at + 8:-100] + b'\xff' * 100)
    write('perf_data', 'files_of_older_versions', p.end(files=1))
    write('perf_data', 'compressed', p.end(packed=True))
    damage = lambda frame: frame[:8 + 6] + b'\xff' + frame[8 + 7:]  # its first block is of a type that there is not
    write('perf_data', 'compressed_damaged', p.end(packed=lambda records: p.packed(b''.join(records[:-3])) + damage(p.packed(records[-3])) +
                                                   p.packed(b''.join(records[-2:]))))
    p = recording((('trace_offcpu', 'true'), ('clockid', 'perf')), 2)
    for i in range(6):
        p.sample(zero + i * 1000000, pid, pid, [method(i % 2), init], event=i == 3)
    p.sample(zero + 90000000, pid, pid, [method(1), init])
    write('perf_data', 'off_cpu', p.end())
    p = recording((), 2)
    for i in range(6):
        p.sample(zero + i * 1000000, pid, pid, [method(i % 2), init], event=i % 2)
    write('perf_data', 'two_events', p.end())
    p = recording()
    for i in range(130):
        p.comm(pid, pid + i, 'worker %d' % i, zero - 9)
    for i in range(130):
        p.sample(zero + i * 1000, pid, pid + i, [init])
    write('perf_data', 'many_threads', p.end())
    r, p, tid, child = random.Random(91), recording(), 4733, 5001
    p.fork(pid, tid, pid, pid, zero - 9)
    p.comm(pid, tid, 'OkHttp Dispatch', zero - 8)
    p.fork(child, child, pid, pid, zero - 7)
    for thread, seed, root in ((pid, 92, init), (tid, 93, start)):
        time = zero + r.randrange(1000000)
        for stack in walk(seed, 250):
            leaf = r.choice([[], [], [], [libc + 0x1088], [alloc], [art + 0x8000]])
            p.sample(time, pid, thread, leaf + [a for m in reversed(stack) for a in (method(m), call)] + [root],
                     r.choice([()] * 9 + [(kernel + 0x120, kernel + 16)]))
            time += r.randrange(980000, 1020000) if r.random() < 0.98 else 40000000
    p.sample(zero + 5000000, child, child, [method(0), init])  # by its parent's maps
    p.map(child, libc, 0x8000, 0, '/system/bin/other', zero + 5500000)
    p.sample(zero + 6000000, child, child, [init])
    p.comm(child, child, 'other', zero + 6500000, misc=2 | 1 << 13)
    p.sample(zero + 7000000, child, child, [init])
    p.record(2, struct.pack('<QQ', 100, 7), 0, zero + 7100000)
    write('perf_data', 'realistic', p.end(order=lambda records: records[:6] + records[6:][::-1]))


def runs(seed, n):
    """Stacks as walk() makes them, each with the nanoseconds that it lasts."""
    r = random.Random(seed + 1)
    return [(stack, r.randrange(1, 9) * 100000) for stack in walk(seed, n)]


def speedscope():
    head = {'$schema': 'https://www.speedscope.app/file-format-schema.json', 'exporter': 'tracewell 0.1.0', 'name': 'cold start'}

    def evented(name, unit, scale, stacks):
        events, at, open_ = [], 0, []
        for stack, ns in stacks + [([], 0)]:
            same = 0
            while same < min(len(stack), len(open_)) and stack[same] == open_[same]:
                same += 1
            events += [{'type': 'C', 'frame': f, 'at': at / scale} for f in reversed(open_[same:])]
            events += [{'type': 'O', 'frame': f, 'at': at / scale} for f in stack[same:]]
            open_, at = stack, at + ns
        return {'type': 'evented', 'name': name, 'unit': unit, 'startValue': 0, 'endValue': at / scale, 'events': events}

    small = dict(head, profiles=[evented('main (4711)', 'nanoseconds', 1, [([0, 1], 100), ([0], 50)])],
                 shared={'frames': [scope_frame(0), scope_frame(1)]})
    weights = {'type': 'sampled', 'name': 'worker', 'unit': 'milliseconds', 'startValue': 1.5, 'endValue': 4,
               'samples': [[0, 2], [0, 2, 3], [], [0]], 'weights': [1, 0.5, 0.25, 0.75]}
    bytes_ = {'type': 'sampled', 'name': 'allocations', 'unit': 'bytes', 'samples': [[0, 1], [0]], 'weights': [4096, 16]}
    many = dict(head, profiles=[evented('main (4711)', 'microseconds', 1000, runs(31, 60)), weights, bytes_],
                shared={'frames': [scope_frame(i) for i in range(len(METHODS))]})
    cases('speedscope', json.dumps(small), json.dumps(many), 150, ('"frame": 1,', '"frame": "x",'))


def scope_frame(i):
    return {'name': METHODS[i], 'file': 'Cart.java', 'line': 12}


def firefox():
    prefixes, frames, known = [], [], {}

    def index(stack):
        at = None
        for f in stack:
            if (at, f) not in known:
                known[at, f] = len(frames)
                frames.append(f)
                prefixes.append(at)
            at = known[at, f]
        return at

    def thread(name, tid, samples, **more):
        at = [index(stack) for stack, _ in samples]
        return {'name': name, 'pid': '4711', 'tid': tid, 'isMainThread': name == 'main',
                'samples': dict({'stack': at, 'length': len(at)}, **more), 'markers': {'data': [], 'length': 0}}

    def exact(name, tid, samples):
        times, at = [], 0
        for _, ns in samples:
            times.append(at / 1e6)
            at += ns
        return thread(name, tid, samples, weightType='tracing-ms', time=times, weight=[ns / 1e6 for _, ns in samples])

    def tables(offsets):
        table = {'frame': list(range(len(frames))), 'length': len(frames)}
        if offsets:
            table['prefixOffset'] = [0 if p is None else i - p for i, p in enumerate(prefixes)]
        else:
            table['prefix'] = prefixes
        return {'stackTable': table, 'frameTable': {'func': list(frames), 'length': len(frames)},
                'funcTable': {'name': list(range(len(METHODS))), 'length': len(METHODS)}, 'stringArray': METHODS}

    def profile(version, threads, offsets=True):
        return {'meta': {'interval': 2, 'processType': 0, 'stackwalk': 0, 'version': 36, 'preprocessedProfileVersion': version},
                'libs': [], 'threads': threads, 'shared': tables(offsets)}

    small = profile(70, [exact('main', 4711, [([0, 1], 100), ([0], 50), ([], 25), ([0, 2], 25)])])
    small = json.dumps(small)
    del prefixes[:], frames[:]
    known.clear()
    sampled = [(stack, 0) for stack in walk(41, 40)]
    many = profile(70, [exact('main', 4711, runs(40, 60)),
                        thread('worker', '4720.1', sampled, weightType='samples', weight=None, timeDeltas=[2] * 20 + [60] + [2] * 19)])
    # callers before the first stack
    write('firefox', 'offsets', small.replace('"prefixOffset": [0, 1', '"prefixOffset": [7, 9'))
    cases('firefox', small, json.dumps(many), 60, ('"frame": [0, 1', '"frame": [0, 99'))
    # moments, spans, begins and ends; a thread with nothing else
    marked = exact('main', 4711, [([0, 1], 2000000), ([0], 1000000)])
    marked['markers'] = {'name': [9, 9, 10, 11, 10, 10, 10, 12], 'startTime': [0.5, 1, 1.5, 1.75, None, 2.5, None, 'x'],
                         'endTime': [None, 2.25, None, None, 2, None, None, None], 'phase': [0, 1, 2, 2, 3, 0, 3, 0],
                         'data': [{'type': 'tracing', 'name': 'x'}] + [None] * 7, 'category': [0] * 8, 'length': 8}
    only = dict(thread('Renderer', 4730, []), markers={'name': [10], 'startTime': [0], 'endTime': [3], 'phase': [1], 'data': [None], 'length': 1})
    whole = profile(70, [marked, only])
    whole['shared']['stringArray'] = METHODS + ['Tap', 'Layout', 'Load']
    write('firefox', 'markers', json.dumps(whole))
    # an older version: tables in each thread, absolute prefixes, times instead of differences
    del prefixes[:], frames[:]
    known.clear()
    old = profile(40, [thread('main', 4711, sampled[:20], time=[2 * i for i in range(20)])], offsets=False)
    old['threads'][0].update(old.pop('shared'))
    write('firefox', 'own_tables', json.dumps(old))


def folded():
    def text(samples, first=None):
        return ''.join('%s %d\n' % (';'.join(([first] if first else []) + [METHODS[f] for f in stack]), ns) for stack, ns in samples)

    many = text(runs(51, 60), 'main (4711)') + text(runs(52, 30), 'worker (4720, sampled)')
    cases('folded', text([([0, 1], 100), ([0], 50), ([0, 1], 7)]), many, 3, (' 50\n', ' fifty\n'))
    write('folded', 'no_threads', text(runs(53, 20)) + '\nkernel;do_syscall_64_[k] 12.75\nno value here\n')


class Pprof:
    def __init__(self):
        self.out, self.strings = b'', []

    @staticmethod
    def varint(v):
        out = b''
        while v >= 128:
            out, v = out + bytes([v & 127 | 128]), v >> 7
        return out + bytes([v])

    def number(self, field, v):
        return self.varint(field << 3) + self.varint(v)

    def message(self, field, body):
        return self.varint(field << 3 | 2) + self.varint(len(body)) + body

    def string(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def type(self, name, unit):
        self.out += self.message(1, self.number(1, self.string(name)) + self.number(2, self.string(unit)))

    def sample(self, stack, values, thread=None, tid=None):
        body = self.message(1, b''.join(self.varint(f + 1) for f in reversed(stack)))
        body += self.message(2, b''.join(self.varint(v) for v in values))
        if thread:
            body += self.message(3, self.number(1, self.string('thread')) + self.number(2, self.string(thread)))
        if tid:
            body += self.message(3, self.number(1, self.string('tid')) + self.number(3, tid))
        self.out += self.message(2, body)

    def end(self, default=None, inlined=False):
        self.out += self.message(3, self.number(1, 1) + self.number(5, self.string('/system/lib64/libart.so')))
        for i, name in enumerate(METHODS):
            line = self.message(4, self.number(1, i + 1))
            if inlined and i == 5:  # inlined into another
                line += self.message(4, self.number(1, 4))
            if inlined and i == 8:  # no function: an address in a file
                line = self.number(2, 1) + self.number(3, 0x7f001234)
            self.out += self.message(4, self.number(1, i + 1) + line)
            self.out += self.message(5, self.number(1, i + 1) + self.number(2, self.string(name)))
        for text in self.strings:
            self.out += self.message(6, text.encode())
        if default:
            self.out += self.number(14, self.strings.index(default))
        return self.out


def pprof():
    p = Pprof()
    p.string('')
    p.type('wall', 'nanoseconds')
    p.sample([0, 1], [100])
    p.sample([0], [50])
    p.sample([0, 1], [7])
    small = p.end()
    p = Pprof()
    p.string('')
    p.type('calls', 'count')
    p.type('wall', 'microseconds')
    for i, (stack, ns) in enumerate(runs(61, 60)):
        p.sample(stack, [1, ns // 1000], 'main (4711)' if i % 3 else 'worker', 0 if i % 3 else 4720)
    many = p.end('wall', inlined=True)
    cases('pprof', small, many, 60, (METHODS[1].encode(), b'com.example\xff' + b'x' * 16))
    p = Pprof()
    p.string('')
    p.type('inuse_objects', 'count')
    p.type('inuse_space', 'bytes')
    for stack, ns in runs(62, 12):
        p.sample(stack, [1, ns])
    write('pprof', 'bytes', p.end())


class Otlp(Pprof):
    """A profile of OpenTelemetry: one dictionary, references by index."""

    def __init__(self):
        super().__init__()
        self.string('')
        self.stacks, self.attributes, self.profiles = [b''], [b''], b''

    def stack(self, stack):
        body = self.message(1, b''.join(self.varint(f + 1) for f in reversed(stack)))
        if body not in self.stacks:
            self.stacks.append(body)
        return self.stacks.index(body)

    def attribute(self, key, value):
        body = self.number(1, self.string(key))
        body += self.message(2, self.message(1, value.encode()) if isinstance(value, str) else self.number(3, value))
        if body not in self.attributes:
            self.attributes.append(body)
        return self.attributes.index(body)

    def type(self, name, unit):
        return self.number(1, self.string(name)) + self.number(2, self.string(unit))

    def profile(self, type_, samples, period=None):
        body = self.message(1, type_)
        for stack, values, times, thread in samples:
            one = self.number(1, self.stack(stack))
            one += self.message(2, b''.join(self.varint(self.attribute(*a)) for a in thread))
            if values:
                one += self.message(4, b''.join(self.varint(v) for v in values))
            if times:
                one += self.message(5, b''.join(struct.pack('<Q', t) for t in times))
            body += self.message(2, one)
        if period:
            body += self.message(5, period[0]) + self.number(6, period[1])
        self.profiles += self.message(2, body)

    def end(self, pid=None, dictionary_first=False):
        entries = self.message(1, b'') + self.message(2, b'')
        for i, name in enumerate(METHODS):
            line = b'' if i == 8 else self.message(3, self.number(1, i + 1))
            entries += self.message(2, (self.number(2, 0x7f001234) if i == 8 else b'') + line)
        entries += self.message(3, b'')
        for name in METHODS:
            entries += self.message(3, self.number(1, self.string(name)))
        entries += b''.join(self.message(6, a) for a in self.attributes) + b''.join(self.message(7, s) for s in self.stacks)
        dictionary = self.message(2, entries + b''.join(self.message(5, t.encode()) for t in self.strings))
        resource = b''
        if pid:
            resource = self.message(1, self.message(1, self.message(1, b'process.pid') + self.message(2, self.number(3, pid))))
        resources = self.message(1, resource + self.message(2, self.profiles))
        return dictionary + resources if dictionary_first else resources + dictionary


def otlp():
    main, worker = [('thread.id', 4711), ('thread.name', 'main')], [('thread.name', 'worker')]
    p = Otlp()
    p.profile(p.type('wall', 'nanoseconds'), [([0, 1], [100], [], main), ([0], [50], [], main), ([0, 1], [7], [], main)])
    small = p.end()
    p = Otlp()
    zero = 1795499713000000000
    timed = [(stack, [], [zero + i * 10000000], main if i % 3 else worker) for i, stack in enumerate(walk(71, 80))]
    p.profile(p.type('samples', 'count'), timed, (p.type('cpu', 'nanoseconds'), 10000000))
    p.profile(p.type('allocated', 'bytes'), [([0, 3], [4096], [], main)])
    cases('otlp', small, p.end(4711), 60, (METHODS[1].encode(), b'com.example\xff' + b'x' * 16))
    p = Otlp()
    p.profile(p.type('samples', 'count'), [(stack, [1 + i % 2], [], worker) for i, stack in enumerate(walk(72, 20))],
              (p.type('cpu', 'milliseconds'), 10))
    write('otlp', 'periods', p.end(dictionary_first=True))
    p = Otlp()
    p.profile(p.type('wall', 'nanoseconds'), [([0, 1], [], [zero], main), ([0], [50], [], main), ([0], [], [zero + 30000000], main)])
    write('otlp', 'some_times', p.end())


def blockcanary():
    head = ('\r\n**********************\r\n2026-01-02 03:04:05(write log time)\r\n\r\nqua = debug\r\nversionName = 8.3.1\r\n'
            'versionCode = 831\r\nimei = empty_imei\r\nuid = 1\r\nnetwork = wifi\r\nmodel = Pixel 7\r\napi-level = 34 14\r\ncpu-core = 8\r\n'
            'process = com.example.shop\r\nfreeMemory = 812340\r\ntotalMemory = 7634564\r\n')

    def clock(ms):
        return '01-02 03:%02d:%02d.%03d' % (4 + ms // 60000, ms // 1000 % 60, ms % 1000)

    def log(start, end, stacks):
        text = head + 'time = %d\r\nthread-time = %d\r\ntime-start = %s\r\ntime-end = %s\r\n' % (
            end - start, (end - start) // 3, clock(start), clock(end))
        text += 'cpu-busy = false\r\ncpu-rate = %s cpu:38% app:31% [user:25% system:13% ioWait:0% ]\r\n'.replace('%s', clock(start))
        entries = [clock(ms) + '\r\n\r\n' + ''.join(f + '\r\n' for f in frames) + '\r\n' for ms, frames in stacks]
        return text + ('stack = ' + ''.join(entries) + '\r\n' if entries else '') + '\r\n'

    def frames(stack):
        names = [METHODS[m].rpartition('.') for m in reversed(stack)]
        return ['%s.%s(%s.java:%d)' % (c, m, c.split('.')[-1], 10 + len(m)) for c, _, m in names]

    write('blockcanary', 'minimal', log(1000, 1520, [(1052, frames([0, 1])), (1104, frames([0, 1, 2]))]))
    full = log(1000, 3480, [(1052 + i * 52, frames(s)) for i, s in enumerate(walk(81, 40))])
    full += log(59900, 61200, [(59952 + i * 52, frames(s)) for i, s in enumerate(walk(82, 20))])
    write('blockcanary', 'realistic', full)
    write('blockcanary', 'truncated', full[:len(full) * 2 // 3])
    write('blockcanary', 'garbage', head + 'time-start = yesterday\r\ntime-end = 13-45 99:00:00.000\r\nstack = \x00\r\n' + 'x' * 20000 + '\r\n')
    write('blockcanary', 'damaged', log(1000, 1520, [(1052, frames([0, 1])), (900, frames([0])), (1104, ['a.b.c(R8$$SyntheticClass:5)', '', 'Native(Native Method)', 'x' * 3000])]))


if __name__ == '__main__':
    blockcanary()
    simpleperf()
    perf_data()
    btrace3()
    profilo()
    sentry()
    java_samples()
    matrix()
    speedscope()
    firefox()
    folded()
    pprof()
    otlp()
