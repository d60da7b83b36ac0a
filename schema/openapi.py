#!/usr/bin/env python3
"""Copies what the server's routes state about themselves to openapi.json: summaries, query parameters, the
permission that each needs, and the refusals that follow from these.  The rest of the description (headers,
bodies, other responses, schemas) is written in openapi.json by hand.

    schema/openapi.py build-test/tests/route_table [--check]

A route that is not described yet gets an entry to fill in.  --check changes nothing and fails if something
would change."""
import json
import os
import re
import subprocess
import sys

DESCRIPTION = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'openapi.json')
SECURITY = {'PUBLIC': [], 'USER': [{'session': []}], 'SERVER': [{'session': []}]}
HIDDEN = '/{*}'  # the page and its files
PROJECT = {'name': 'project', 'in': 'query', 'description': 'The project, for a session that has several.',
           'schema': {'type': 'string'}}
PATH_PARAMETER = re.compile(r'\{(\w+)\}')
LARGEST = 2 ** 62  # and more: as good as no limit


def security(route):
    if route['knows_caller']:
        return [{}, {'key': []}, {'session': []}]
    return SECURITY.get(route['needs'], [{'key': []}, {'session': []}])


def schema_of(p):
    if p['kind'] == 'enum':
        schema = {'type': 'string', 'enum': p['names']}
        return schema if p['optional'] or p['required'] else {**schema, 'default': p['names'][0]}
    if p['kind'] == 'flag':
        return {'type': 'boolean', **({} if p['optional'] else {'default': bool(p['default'])})}
    if p['kind'] == 'number':
        schema = {'type': 'integer', 'minimum': p['min']}
        if p['max'] < LARGEST // 2:
            schema['maximum'] = p['max']
        return schema if p['optional'] or p['default'] >= LARGEST // 2 else {**schema, 'default': p['default']}
    schema = {'type': 'string', **({'maxLength': p['max']} if p['max'] else {})}
    return {'type': 'array', 'items': schema} if p['repeated'] else schema


def parameter(p):
    return {'name': p['name'], 'in': 'query', **({'required': True} if p['required'] else {}),
            **({'description': p['about']} if p['about'] else {}), 'schema': schema_of(p)}


def parameters(route):
    takes_project = route['needs'] not in ('PUBLIC', 'USER', 'SERVER') or route['knows_caller']
    return [parameter(p) for p in route['params']] + ([PROJECT] if takes_project else [])


def is_of_query(p, components):
    at = components.get(p['$ref'].rsplit('/', 1)[1], PROJECT) if '$ref' in p else p
    return at['in'] == 'query'


def shared(api, routes):
    """Components: parameters of paths and headers, by hand, and each query parameter that several routes have."""
    components = {k: v for k, v in api['components']['parameters'].items() if v['in'] != 'query'}
    uses = {}
    for route in routes:
        for p in parameters(route):
            uses.setdefault(p['name'], []).append(p)
    for name, all_of in sorted(uses.items()):
        most = max(all_of, key=all_of.count)
        if all_of.count(most) > 1 and name not in components:
            components[name] = most
    return components


def path_parameters(route, own, components):
    """Those described by hand, and one for each other segment."""
    def name_of(p):
        return p['$ref'].rsplit('/', 1)[1] if '$ref' in p else p['name']

    def made(name):
        if components.get(name, {}).get('in') == 'path':
            return {'$ref': '#/components/parameters/' + name}
        return {'name': name, 'in': 'path', 'required': True, 'schema': {'type': 'string'}}

    described = {name_of(p) for p in own}
    return [made(name) for name in PATH_PARAMETER.findall(route['path']) if name not in described]


def refusals(route):
    """Error responses that are sent before the handler runs, or that any handler sends."""
    names = {}
    if not route['any_params']:
        names['400'] = 'BadRequest'  # also of an unknown parameter
    if route['needs'] != 'PUBLIC':
        names.update({'401': 'NoToken', '403': 'Denied', '429': 'TooMany', '500': 'Failed', '503': 'Busy'})
        if route['method'] == 'GET':
            names['504'] = 'Deadline'
        if PATH_PARAMETER.search(route['path']):
            names['404'] = 'NotFound'
    if route['json']:
        names['413'] = 'TooLarge'
    return {status: {'$ref': '#/components/responses/' + name} for status, name in names.items()}


def described(route, op, had, components):
    """The operation with all that the route states, in a fixed order."""
    own = [p for p in op.get('parameters', []) if not is_of_query(p, had)]
    query = [{'$ref': '#/components/parameters/' + p['name']} if components.get(p['name']) == p else p
             for p in parameters(route)]
    first = {'operationId': op.get('operationId', 'FILL_IN'), 'summary': route['summary'], 'x-needs': route['needs'].lower()}
    if 'description' in op:
        first['description'] = op['description']
    if route['any_params']:
        first['x-any-parameters'] = True
    all_of = path_parameters(route, own, components) + own + query
    if all_of:
        first['parameters'] = all_of
    by_hand = op.get('responses', {'200': {'description': 'FILL IN'}})
    responses = dict(sorted({**refusals(route), **by_hand}.items()))
    last = {'responses': responses, 'security': security(route)}
    body = {k: v for k, v in op.items() if k not in first and k not in last and k not in ('parameters', 'x-any-parameters')}
    if route['json'] and not op:
        body['requestBody'] = {'required': True, 'content': {'application/json': {'schema': {'description': 'FILL IN'}}}}
    return {**first, **body, **last}


def description(api, routes):
    paths = {path: dict(item) for path, item in api['paths'].items()}
    had = api['components']['parameters']
    components = shared(api, routes)
    known = set()
    for route in routes:
        path, method = route['path'], route['method'].lower()
        if path == HIDDEN:
            continue
        item = paths.setdefault(path, {})
        item[method] = described(route, item.get(method, {}), had, components)
        known.add((path, method))
    for path, item in paths.items():
        for method in item:
            if (path, method) not in known:
                sys.exit('openapi.json describes %s %s, which no route serves' % (method.upper(), path))
    return {**api, 'paths': paths, 'components': {**api['components'], 'parameters': components}}


def main():
    table, check = sys.argv[1], '--check' in sys.argv
    routes = json.loads(subprocess.run([table], stdout=subprocess.PIPE, check=True).stdout)
    with open(DESCRIPTION, encoding='utf-8') as f:
        have = f.read()
    want = json.dumps(description(json.loads(have), routes), indent='\t', ensure_ascii=False) + '\n'
    if check and ('FILL_IN' in have or 'FILL IN' in have):
        print('schema/openapi.json has an entry to fill in: search for FILL')
        return 1
    if have == want:
        return 0
    if check:
        print('schema/openapi.json is out of date: run schema/openapi.py %s' % table)
        return 1
    with open(DESCRIPTION, 'w', encoding='utf-8') as f:
        f.write(want)
    return 0


sys.exit(main())
