#!/usr/bin/env python3
"""Runs a program under the system calls that a systemd unit leaves it, without systemd:
  under_unit.py UNIT PROGRAM [ARGUMENT...]
SystemCallFilter and MemoryDenyWriteExecute, as systemd.exec(5) tells them."""
import ctypes
import os
import re
import subprocess
import sys

import seccomp

PROT_WRITE, PROT_EXEC = 2, 4


def groups():
    text = subprocess.run(['systemd-analyze', 'syscall-filter', '--no-pager'], check=True, capture_output=True, text=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith('@'):
            name = line.strip()
            found[name] = []
        elif name and line.startswith('    ') and not line.strip().startswith('#'):
            found[name].append(line.strip())
    return found


def members(word, of):
    if not word.startswith('@'):
        return {word}
    return set().union(*(members(w, of) for w in of[word]))


def allowed(unit):
    of, calls = groups(), members('@default', groups())
    for line in re.findall(r'^SystemCallFilter=(.*)$', unit, re.M):
        words = set().union(*(members(w, of) for w in line.lstrip('~').split()))
        calls = calls - words if line.startswith('~') else calls | words
    return calls


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        unit = f.read()
    calls = allowed(unit)
    f = seccomp.SyscallFilter(seccomp.ERRNO(1))
    for call in sorted(calls):
        try:
            if call in ('mmap', 'mprotect', 'pkey_mprotect') and 'MemoryDenyWriteExecute=yes' in unit:
                f.add_rule(seccomp.ALLOW, call, seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC, 0))
                if call == 'mmap':  # code, but not code that may be written
                    f.add_rule(seccomp.ALLOW, call, seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC | PROT_WRITE, PROT_EXEC))
            else:
                f.add_rule(seccomp.ALLOW, call)
        except (OSError, RuntimeError):
            pass  # not a call of this architecture
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # no new privileges
    f.load()
    os.execv(sys.argv[2], sys.argv[2:])


main()
