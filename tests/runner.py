"""The tiers of tests:

  tests/run --quick [--changed [BASE]]   before each commit; --changed: only what the change since BASE touches
                                         (by tests/changed.txt; BASE is where the branch left main)
  tests/run                              before a change is merged, and in the continuous integration
  tests/run --full                       before a release
  tests/run --only KIND                  one kind of tests; --list names them
  tests/run --repeat N FILE...           each file N times while other processes keep every core busy
  tests/run --screenshots                a picture of every page in tests/screenshots/, and no tests

FILE is a file of tests/e2e or the name of a file of unit tests.  --jobs N runs N files of e2e and browser tests at
the same time (two for each core).  The last line is `N passed, N failed[, N skipped]`."""
import argparse
import atexit
import contextlib
import fnmatch
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORES = len(os.sched_getaffinity(0))
SLOWEST = 20
TIMES = 'build-test/times.json'  # seconds of each file in earlier runs: the longest begin first
BUILD = 'build-test'
SERVER = BUILD + '/server/tracewell'
FOR_CLANG = BUILD + '/for_clang'  # compile commands without GCC's own arguments

# --- e2e files that need more than a server, or much time: only --full runs them ---
FULL_E2E = """clients device device_hooks device_mappings documents failover importer kill_steps lease migrate_store network
    postgres_faults""".split()
# Servers of the files in these folders of e2e have their data in memory where there is enough: most of a server's start
# and of an upload is waiting for the disk, and PostgreSQL needs less processor time there.  Files about durability, free
# space or the time of syncs need a disk.
IN_MEMORY = ['auth', 'browser', 'browser_admin', 'browser_fleet', 'browser_trace', 'cli', 'decode', 'faults', 'fleet', 'http', 'ingest',
             'notify', 'query', 'several']
ON_DISK = 'clients device device_hooks device_mappings doctor export importer ingest migrate ready retention slow malformed_requests'.split()
MEMORY = '/dev/shm'
SMOKE = ['api', 'ingest', 'page']
CLICKHOUSE = ['clickhouse', 'fleet', 'fleet_compare', 'fleet_findings', 'fleet_flame', 'fleet_inlined', 'fleet_natives', 'project_delete', 'regressions', 'search', 'list_total']
POSTGRES_S3 = ['anr_groups', 'api', 'audit', 'fleet_findings', 'parallel', 'regressions', 'search']

# Files of e2e at their long setting.
LONG = {
    'fault_table': 'FAULT_TABLE=full',
    'fleet': 'FLEET_KILLS=200',
    'kill_steps': 'EVERY=1',
    'kills': 'KILLS=1000',
    'network': 'CUT_SECONDS=40',
    'postgres_faults': 'FAULTS=100',
    'power': 'POWER_EVERY=1 POWER_JOBS=8',
    'storage_faults': 'FAULTS=100',
    'malformed_requests': 'MALFORMED_SECONDS=600',
}
SWIFT = ['swift-proxy', 'swift-account', 'swift-container', 'swift-object', 'memcached']  # a store
# Under a sanitizer no shim can make calls fail, and a kill at every step takes too long.
NOT_SANITIZED = ['fault', 'kills', 'no_memory', 'power']
THREADED = ['auth', 'backup', 'drain', 'fair', 'fleet', 'ingest', 'kernel_trace', 'isolation', 'parallel', 'quota', 'resume', 'retention', 'slow', 'tls',
            'malformed_requests']
THREADED_UNIT = ['builder_shape', 'http', 'http_form', 'notes', 'perfetto', 'query', 'range', 'relay', 'server_base', 'source_scheduler',
                 'store', 'unzip']
# Quick enough for valgrind; MEMCHECK=all takes every file but the jail's, which forbids what valgrind needs.
MEMCHECKED = """base lines columns method_map repairs quota anr anr_json anr_line anr_locks anr_names markers atrace art_early art_packet
    art_pairs btrace3 builder_memory builder_merge builder_nest builder_sums catalogue_plan chrome compare summary_tree export_cursor
    notes""".split()


class Job:
    """One command; by default it passes with exit code 0 and is skipped with 77."""

    def __init__(self, name, argv, env=None, read='exit', timeout=600, cwd='.', again=None, in_memory=False):
        self.name, self.argv, self.env, self.read, self.timeout, self.cwd = name, argv, env or {}, read, timeout, cwd
        self.in_memory = in_memory
        self.size = os.path.getsize(argv[-1]) if os.path.isfile(argv[-1]) else 0  # long files take long: a guess for the first run
        self.again = again or shlex.join(['%s=%s' % e for e in self.env.items()] + argv)  # how to run it alone


class Run:
    """Counts of this run, what failed, and where its time went."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures, self.took = [], []
        self.skips = {}  # reason: {name of a job: tests}
        try:
            with open(TIMES, encoding='utf-8') as f:
                self.known = json.load(f)
        except (OSError, ValueError):
            self.known = {}

    def count(self, passed, failed, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped

    def fail(self, what):
        self.count(0, 1)
        self.failures.append(what)

    def finish(self):
        if self.took:
            print('== the slowest')
            for seconds, cpu, name in sorted(self.took, reverse=True)[:SLOWEST]:
                print('%7.1f s %s  %s' % (seconds, '%7.1f s CPU' % cpu if cpu is not None else ' ' * 13, name))
        if self.skips:
            print('== skipped')
            for reason, jobs in sorted(self.skips.items(), key=lambda s: -sum(s[1].values())):
                print('%5d  %s: %s' % (sum(jobs.values()), reason, ', '.join('%s %d' % job for job in sorted(jobs.items()))))
        for f in self.failures:
            print('FAILED: ' + f)
        print('%d passed, %d failed' % (self.passed, self.failed) + (', %d skipped' % self.skipped if self.skipped else ''))
        sys.stdout.flush()
        sys.exit(1 if self.failed else 0)


RUN = None


def must(what, argv, **more):
    """A command that the rest depends on."""
    began = time.monotonic()
    code = subprocess.run(argv, **more).returncode
    RUN.took.append((time.monotonic() - began, None, what))
    if code:
        RUN.fail(what + ': ' + shlex.join(argv))
        RUN.finish()


def install(*arguments):
    must('install ' + ' '.join(arguments), ['tests/packages.sh', *arguments])


def build(folder, profile=None, targets=()):
    """Through ccache, so that a file is compiled once for all profiles and checkouts that compile it alike."""
    env = dict(os.environ)
    if os.path.isdir('/usr/lib/ccache'):
        env['PATH'] = '/usr/lib/ccache:' + env['PATH']
    if not os.path.exists(folder + '/build.ninja'):
        native = ['--native-file', 'tests/profiles/%s.ini' % profile] if profile else []
        must('configure ' + folder, ['meson', 'setup', folder, '-Dwerror=true', *native], env=env, stdout=subprocess.DEVNULL)
    must('build ' + folder, ['bash', '-o', 'pipefail', '-c', 'ninja -C "$@" | tail -3', '_', folder, *targets], env=env)


# --- the pool ---

def results(job, code, text):
    """(passed, failed, skipped) of a job that ended."""
    if job.read == 'node':
        n = {k: int(v) for k, v in re.findall(r'^# (pass|fail|cancelled|skipped) (\d+)$', text, re.M)}
        failed = n.get('fail', 0) + n.get('cancelled', 0)
        if code == 77:
            return 0, 0, 1
        if 'fail' not in n or (code == 0) != (failed == 0):  # it ended before its summary
            return 0, 1, 0
        return n.get('pass', 0), failed, n.get('skipped', 0)
    if job.read == 'cmocka' and code != 77:
        failed, skipped = len(re.findall(r'^not ok \d+ -', text, re.M)), len(re.findall(r'^not ok \d+ # SKIP', text, re.M))
        passed = len(re.findall(r'^ok \d+', text, re.M))
        if (code == 0) == (failed == 0) and passed + failed + skipped:
            return passed, failed, skipped
    return int(code == 0), int(code not in (0, 77)), int(code == 77)


def skip_reasons(job, skipped, text):
    """Why a job skipped this many tests, for each."""
    if job.read == 'node':
        reasons = re.findall(r'^ *ok \d+ - .* # SKIP *(.*)$', text, re.M)
    else:
        reasons = re.findall(r'^# skipped: (.*)$', text, re.M)
    reasons = [re.sub(r'^needs /.*', 'needs a recording', r) for r in reasons]
    return (reasons + ['no reason given'] * skipped)[:skipped]


def failure_text(job, text):
    lines = text.split('\n')
    if job.read == 'node':
        lines = [line for line in lines if not re.match(r'\s*(ok|duration_ms|type|---|\.\.\.|# (Subtest|[a-z_]+ [\d.]+$))', line)][:150]
    return '\n'.join(lines[-150:])


def kill(pid):
    """A job and what it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def folder_in_memory():
    """Folder for temporary files; None if it is too small for several servers, or mounted noexec."""
    try:
        room = os.statvfs(MEMORY)
        with open('/proc/meminfo', encoding='utf-8') as f:
            available = int(re.search(r'^MemAvailable: +(\d+) kB', f.read(), re.M)[1]) << 10
        if room.f_flag & os.ST_NOEXEC or min(room.f_bavail * room.f_frsize, available // 2) < 4 << 30:
            return None
        folder = tempfile.mkdtemp(prefix='tw-', dir=MEMORY)
        os.chmod(folder, 0o1777)  # as /tmp: PostgreSQL runs as another user
        return folder
    except (OSError, TypeError):
        return None


def pool(jobs, at_once, quiet=False):
    """Runs jobs, `at_once` at a time; returns the names of those that failed."""
    waiting = sorted(jobs, key=lambda j: -RUN.known.get(j.name, 1e6 + j.size))
    running, failed = {}, []
    began_all = reported = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.pop(0)
                out = tempfile.TemporaryFile(mode='w+b')
                job.folder = folder_in_memory() if job.in_memory else None
                more = {'TMPDIR': job.folder} if job.folder else {}
                child = subprocess.Popen(job.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=job.cwd,
                                         env={**os.environ, **job.env, **more}, start_new_session=True)
                running[child.pid] = (job, child, out, time.monotonic())
            now = time.monotonic()
            if now - reported > 60:  # a long silence looks like a hang
                reported = now
                print('   %.0f s: %d of %d done, now %s' % (now - began_all, len(jobs) - len(waiting) - len(running), len(jobs),
                                                            ', '.join(j.name for j, *_ in running.values())))
                sys.stdout.flush()
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid not in running:
                for job, child, _, began in running.values():
                    if now - began > job.timeout:
                        kill(child.pid)
                time.sleep(0.02)
                continue
            job, child, out, began = running.pop(pid)
            kill(pid)  # no test depends on what another left running
            if job.folder:
                shutil.rmtree(job.folder, ignore_errors=True)
            child.returncode = code = os.waitstatus_to_exitcode(status)
            took = time.monotonic() - began
            out.seek(0)
            text = out.read().decode(errors='replace')
            out.close()
            counts = results(job, code, text)
            if not quiet:
                RUN.count(*counts)
                for reason in skip_reasons(job, counts[2], text):
                    of = RUN.skips.setdefault(reason, {})
                    of[job.name] = of.get(job.name, 0) + 1
                RUN.took.append((took, used.ru_utime + used.ru_stime, job.name))
            RUN.known[job.name] = round(took, 2)
            if counts[1]:
                failed.append(job.name)
                print('-- %s%s' % (job.name, ': no end after %d s' % job.timeout if code == -signal.SIGKILL else ''))
                print(failure_text(job, text))
                if not quiet:
                    RUN.failures.append(job.name + ': ' + job.again)
                sys.stdout.flush()
    finally:
        for pid, (job, *_) in running.items():
            kill(pid)
            if job.folder:
                shutil.rmtree(job.folder, ignore_errors=True)
    if os.path.isdir(BUILD):
        with open(TIMES, 'w', encoding='utf-8') as f:
            json.dump(RUN.known, f, indent=0, sort_keys=True)
    return failed


# --- jobs ---

def meson_jobs(folder, suite=None, names=None, wrapper=(), slower=1):
    """Tests of a build folder: of a suite, or with these names."""
    listed = json.loads(subprocess.run(['meson', 'introspect', folder, '--tests'], capture_output=True, check=True).stdout)
    unknown = set(names or ()) - set(test['name'] for test in listed)
    if unknown:
        sys.exit('tests/run: not a test of %s: %s' % (folder, ' '.join(sorted(unknown))))
    jobs = []
    for test in listed:
        suites = [s.split(':')[-1] for s in test['suite']]
        if suite and suite not in suites or names is not None and test['name'] not in names:
            continue
        argv = test['cmd'] if not wrapper or not test['name'] in (names or ()) else [*wrapper, *test['cmd']]
        read = 'cmocka' if 'unit' in suites else 'exit'
        if test['name'] == 'without_faults':  # grep that must find nothing
            argv, read = ['bash', '-c', '! "$@"', '_', *argv], 'exit'
        jobs.append(Job('%s %s' % (suites[0] if suites[0] != 'unit' else ' '.join(suites), test['name']), argv,
                        {k: str(v) for k, v in test['env'].items()}, read, test['timeout'] * slower, test['workdir'] or folder, 'meson test -C %s %s' % (folder, test['name']),
                        in_memory=any('/on_postgres' in a or '/on_clickhouse' in a for a in test['cmd'])))
    return jobs


def node_job(file, env=None, binary=SERVER, kind='e2e', timeout=900):
    name = os.path.basename(file).replace('.test.mjs', '')
    return Job('%s %s' % (kind, name), ['node', '--test-reporter=tap', file],
               {'TRACEWELL': binary, **(env or {})}, 'node', timeout,
               in_memory=os.path.basename(os.path.dirname(file)) in IN_MEMORY and name not in ON_DISK)


def e2e_files():
    return sorted(glob.glob('tests/e2e/*/*.test.mjs'))


def e2e_file(name):
    """The path of a file of any folder of tests/e2e by its name alone; names are unique."""
    found = glob.glob('tests/e2e/*/%s.test.mjs' % name)
    return found[0] if found else 'tests/e2e/%s.test.mjs' % name


def e2e_names(browser):
    names = [os.path.basename(f)[:-len('.test.mjs')] for f in e2e_files()]
    return sorted(n for n in names if n.endswith('page') == browser)


# --- kinds ---

def run_house():
    pool([Job('tests/house', ['tests/house'])], 1)


def run_web():
    must('build the tests of the page', ['node', 'build.mjs', '--test'], cwd='web')
    pool([Job('web check', ['npm', 'run', '--silent', 'check'], cwd='web')] +
         [Job('web ' + os.path.basename(f), ['node', '--test-reporter=tap', f], read='node')
          for f in sorted(glob.glob('web/dist-test/*.js'))], CORES)


def check_lists():
    """The lists above name tests of kinds that are not run here: each name must be a test's."""
    listed = json.loads(subprocess.run(['meson', 'introspect', BUILD, '--tests'], capture_output=True, check=True).stdout)
    units, files = {test['name'] for test in listed}, set(e2e_names(False) + e2e_names(True))
    stale = [n for n in THREADED_UNIT + MEMCHECKED if n not in units]
    stale += [n for n in FULL_E2E + ON_DISK + SMOKE + CLICKHOUSE + POSTGRES_S3 + list(LONG) + NOT_SANITIZED + THREADED if n not in files]
    if stale:
        RUN.fail('tests/runner.py names no test: ' + ' '.join(stale))


def run_unit():
    check_lists()
    pool(meson_jobs(BUILD, 'unit'), CORES + 2)  # PostgreSQL's mostly wait


def run_golden():
    pool(meson_jobs(BUILD, 'golden'), 1)


def run_replay():
    pool(meson_jobs(BUILD, 'fuzz'), CORES)


def run_smoke():
    pool([node_job(e2e_file(n)) for n in SMOKE], CORES)


def e2e_jobs(browser, full=False):
    """API and browser; most of their time is spent waiting: for leases, time-outs and disks."""
    return [node_job(e2e_file(n), kind='browser' if b else 'e2e') for b in browser for n in e2e_names(b) if full or n not in FULL_E2E]


def run_e2e():
    pool(e2e_jobs((False,)), JOBS)


def run_browser():
    pool(e2e_jobs((True,)), JOBS)


def run_e2e_full():
    pool(e2e_jobs((False,), full=True), JOBS)


@contextlib.contextmanager
def kept(script):
    """What a script of tests/unit prints of the server that it keeps running; None without that server."""
    folder = folder_in_memory()
    keeper = subprocess.Popen([script, '--keep'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, **({'TMPDIR': folder} if folder else {})})
    at = keeper.stdout.readline().strip()
    there = at.startswith(('postgres:', '127.'))
    if not there:
        print(at)
        RUN.count(0, 0, 1)
    try:
        yield at if there else None
    finally:
        keeper.stdin.close()
        keeper.wait()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def on_postgres_s3(url):
    """Some files with the catalogue in PostgreSQL and the stored files in an S3-compatible store."""
    env = {'TRACEWELL_TEST_POSTGRES': url, 'TRACEWELL_TEST_BUCKET': '1'}
    return [node_job(e2e_file(n), env, kind='postgres_s3') for n in POSTGRES_S3] if url else []


def on_clickhouse(at):
    """Questions on many traces with their sums in ClickHouse."""
    return [node_job(e2e_file(n), {'TRACEWELL_TEST_CLICKHOUSE': at}, kind='clickhouse') for n in CLICKHOUSE] if at else []


def run_postgres_s3():
    with kept('tests/unit/on_postgres') as url:
        pool(on_postgres_s3(url), JOBS)


def run_clickhouse():
    with kept('tests/unit/on_clickhouse') as at:
        pool(on_clickhouse(at), JOBS)


def run_end_to_end():
    """In one pool, so that the cores have work until its end."""
    with kept('tests/unit/on_postgres') as url, kept('tests/unit/on_clickhouse') as at:
        pool(e2e_jobs((False, True)) + on_postgres_s3(url) + on_clickhouse(at), JOBS)


SANITIZED = {'ASAN_OPTIONS': 'detect_leaks=1', 'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1'}


def run_sanitize():
    """The parsers: unit tests of the decoder, and the corpora and golden inputs of each format, under ASan and UBSan."""
    build('build-sanitize', 'sanitize', ['decoder-tests'])
    os.environ.update(SANITIZED)
    jobs = [j for suite in ('decoder_base', 'decoder_formats', 'decoder_anr', 'decoder_sampled', 'decoder_trace', 'decoder_fuzz') for j in meson_jobs('build-sanitize', suite, slower=4)]
    for j in jobs:
        j.name = 'sanitize ' + j.name
    pool(jobs, CORES)


def run_sanitize_all():
    build('build-sanitize', 'sanitize')
    os.environ.update(SANITIZED)
    pool(meson_jobs('build-sanitize', slower=4), CORES + 1)


def watched(folder, profile, jobs_of, at_once):
    """Jobs over a build with a sanitizer.  A report of any process is a failure, but for crashes that tests cause."""
    build(folder, profile)
    reports = os.path.join(ROOT, folder, 'reports')
    subprocess.run(['rm', '-rf', reports], check=True)
    os.makedirs(reports)
    os.environ.update({'ASAN_OPTIONS': 'detect_leaks=1:exitcode=66:log_path=%s/address' % reports,
                       'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1:log_path=%s/undefined' % reports,
                       'TSAN_OPTIONS': 'exitcode=66:log_path=%s/thread' % reports})
    pool(jobs_of(), at_once)
    found = [f for f in sorted(glob.glob(reports + '/*')) if ' in tw_worker_fault ' not in open(f, errors='replace').read()]
    if found:
        for f in found[:5]:
            print('-- ' + f + '\n' + open(f, errors='replace').read()[:4000])
        RUN.fail('%d reports in %s' % (len(found), reports))
    else:
        RUN.count(1, 0)


def run_sanitize_e2e():
    names = [n for n in e2e_names(False) if n not in NOT_SANITIZED]
    watched('build-sanitize', 'sanitize', lambda: [
        node_job(e2e_file(n), binary='build-sanitize/server/tracewell', kind='sanitize_e2e', timeout=2400) for n in names], CORES + 1)


def run_threads():
    watched('build-tsan', 'tsan', lambda: meson_jobs('build-tsan', names=THREADED_UNIT, slower=4) +
            [node_job(e2e_file('parallel'), binary='build-tsan/server/tracewell', kind='threads', timeout=2400)], CORES)


def run_threads_e2e():
    watched('build-tsan', 'tsan', lambda: [
        node_job(e2e_file(n), binary='build-tsan/server/tracewell', kind='threads_e2e', timeout=2400) for n in THREADED], CORES + 1)


def run_valgrind():
    install('install_missing', 'valgrind')
    names = MEMCHECKED
    if os.environ.get('MEMCHECK') == 'all':
        names = [j.name.split()[-1] for j in meson_jobs(BUILD, 'unit') if j.name.split()[-1] not in ('jail', 'postgres_hold') and
                 not j.name.split()[-1].startswith('on_postgres')]
    jobs = meson_jobs(BUILD, 'unit', names, ['valgrind', '-q', '--error-exitcode=9', '--leak-check=full',
                                             '--errors-for-leak-kinds=definite'], slower=20)
    for j in jobs:
        j.name = 'valgrind ' + j.name
    pool(jobs, CORES)


def product():
    """The C files of the product."""
    return sorted(glob.glob('decoder/**/*.c', recursive=True) + glob.glob('server/**/*.c', recursive=True))


def tidy(what, files, *arguments):
    """clang-tidy, a file at a time: its analyzer is not sure of itself over several."""
    os.makedirs(FOR_CLANG, exist_ok=True)
    with open(BUILD + '/compile_commands.json', encoding='utf-8') as f, open(FOR_CLANG + '/compile_commands.json', 'w', encoding='utf-8') as to:
        to.write(re.sub(r" '?-mmem(set|cpy)-strategy=[^ ']*'?", '', f.read()))
    failed = pool([Job('%s %s' % (what, f), ['clang-tidy', '-p', FOR_CLANG, '--quiet', *arguments, f], timeout=1800) for f in files],
                          CORES, quiet=True)
    if failed:
        RUN.fail('%s: %d files' % (what, len(failed)))
    else:
        RUN.count(1, 0)


def run_lint(files=None):
    tidy('lint', files or product(), '--checks=-clang-analyzer-*')


def run_analyze():
    tidy('analyze', product())


def run_fuzz():
    seconds = os.environ.get('FUZZ_SECONDS', '60')
    # one more than there are cores: some of them wait for their files
    pool([Job('fuzz', ['tests/fuzz/run', '--seconds', seconds, '--jobs', str(CORES + 1)], timeout=86400)], 1)


def run_long():
    install('stopped', *SWIFT)
    pool([Job('long ' + n, ['node', '--test-reporter=tap', e2e_file(n)],
              {'TRACEWELL': SERVER, **dict(e.split('=') for e in env.split())}, 'node', 4 * 3600) for n, env in LONG.items()] +
         [node_job(e2e_file('every_page'), {'TRACEWELL_TESTS': 'full'}, kind='long', timeout=3600)], CORES)


def run_package():
    install('install_missing', 'dpkg-dev', 'debootstrap', 'lintian', 'man-db', 'systemd', 'zsh', 'python3-seccomp', 'openssl', 'buildah')
    install('stopped', 'nginx-light', 'caddy', 'prometheus')
    pool([node_job(f, kind='package', timeout=3600) for f in sorted(glob.glob('tests/package/*.test.mjs'))], CORES)


def run_swift():
    install('stopped', *SWIFT)
    pool([node_job(f, kind='swift', timeout=3600) for f in sorted(glob.glob('tests/swift/*.test.mjs'))], CORES)


def run_docker():
    install('install_missing', 'debootstrap')
    install('stopped', 'docker.io', 'docker-compose', 'iptables')
    pool([node_job(f, kind='docker', timeout=3600) for f in sorted(glob.glob('tests/docker/*.test.mjs'))], CORES)


def reads_samples():
    """Names of files of unit tests, and e2e files, that read real recordings."""
    unit = [os.path.basename(f)[5:-2] for f in glob.glob('tests/unit/*/test_*.c') if 'unit_sample(' in open(f, encoding='utf-8').read()]
    e2e = [f for f in e2e_files() if re.search(r'\bsample\(', open(f, encoding='utf-8').read())]
    return unit, e2e


def run_samples():
    """The files that read real recordings, which are not in the repository."""
    unit, e2e = reads_samples()
    pool(meson_jobs(BUILD, 'unit', unit) + [node_job(f, kind='samples') for f in e2e], JOBS)


def run_oracles():
    """What other programs read in the same files, and R8's own cases; programs that are not installed are skipped."""
    pool([Job('oracles dmtracedump', ['tests/oracles/dmtracedump', SERVER]), node_job(e2e_file('importer'), kind='oracles')] +
         meson_jobs(BUILD, names=['golden_retrace', 'retrace']), JOBS)


QUICK = ['house', 'web', 'unit', 'golden', 'smoke']
DEFAULT = ['house', 'web', 'unit', 'golden', 'replay', 'end_to_end', 'sanitize']
FULL = ['house', 'web', 'unit', 'golden', 'replay', 'lint', 'e2e_full', 'browser', 'postgres_s3', 'clickhouse', 'sanitize_all', 'threads', 'valgrind',
        'fuzz', 'package', 'sanitize_e2e', 'threads_e2e', 'long', 'swift', 'docker']
OTHERS = ['e2e', 'analyze', 'oracles', 'samples']


def busy_s():
    """Processor time of the whole machine so far: user, nice and system."""
    with open('/proc/stat', encoding='ascii') as f:
        fields = f.readline().split()
    return sum(int(fields[i]) for i in (1, 2, 3)) / os.sysconf('SC_CLK_TCK')


def run_kinds(kinds):
    for kind in kinds:
        print('== ' + kind)
        sys.stdout.flush()
        began, count = time.monotonic(), (RUN.passed, RUN.failed, RUN.skipped)
        cpu = busy_s()
        before = dict(os.environ)
        globals()['run_' + kind]()
        os.environ.clear()
        os.environ.update(before)
        took = time.monotonic() - began
        RUN.took.append((took, None, kind + ' (all of it)'))
        n = [now - then for now, then in zip((RUN.passed, RUN.failed, RUN.skipped), count)]
        print('   %.0f s, cores busy %.0f %%, %d passed, %d failed, %d skipped' % (took, 100 * (busy_s() - cpu) / took / CORES, *n))
        sys.stdout.flush()


# --- tests of a change ---

def changed_files(base):
    def git(*arguments):
        r = subprocess.run(['git', *arguments], capture_output=True, text=True)
        return r.stdout.strip() if r.returncode == 0 else ''
    if not base:
        base = git('merge-base', 'HEAD', 'main') or git('merge-base', 'HEAD', 'origin/main') or 'HEAD'
    files = git('diff', '--name-only', base).split('\n') + git('ls-files', '-o', '--exclude-standard').split('\n')
    return sorted(set(f for f in files if f))


def run_changed(base):
    files = changed_files(base)
    table = []
    with open('tests/changed.txt', encoding='utf-8') as f:
        for line in f:
            if line.strip() and not line.startswith('#'):
                pattern, words = line.split(':', 1)
                table.append((pattern.strip(), words.split()))
    wanted = set()
    for file in files:
        m = re.fullmatch(r'tests/unit/\w+/test_(\w+)\.c|tests/e2e/\w+/(\w+)\.test\.mjs', file)
        found = [w for pattern, words in table if fnmatch.fnmatch(file, pattern) for w in words]
        if m:
            found.append(m.group(1) or m.group(2))
        if not found:
            print('%s: no line of tests/changed.txt fits, so all quick tests run' % file)
            found = ['quick']
        wanted.update(found)
    print('%d files changed: house %s' % (len(files), ' '.join(sorted(wanted))))
    linted = [f for f in product() if f in files]
    if linted:
        print('== lint of the changed files')
        run_lint(linted)
    kinds = ['house'] + [k for k in QUICK[1:] + ['replay'] if 'quick' in wanted and k in QUICK or k in wanted]
    run_kinds(kinds)
    wanted -= set(kinds)
    e2e = [n for b in (False, True) for n in e2e_names(b) if n in wanted and not ('smoke' in kinds and n in SMOKE)]
    jobs = [] if 'unit' in kinds else [j for j in meson_jobs(BUILD, 'unit') if wanted & set(j.name.split())]
    units = set(w for j in meson_jobs(BUILD, 'unit') for w in j.name.split())
    for word in sorted(wanted - units - set(QUICK) - set(e2e_names(False)) - set(e2e_names(True))):
        RUN.fail('tests/changed.txt: %s names no test' % word)
    print('== what else they touch')
    pool(jobs, CORES + 1)
    pool([node_job(e2e_file(n)) for n in e2e], JOBS)


# --- again and again ---

def run_repeat(times, names):
    jobs = []
    for name in names:
        file = name if name.endswith('.test.mjs') else e2e_file(name)
        jobs += [node_job(file)] if os.path.exists(file) else meson_jobs(BUILD, 'unit', [name])
    busy = [subprocess.Popen([sys.executable, '-c', 'while True: pass'], start_new_session=True) for _ in range(CORES)]
    failed = {}
    try:
        for i in range(times):
            for name in pool(jobs, CORES, quiet=True):
                failed[name] = failed.get(name, 0) + 1
            print('   round %d of %d: %d files, %d failures so far' % (i + 1, times, len(jobs), sum(failed.values())))
            sys.stdout.flush()
    finally:
        for b in busy:
            b.kill()
            b.wait()
    for name, n in sorted(failed.items()):
        RUN.failures.append('%s: %d of %d times' % (name, n, times))
    bad = sum(failed.values())
    RUN.count(times * len(jobs) - bad, bad)


def main():
    global RUN, JOBS
    os.chdir(ROOT)
    p = argparse.ArgumentParser(prog='tests/run', usage='see below', epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ('--quick', '--full', '--list', '--screenshots'):
        p.add_argument(name, action='store_true')
    p.add_argument('--changed', nargs='?', const='', metavar='BASE')
    p.add_argument('--only', action='append', metavar='KIND', default=[])
    p.add_argument('--repeat', nargs='+', metavar=('N', 'FILE'))
    p.add_argument('--jobs', type=int, default=2 * CORES)
    o = p.parse_args()
    JOBS = o.jobs
    if o.list:
        for tier, kinds in (('--quick', QUICK), ('default', DEFAULT), ('--full', FULL), ('named', OTHERS)):
            print('%-8s %s' % (tier, ' '.join(kinds)))
        return
    for kind in o.only:
        if 'run_' + kind not in globals() or kind in ('changed', 'kinds', 'repeat'):
            p.exit(2, 'tests/run: no kind of test is called %s; --list names them\n' % kind)
    if o.repeat and (not o.repeat[0].isdigit() or len(o.repeat) < 2):
        p.exit(2, 'tests/run: --repeat N FILE...\n')
    RUN = Run()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: ends what runs
    initdb = folder_in_memory() or tempfile.mkdtemp(prefix='tw-')
    os.chmod(initdb, 0o1777)
    os.environ['TRACEWELL_INITDB'] = initdb
    atexit.register(shutil.rmtree, initdb, ignore_errors=True)
    install('all')
    build(BUILD, 'test')
    if o.screenshots:
        sys.exit(subprocess.run(['node', 'tests/e2e/screenshots.mjs', 'tests/screenshots'], env={**os.environ, 'TRACEWELL': SERVER}).returncode)
    if o.repeat:
        run_repeat(int(o.repeat[0]), o.repeat[1:])
    elif o.changed is not None:
        run_changed(o.changed)
    else:
        if o.full:
            os.environ['TRACEWELL_TESTS'] = 'full'  # what e2e and browser files do more
        run_kinds(o.only or (QUICK if o.quick else FULL if o.full else DEFAULT))
    RUN.finish()


if __name__ == '__main__':
    main()
