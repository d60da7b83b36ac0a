#!/usr/bin/env python3
"""Turns files into one C source: embed.py OUT.c SYMBOL FILE...

The source defines `const struct tw_embedded SYMBOL[]`, one element a file in the
order given (name = the file's base name, bytes with a NUL behind them), ended by
an element whose name is NULL.  struct tw_embedded is in server/embedded.h.
"""
import os
import sys


def literal(data):
    lines = []
    for at in range(0, len(data), 24):
        lines.append(','.join(str(b) for b in data[at:at + 24]) + ',')
    return '\n'.join(lines)


def main():
    out, symbol, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(out, 'w', encoding='ascii') as c:
        c.write('#include "embedded.h"\n')
        for i, path in enumerate(paths):
            with open(path, 'rb') as f:
                data = f.read()
            c.write('static const unsigned char file_%d[] = {\n%s0};\n' % (i, literal(data)))
        c.write('extern const struct tw_embedded %s[];\n' % symbol)
        c.write('const struct tw_embedded %s[] = {\n' % symbol)
        for i, path in enumerate(paths):
            c.write('{"%s", file_%d, sizeof file_%d - 1},\n' % (os.path.basename(path), i, i))
        c.write('{0}};\n')


main()
