#!/usr/bin/env python3
"""Writes what is made from the lists that the binary is built from, so that none of it can be stale:
the man page, a configuration file with every setting, and completion for bash and zsh.

  deploy/documents.py FOLDER VERSION DATE
"""
import os
import re
import sys

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'server')
STRING = r'"((?:[^"\\]|\\.)*)"'
FILES = {'FILE', 'FILE...', 'FILE|FOLDER...', 'DIR', 'FOLDER', 'OUT', 'M', 'S', 'T'}

EXITS = [
    ('0', 'done, `--help` too; for `compare`: every condition holds; for `check` and `doctor`: nothing is wrong'),
    ('1', 'failed, with a sentence on standard error; for `compare`: a condition does not hold; for `check` and '
          '`doctor`: something is wrong; for `backup`: something damaged was left out; for `push`: a file was refused'),
    ('2', 'wrong usage; for `compare`: too little to judge by'),
    ('3', 'for `compare`, `watch` and `top`: the server cannot be asked, or refuses the key'),
]


def calls(name, macro):
    """The arguments of each macro(...) in a .def file; adjacent strings are one."""
    with open(os.path.join(SERVER, name), encoding='utf-8') as f:
        text = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
    for body in re.findall(r'^%s\(((?:%s|[^"()]|\([^()]*\))*)\)' % (macro, STRING), text, re.M):
        yield re.sub(r'"\s+"', '', body[0])


def unquote(s):
    return s.replace('\\"', '"').replace('\\\\', '\\')


def commands():
    for body in calls('cli.def', 'COMMAND'):
        name = body.split(',', 1)[0].strip()
        synopsis, summary = (unquote(s) for s in re.findall(STRING, body)[:2])
        if summary:
            yield name, synopsis, summary


def settings():
    for body in calls('config.def', 'SETTING'):
        kind = body.split(',', 1)[0].strip()
        strings = [unquote(s) for s in re.findall(STRING, body)]
        yield kind, strings[0], strings[1], strings[-1]


def roff(s):
    s = s.replace('\\', '\\e').replace('-', '\\-')
    s = re.sub(r'`([^`]*)`', r'\\fB\1\\fR', s)
    return '\\&' + s if s[:1] in ".'" else s


def man(version, date):
    out = ['.TH TRACEWELL 1 "%s" "tracewell %s" "User Commands"' % (date, version),
           '.SH NAME', 'tracewell \\- method traces of Android apps, received, decoded and shown',
           '.SH SYNOPSIS', '.B tracewell', '.I command', '.RI [ argument ...]',
           '.SH DESCRIPTION',
           'Devices send method traces over HTTP; each is decoded in a limited process into one SQLite file,',
           'named by the mapping of its build, and shown in a page that the server brings along. Most other',
           'commands work on the data folder beside a running server, or need no server at all.',
           '.SH COMMANDS']
    for _, synopsis, summary in commands():
        out += ['.TP', '.B ' + roff(synopsis), roff(summary[0].upper() + summary[1:] + '.')]
    out += ['.TP', '.B ' + roff('version [--json]'), 'Prints the version.', '.TP', '.B help', 'Prints all commands.',
            '.SH SETTINGS OF SERVE',
            'A setting is a flag, an environment variable (\\fBTRACEWELL_\\fR and its name in capitals, with',
            'underscores for hyphens), or a line \\fIname\\fB = \\fIvalue\\fR of the file given by',
            '\\fB\\-\\-config\\fR; the first of these wins.']
    for _, flag, default, meaning in settings():
        out += ['.TP', '.BI %s " VALUE"' % roff('--' + flag),
                roff('%s%s (default: %s).' % (meaning[0].upper(), meaning[1:], default or 'empty'))]
    out += ['.SH EXIT STATUS']
    for code, meaning in EXITS:
        out += ['.TP', '.B ' + code, roff(meaning[0].upper() + meaning[1:] + '.')]
    out += ['.SH ENVIRONMENT', '.TP', '.B TRACEWELL_KEY',
            'The key of what asks a server, where \\fB\\-\\-key\\fR would show it in the list of processes.',
            '.TP', '.B NO_COLOR', 'When it is not empty: no colours, on terminals too.',
            '.SH FILES', '.TP', '.I /etc/tracewell/tracewell.conf', 'Settings of the service.',
            '.TP', '.I /var/lib/tracewell', 'Its data folder.',
            '.SH SIGNALS', 'SIGTERM and SIGINT end the server: requests and decodes under way are waited for.',
            'SIGHUP makes it read its certificate again.']
    return '\n'.join(out) + '\n'


def configuration():
    out = ['# Settings of tracewell: `name = value`, one a line. What stands here behind a # is the default.',
           '# Flags and TRACEWELL_* variables win over this file. `man tracewell` has the same list.', '']
    for _, flag, default, meaning in settings():
        if flag == 'data':  # the unit's state folder
            continue
        out += ['# ' + meaning, '#%s = %s' % (flag, default), '']
    return '\n'.join(out)


def words(synopsis):
    """What may follow the command: the choice that comes first (create|list) and its flags."""
    first = re.match(r'\w+ ([a-z]+(?:\|[a-z]+)+)', synopsis)
    flags = re.findall(r'--([a-z0-9-]+)(?: ([A-Za-z0-9|./:]+))?', synopsis)
    return (first.group(1).split('|') if first else []), dict(flags)


def choices():
    """Of each command: the words behind it, and its flags with what they take."""
    for name, synopsis, summary in commands():
        first, flags = words(synopsis)
        if name == 'serve':
            flags = {flag: ('DIR' if flag == 'data' else 'FILE' if flag.endswith(('-cert', '-key', '-file'))
                            else 'VALUE') for _, flag, _, _ in settings()}
            flags['config'] = 'FILE'
        yield name, summary, first, flags


def bash():
    out = ['# bash completion of tracewell', '_tracewell() {',
           '\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= first=',
           '\tif [ "$COMP_CWORD" = 1 ]; then',
           '\t\tmapfile -t COMPREPLY < <(compgen -W "%s version help" -- "$word")'
           % ' '.join(name for name, _, _ in commands()),
           '\t\treturn', '\tfi', '\tcase ${COMP_WORDS[1]} in']
    for name, _, first, flags in choices():
        out.append('\t%s) first="%s" words="%s" ;;' % (
            name, ' '.join(first), ' '.join('--' + f for f in flags)))
    out += ['\tesac',
            '\tif [[ $word == --* ]]; then', '\t\tmapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")',
            '\telif [ "$COMP_CWORD" = 2 ] && [ -n "$first" ]; then',
            '\t\tmapfile -t COMPREPLY < <(compgen -W "$first" -- "$word")',
            '\telif [[ $before == --data ]]; then', '\t\tmapfile -t COMPREPLY < <(compgen -d -- "$word")',
            '\telse', '\t\tmapfile -t COMPREPLY < <(compgen -f -- "$word")', '\tfi', '}',
            'complete -o filenames -F _tracewell tracewell']
    return '\n'.join(out) + '\n'


def zsh_text(s):
    return re.sub(r"([\[\]:\\])", r'\\\1', s).replace("'", '"')


def zsh():
    out = ['#compdef tracewell', '', '_tracewell() {', '\tlocal -a commands=(']
    out += ["\t\t'%s:%s'" % (name, zsh_text(summary)) for name, _, summary in commands()]
    out += ["\t\t'version:prints the version'", "\t\t'help:prints all commands'", '\t)',
            '\tif (( CURRENT == 2 )); then', '\t\t_describe command commands', '\t\treturn', '\tfi',
            '\tlocal command=$words[2]', '\tshift words', '\t(( CURRENT-- ))', '\tcase $command in']
    for name, _, first, flags in choices():
        takes = ["'1:what:(%s)'" % ' '.join(first)] if first else []
        for flag, value in flags.items():
            what = '' if not value else ':%s:%s' % (
                flag if '|' in value else value.lower(), '_files -/' if value == 'DIR' else '_files' if value in FILES
                else '(%s)' % value.replace('|', ' ') if '|' in value else '( )')
            takes.append("'--%s%s'" % (flag, what.replace('( )', ' ')))
        out.append("\t%s) _arguments %s '*:file:_files' ;;" % (name, ' '.join(takes)))
    out += ['\tesac', '}', '', '_tracewell "$@"']
    return '\n'.join(out) + '\n'


def main():
    folder, version, date = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    for name, text in (('tracewell.1', man(version, date)), ('tracewell.conf', configuration()),
                       ('tracewell.bash', bash()), ('_tracewell', zsh())):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
            f.write(text)


main()
