#!/usr/bin/env python3
"""Turns files into one C source: embed.py OUT.c SYMBOL FILE...
or a whole folder: embed.py OUT.c SYMBOL --folder FOLDER
or SQL without its comments: embed.py OUT.c SYMBOL --sql FILE...

The source defines `const struct tw_embedded SYMBOL[]`, one element a file in the
order given (name = the file's base name, bytes with a NUL behind them), ended by
an element whose name is NULL.  struct tw_embedded is in server/base/embedded.h.

Of a folder all files are taken, by names relative to it, and each that shrinks a
second time as NAME.gz; a folder that is missing gives an empty list.  The source
is only written anew when it would change, so that nothing else is rebuilt.
"""
import gzip
import os
import re
import sys


def literal(data):
    lines = []
    for at in range(0, len(data), 24):
        lines.append(','.join(str(b) for b in data[at:at + 24]) + ',')
    return '\n'.join(lines)


def files_of(paths):
    for path in paths:
        with open(path, 'rb') as f:
            yield os.path.basename(path), f.read()


def sql_of(paths):
    """SQLite stores the text of each table in each database."""
    for name, data in files_of(paths):
        yield name, re.sub(rb'[ \t]*--[^\n]*', b'', data)


def folder_of(top):
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, 'rb') as f:
                data = f.read()
            packed = gzip.compress(data, 9, mtime=0)
            yield os.path.relpath(path, top), data
            if len(packed) < len(data):
                yield os.path.relpath(path, top) + '.gz', packed


def source(symbol, entries):
    parts = ['#include "server/base/embedded.h"\n']
    rows = []
    entries = list(entries)
    for i, (name, data) in enumerate(entries):
        parts.append('static const unsigned char file_%d[] = {\n%s0};\n' % (i, literal(data)))
        rows.append('{"%s", file_%d, sizeof file_%d - 1},\n' % (name, i, i))
    names = [name for name, _ in entries]
    assert len(set(names)) == len(names), 'a name is embedded twice'
    parts.append('extern const struct tw_embedded %s[];\n' % symbol)
    parts.append('const struct tw_embedded %s[] = {\n%s{0}};\n' % (symbol, ''.join(rows)))
    return ''.join(parts)


def write(out, text):
    """Leaves an equal file alone, so that nothing else is rebuilt."""
    if os.path.exists(out):
        with open(out, encoding='ascii') as f:
            if f.read() == text:
                return
    with open(out, 'w', encoding='ascii') as f:
        f.write(text)


def main():
    out, symbol, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    if paths[:1] == ['--folder']:
        write(out, source(symbol, folder_of(paths[1])))
    elif paths[:1] == ['--sql']:
        write(out, source(symbol, sql_of(paths[1:])))
    else:
        write(out, source(symbol, files_of(paths)))


if __name__ == '__main__':
    main()
