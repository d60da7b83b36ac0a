#!/usr/bin/env python3
"""Writes schema/repairs.md, schema/notes.md and deploy/guides/commands.md from the lists that the product is
built from.  --check: reports those that are out of date."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = os.path.join(HERE, '..', 'decoder', 'formats')
COMMANDS = '../deploy/guides/commands.md'
KINDS = {'NOTE': 'note', 'REPAIR': 'repair', 'LOSS': 'loss'}


def entries(name, pattern):
    with open(os.path.join(FORMATS, name), encoding='utf-8') as f:
        return re.findall(pattern, f.read(), re.M | re.S)


def text(s):
    return re.sub(r'"\s+"', '', s).replace('\\"', '"').replace('|', '\\|')


def repairs():
    out = ['# What a decode reports', '',
           'Counted by these names in `report.repairs` of a trace, each with the offset of its first case in the',
           'decoded input. A *note* lost nothing, a *repair* mended a value, a *loss* means that something is missing.',
           'Names are part of the API: they are added, never renamed. Made by `schema/lists.py` from',
           '`decoder/formats/repairs.def`.', '', '| name | kind | meaning |', '|---|---|---|']
    for name, kind, meaning in entries('repairs.def', r'^REPAIR\((\w+), (\w+),\s*"(.*?)"\)'):
        out.append('| `%s` | %s | %s |' % (name, KINDS[kind], text(meaning)))
    return '\n'.join(out) + '\n'


def notes():
    out = ['# What a trace says beside its calls', '',
           'Kinds of notes, answered by `/api/v1/traces/{id}/notes` and stored in `trace_note`. Made by',
           '`schema/lists.py` from `decoder/formats/notes.def`.', '',
           '| kind | meaning | `value` | `text` |', '|---|---|---|---|']
    for name, value, what, meaning in entries(
            'notes.def', r'^NOTE\((\w+),\s*"(.*?)",\s*"(.*?)",\s*"(.*?)"\)'):
        out.append('| `%s` | %s | %s | %s |' % (name, text(meaning), text(value), text(what)))
    return '\n'.join(out) + '\n'


def commands():
    """The guide, whose groups of commands are made from cli.def: from a heading to the first line `<!-- end -->`."""
    with open(os.path.join(HERE, COMMANDS), encoding='utf-8') as f:
        guide = f.read()
    with open(os.path.join(HERE, '..', 'server', 'cli', 'cli.def'), encoding='utf-8') as f:
        groups = re.split(r'^/\* --- (.*?) --- \*/$', f.read(), flags=re.M)[1:]
    for title, body in zip(groups[::2], groups[1::2]):
        made = ['## %s\n' % title]
        for args in re.findall(r'^COMMAND\((\w+),\s*((?:"(?:[^"\\]|\\.)*"[\s,]*)+)\)', body, re.M):
            synopsis, summary, about = (json.loads(re.sub(r'"\s+"', '', s)) for s in re.findall(
                r'"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*', args[1]))
            made.append('### tracewell %s\n\n```text\ntracewell %s\n```\n\n%s.%s\n' % (
                args[0], synopsis, summary[0].upper() + summary[1:], ' ' + about if about else ''))
        guide, n = re.subn(r'^## %s\n.*?(?=^<!-- end -->$)' % re.escape(title), lambda _: '\n'.join(made) + '\n',
                           guide, count=1, flags=re.M | re.S)
        if not n:
            sys.exit('deploy/guides/commands.md has no part "## %s", ended by <!-- end -->' % title)
    return guide


def kinds_not_described():
    """The API's description has the kinds in an enum and in words."""
    with open(os.path.join(HERE, 'openapi.json'), encoding='utf-8') as f:
        text = f.read()
    for kind, _, _, _ in entries('notes.def', r'^NOTE\((\w+),\s*"(.*?)",\s*"(.*?)",\s*"(.*?)"\)'):
        if '\t"%s"' % kind not in text or ' %s: ' % kind not in text.replace('"', ' '):
            yield kind


def main():
    stale = 0
    for kind in kinds_not_described():
        print('schema/openapi.json does not know notes of kind %s' % kind)
        stale = 1
    for name, make in (('repairs.md', repairs), ('notes.md', notes), (COMMANDS, commands)):
        path = os.path.join(HERE, name)
        want = make()
        have = open(path, encoding='utf-8').read() if os.path.exists(path) else ''
        if '--check' not in sys.argv:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(want)
        elif have != want:
            print('schema/%s is not what schema/lists.py makes' % name)
            stale = 1
    return stale


sys.exit(main())
