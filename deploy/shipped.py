#!/usr/bin/env python3
"""Copies the documents of the package: those named, and those files of FOLLOWED that they link to. A link to another
file, such as source code, becomes its text, because the package does not contain that file.

  deploy/shipped.py FOLDER NAME...      NAME: a file or a folder
"""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
FOLLOWED = ('deploy/', 'schema/', 'server/decisions/', 'decoder/decisions/')
LINK = re.compile(r'^ {0,3}```.*?^ {0,3}```$|!?\[((?:`[^`\n]*`|[^\]`])*)\]\(([^()\s#]+)(?:#[^()\s]*)?\)|`[^`\n]*`', re.M | re.S)


def files_of(name):
    """A file, or all files of a folder."""
    at = os.path.join(ROOT, name)
    if os.path.isdir(at):
        return sorted(os.path.relpath(f, ROOT) for f in glob.glob(at + '/**', recursive=True) if os.path.isfile(f))
    return [name]


def main():
    folder, *waiting = sys.argv[1:]
    shipped = {os.path.normpath(f) for name in waiting for f in files_of(name)}
    waiting = sorted(shipped)
    while waiting:
        name = waiting.pop(0)
        with open(os.path.join(ROOT, name), 'rb') as f:
            content = f.read()

        def linked(m):
            if not m.group(2) or re.match(r'[a-z]+:', m.group(2)):
                return m.group(0)
            target = os.path.normpath(os.path.join(os.path.dirname(name), m.group(2)))
            if target not in shipped and not (target + '/').startswith(FOLLOWED):
                return m.group(1)
            new = [f for f in files_of(target) if f not in shipped]
            shipped.update(new)
            waiting.extend(new)
            return m.group(0)

        if name.endswith('.md'):
            content = LINK.sub(linked, content.decode()).encode()
        to = os.path.join(folder, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, 'wb') as f:
            f.write(content)


main()
