#!/usr/bin/env python3
"""Writes documents from the lists that the binary is built from, so that they are never outdated:
the man page, a configuration file with every setting, completion for bash and zsh, and the changelog in
Debian's format.

  deploy/documents.py FOLDER VERSION DATE [SIGNED]      SIGNED: "NAME <ADDRESS>  DATE"; without it, no changelog
"""
import os
import re
import sys
import textwrap

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'server')
STRING = r'"((?:[^"\\]|\\.)*)"'
FOLDERS = {'DIR', 'NEWDIR', 'FOLDER'}
FILES = {'FILE', 'OUT', 'M', 'R', 'S', 'T', 'NAME=FILE'}
FILE_FLAGS = {'mapping', 'retrace', 'threads', 'system', 'part'}  # in other flags their letter does not mean a file

EXITS = [
    ('0', 'success, also of `--help`; for `compare`: all conditions pass; for `check` and `doctor`: no problem'),
    ('1', 'failure, with a message on standard error; for `compare`: a condition fails; for `check` and `doctor`: a '
          'problem; for `backup`: damaged files were omitted; for `push`: a file was refused; for `migrate`: the '
          'sides differ, or the source lacks files'),
    ('2', 'wrong usage; for `compare`: also too few traces'),
    ('3', 'for `compare`, `watch` and `top`: the server cannot be reached, or refuses the key'),
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
    for body in calls('cli/cli.def', 'COMMAND'):
        name = body.split(',', 1)[0].strip()
        synopsis, summary = (unquote(s) for s in re.findall(STRING, body)[:2])
        if summary:
            yield name, synopsis, summary


def settings():
    for body in calls('base/config.def', 'SETTING'):
        kind = body.split(',', 1)[0].strip()
        strings = [unquote(s) for s in re.findall(STRING, body)]
        yield kind, strings[0], strings[1], strings[-1]


def roff(s):
    s = s.replace('\\', '\\e').replace('-', '\\-')
    s = re.sub(r'`([^`]*)`', r'\\fB\1\\fR', s)
    return '\\&' + s if s[:1] in ".'" else s


def man(version, date):
    out = ['.TH TRACEWELL 1 "%s" "tracewell %s" "User Commands"' % (date, version),
           '.SH NAME', 'tracewell \\- server for method traces of Android apps',
           '.SH SYNOPSIS', '.B tracewell', '.I command', '.RI [ argument ...]',
           '.SH DESCRIPTION',
           'Devices upload method traces over HTTP. The server decodes each in a sandboxed process and stores it as',
           'one SQLite file; its built-in web UI shows flame graphs, regressions and ANRs. Most other commands work',
           'on the data folder while the server runs, or need no server.',
           '.SH COMMANDS']
    for _, synopsis, summary in commands():
        out += ['.TP', '.B ' + roff(synopsis), roff(summary[0].upper() + summary[1:] + '.')]
    out += ['.TP', '.B ' + roff('version [--json]'), 'Prints the version.', '.TP', '.B ' + roff('help [COMMAND]'),
            'Prints all commands, or the usage of one.',
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
            'The key of client commands. Other users of the machine can see the argument of \\fB\\-\\-key\\fR.',
            '.TP', '.B NO_COLOR', 'If not empty, output has no colours, also on terminals.',
            '.SH FILES', '.TP', '.I /etc/tracewell/tracewell.conf', 'Settings of the service.',
            '.TP', '.I /var/lib/tracewell', 'Its data folder.',
            '.SH SIGNALS', 'SIGTERM and SIGINT stop the server when running requests and decodes have ended, or after',
            '\\fB\\-\\-shutdown\\fR at the latest. SIGHUP reloads the TLS certificate.']
    return '\n'.join(out) + '\n'


def configuration():
    out = ['# Settings of tracewell: `name = value`, one per line. Values after a # are the defaults.',
           '# Flags and TRACEWELL_* variables override this file. `man tracewell` has the same list.', '']
    for _, flag, default, meaning in settings():
        if flag == 'data':  # the unit's state folder
            continue
        out += ['# ' + meaning, '#%s = %s' % (flag, default), '']
    return '\n'.join(out)


def export_kinds():
    """The formats of `export --to`."""
    return [body.strip() for body in calls('export/exports.def', 'EXPORT')]


def values(flag, value):
    """The values of a flag: a list of words, 'folder', 'file', or None if unknown."""
    if value == 'KIND':
        return export_kinds()
    first = value.split('|')[0].split('[')[0]
    if first in FOLDERS:
        return 'folder'
    if flag in FILE_FLAGS or value in FILES - {'M', 'R', 'S', 'T'}:
        return 'file'
    return value.split('|') if '|' in value and value == value.lower() else None


def setting_values(kind, meaning):
    """The same of a setting, from its description: "info or warn", "folder of ...", "PEM file of ..."."""
    if kind == 'BOOL':
        return ['true', 'false']
    choice = re.search(r'(?:^|: )((?:\w+, )*\w+)(?:, separated by commas,)? or (\w+)$', meaning)
    if choice:
        return choice.group(1).split(', ') + [choice.group(2)]
    return 'folder' if meaning.startswith('folder of') else 'file' if re.match(r'(PEM )?file of', meaning) else None


def words(synopsis):
    """The words after the command: its actions (create|list), and its flags with the value of each;
    '' for flags without a value."""
    first = re.match(r'\w+ ([a-z]+(?:\|[a-z]+)*) ', synopsis)
    flags = re.findall(r'(?<![\w-])--?([a-z][a-z0-9-]*)(?: ([A-Za-z0-9_=|./:\[\]-]+(?<!\])))?', synopsis)
    return (first.group(1).split('|') if first else []), dict(flags)


def choices():
    """Of each command: its summary, its actions, its flags ('--to') with their values, and whether it
    takes files."""
    for name, synopsis, summary in commands():
        first, flags = words(synopsis)
        takes = {('--' if len(flag) > 1 else '-') + flag: '' if not value else values(flag, value)
                 for flag, value in flags.items()}
        if name == 'serve':
            takes = {'--' + flag: setting_values(kind, meaning) for kind, flag, _, meaning in settings()}
            takes['--config'] = 'file'
        if name == 'export':
            takes.update({'--project': None, '--data': 'folder'})
        bare = re.sub(r'(?<![\w-])--?[a-z][a-z-]*( [A-Za-z_=.\[\]/|:-]+)?', '', synopsis)
        yield name, summary, first, takes, bool(re.search(r'\bFILE', bare))


def bash_values(takes):
    """The case for the value of the preceding flag."""
    out = []
    for flag, what in takes.items():
        if what != '':
            says = 'of=%s' % what if isinstance(what, str) else 'of=words words="%s"' % ' '.join(what) if what else 'of=none'
            out.append('%s) %s ;;' % (flag, says))
    return 'case $before in %s esac' % ' '.join(out) if out else ':'


def bash():
    names = ' '.join(name for name, _, _ in commands())
    out = ['# bash completion of tracewell', '_tracewell() {',
           '\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= first= of=',
           '\t# bash makes three words of --flag=value',
           '\tif [ "$word" = = ]; then', '\t\tword=', '\telif [ "$before" = = ]; then',
           '\t\tbefore=${COMP_WORDS[COMP_CWORD-2]}', '\tfi', '\tCOMPREPLY=()',
           '\tif [ "$COMP_CWORD" = 1 ]; then', '\t\tof=words words="%s version help"' % names,
           '\telse', '\t\tcase ${COMP_WORDS[1]} in']
    for name, _, first, takes, files in choices():
        out.append('\t\t%s) first="%s" words="%s" of=%s; %s ;;' % (
            name, ' '.join(first), ' '.join(takes), 'file' if files else 'none', bash_values(takes)))
    out += ['\t\thelp) of=words words="%s" ;;' % names,
            '\t\tesac',
            '\t\tif [[ $word == -* && $of != words ]]; then', '\t\t\tof=words',
            '\t\telif [ "$COMP_CWORD" = 2 ] && [ -n "$first" ]; then', '\t\t\tof=words words=$first', '\t\tfi', '\tfi',
            '\tcase $of in',
            '\twords) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;',
            '\tfolder) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;',
            '\tfile) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;',
            '\tesac', '}',
            'complete -o filenames -F _tracewell tracewell']
    return '\n'.join(out) + '\n'


def zsh_text(s):
    return re.sub(r"([\[\]:\\])", r'\\\1', s).replace("'", '"')


def zsh_flag(flag, what):
    if what == '':
        return "'%s'" % flag
    says = {'folder': '_files -/', 'file': '_files'}.get(what) if isinstance(what, str) else '(%s)' % ' '.join(what) if what else ' '
    return "'%s%s:%s:%s'" % (flag, '=' if flag.startswith('--') else '', flag.lstrip('-'), says)


def zsh():
    out = ['#compdef tracewell', '', '_tracewell() {', '\tlocal -a commands=(']
    out += ["\t\t'%s:%s'" % (name, zsh_text(summary)) for name, _, summary in commands()]
    out += ["\t\t'version:prints the version'", "\t\t'help:prints all commands'", '\t)',
            '\tif (( CURRENT == 2 )); then', '\t\t_describe command commands', '\t\treturn', '\tfi',
            '\tlocal command=$words[2]', '\tshift words', '\t(( CURRENT-- ))', '\tcase $command in']
    for name, _, first, takes, files in choices():
        args = ["'1:what:(%s)'" % ' '.join(first)] if first else []
        args += [zsh_flag(flag, what) for flag, what in takes.items()] + (["'*:file:_files'"] if files else [])
        out.append('\t%s) _arguments %s ;;' % (name, ' '.join(args)))
    out += ['\thelp) _describe command commands ;;', '\tesac', '}', '', '_tracewell "$@"']
    return '\n'.join(out) + '\n'


def changes(version):
    """The items of the version in CHANGELOG.md, or of Unreleased if the version has none."""
    with open(os.path.join(SERVER, '..', 'CHANGELOG.md'), encoding='utf-8') as f:
        parts = dict(re.findall(r'^## (\S+).*\n((?:(?!## ).*\n?)*)', f.read(), re.M))
    items = re.findall(r'^- (.*)$', parts.get(version) or parts.get('Unreleased', ''), re.M)
    if not items:
        sys.exit('documents.py: CHANGELOG.md has no items for %s' % version)
    return [re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', item).replace('`', '').replace('*', '') for item in items]


def debian_changelog(version, signed):
    items = [textwrap.fill(item, 78, initial_indent='  * ', subsequent_indent='    ', break_long_words=False,
                           break_on_hyphens=False) for item in changes(version)]
    return 'tracewell (%s) stable; urgency=medium\n\n%s\n\n -- %s\n' % (version, '\n'.join(items), signed)


def main():
    folder, version, date, *signed = sys.argv[1:5]
    os.makedirs(folder, exist_ok=True)
    changelog = [('changelog', debian_changelog(version, signed[0]))] if signed else []
    for name, text in (('tracewell.1', man(version, date)), ('tracewell.conf', configuration()),
                       ('tracewell.bash', bash()), ('_tracewell', zsh()), *changelog):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
            f.write(text)


main()
