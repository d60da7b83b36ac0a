#!/usr/bin/env python3
"""Makes a table of the query parameters of the API's routes of its description: parameters.py OUT.c OPENAPI"""
import json
import sys


def main():
    out, description = sys.argv[1:]
    with open(description, encoding='utf-8') as f:
        api = json.load(f)

    def names(at):
        for p in at.get('parameters', []):
            if '$ref' in p:
                p = api['components']['parameters'][p['$ref'].rsplit('/', 1)[1]]
            if p['in'] == 'query':
                yield p['name']

    lines = []
    for path, item in api['paths'].items():
        for method in item:
            if method == 'parameters' or not path.startswith('/api/v1/') or 'x-any-parameters' in item[method]:
                continue
            known = {*names(item), *names(item[method])}
            if known & {'thread', 'threads'}:  # both words, one meaning
                known |= {'thread', 'threads'}
            lines.append('\t{"%s", "%s", (const char *const[]){%s}},\n' % (method.upper(), path, ', '.join(['"%s"' % n for n in sorted(known)] + ['NULL'])))
    with open(out, 'w', encoding='utf-8') as f:
        f.write('#include <stddef.h>\n\n#include "server/http/parameters.h"\n\nconst struct tw_parameters tw_parameters[] = {\n%s\t{NULL, NULL, NULL},\n};\n' % ''.join(lines))


main()
