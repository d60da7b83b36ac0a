#!/usr/bin/env python3
"""Copies what the server's routes state about themselves to openapi.json: the summary and the permission that
each needs.  The rest of the description (bodies, responses, schemas) is written in openapi.json by hand.

    schema/openapi.py build/tests/route_table [--check]

A route that is not described yet gets an entry to fill in.  --check changes nothing and fails if something
would change."""
import json
import os
import subprocess
import sys

DESCRIPTION = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'openapi.json')
SECURITY = {'PUBLIC': [], 'USER': [{'session': []}], 'SERVER': [{'session': []}]}
HIDDEN = '/{*}'  # the page and its files


def security(route):
    if route['knows_caller']:
        return [{}, {'key': []}, {'session': []}]
    return SECURITY.get(route['needs'], [{'key': []}, {'session': []}])


def described(route, op):
    """The operation with all that the route states, in a fixed order."""
    first = {'operationId': op.get('operationId', 'FILL_IN'), 'summary': route['summary'], 'x-needs': route['needs'].lower()}
    last = {'security': security(route)}
    body = {k: v for k, v in op.items() if k not in first and k not in last}
    return {**first, **(body or {'responses': {'200': {'description': 'FILL IN'}}}), **last}


def description(api, routes):
    paths = {path: dict(item) for path, item in api['paths'].items()}
    known = set()
    for route in routes:
        path, method = route['path'], route['method'].lower()
        if path == HIDDEN:
            continue
        item = paths.setdefault(path, {})
        item[method] = described(route, item.get(method, {}))
        known.add((path, method))
    for path, item in paths.items():
        for method in item:
            if (path, method) not in known:
                sys.exit('openapi.json describes %s %s, which no route serves' % (method.upper(), path))
    return {**api, 'paths': paths}


def main():
    table, check = sys.argv[1], '--check' in sys.argv
    routes = json.loads(subprocess.run([table], stdout=subprocess.PIPE, check=True).stdout)
    with open(DESCRIPTION, encoding='utf-8') as f:
        have = f.read()
    want = json.dumps(description(json.loads(have), routes), indent='\t', ensure_ascii=False) + '\n'
    if have == want:
        return 0
    if check:
        print('schema/openapi.json is out of date: run schema/openapi.py %s' % table)
        return 1
    with open(DESCRIPTION, 'w', encoding='utf-8') as f:
        f.write(want)
    return 0


sys.exit(main())
