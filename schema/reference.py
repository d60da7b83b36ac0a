#!/usr/bin/env python3
"""Generates the page of the API's reference: reference.py OPENAPI TOKENS STYLE OUT.html OUT.css

The page has no scripts, so the server's content security policy applies to it unchanged.  Its colours are those of
TOKENS (web/src/ui/tokens.css): the dark ones if the reader's system is dark.
"""
import html
import json
import re
import sys

METHODS = ('get', 'head', 'post', 'put', 'patch', 'delete', 'options')
SECTIONS = {  # first segment of a path: title; the title of any other is its own name
    'healthz': 'Health', 'readyz': 'Health', 'metrics': 'Health', 'openapi.json': 'Description', 'reference': 'Description',
    'reference.css': 'Description', 'traces': 'Traces', 'facets': 'Traces', 'filters': 'Traces', 'frames': 'Traces',
    'merge': 'Traces', 'tickets': 'Traces', 'compare': 'Comparison of traces', 'uploads': 'Resumable uploads',
    'builds': 'Builds and mappings', 'fleet': 'Many traces', 'regressions': 'Regressions', 'regression': 'Regressions',
    'tracker': 'Regressions', 'anr': 'ANRs', 'detectors': 'Detectors', 'source': 'Source', 'capture': 'Capture rules',
    'webhooks': 'Webhooks and digests', 'digest': 'Webhooks and digests', 'retention': 'Retention and quarantine',
    'quarantine': 'Retention and quarantine', 'session': 'Signing in', 'oidc': 'Signing in', 'users': 'People',
    'members': 'People', 'projects': 'Projects and keys', 'keys': 'Projects and keys', 'audit': 'Projects and keys',
}
LIMITS = (('minimum', 'at least'), ('maximum', 'at most'), ('minLength', 'length at least'), ('maxLength', 'length at most'),
          ('maxItems', 'items at most'), ('pattern', 'like'), ('default', 'default'))


def text(s):
    return html.escape(str(s), quote=True)


def code(s):
    return '<code>%s</code>' % text(s)


def anchor(s):
    return re.sub(r'[^a-z0-9]+', '-', s.lower()).strip('-')


def as_json(v):
    return json.dumps(v) if not isinstance(v, str) else v


def linked(ref):
    kind, name = ref.split('/')[-2:]
    return '<a href="#schema-%s">%s</a>' % (anchor(name), text(name)) if kind == 'schemas' else text(name)


def kind_of(s):
    """A schema in a few words."""
    if '$ref' in s:
        return linked(s['$ref'])
    for word in ('anyOf', 'oneOf', 'allOf'):
        if word in s:
            return ' or '.join(kind_of(x) for x in s[word])
    if 'const' in s:
        return code(as_json(s['const']))
    if 'enum' in s:
        return ' | '.join(code(as_json(v)) for v in s['enum'])
    kind = s.get('type', 'anything')
    kind = ' or '.join(kind) if isinstance(kind, list) else kind
    if s.get('items'):
        return '%s of %s' % (text(kind), kind_of(s['items']))
    return text(kind)


def limits_of(s):
    return ', '.join('%s %s' % (words, code(as_json(s[key]))) for key, words in LIMITS if key in s)


def sentences(*pieces):
    return ' '.join(p.rstrip('.') + '.' for p in pieces if p)


def row(name, required, schema, description):
    meaning = sentences(text(description or ''), limits_of(schema))
    return '<tr><td>%s%s</td><td>%s</td><td>%s%s</td></tr>' % (
        code(name), '' if required else ' <span class="quiet">optional</span>', kind_of(schema), meaning, fields_of(schema))


def table(rows):
    return '<table><thead><tr><th>Name</th><th>Type</th><th>Meaning</th></tr></thead><tbody>%s</tbody></table>' % ''.join(rows)


def fields_of(s):
    """The fields of an object without a name, at any depth."""
    if '$ref' in s:
        return ''
    needed = s.get('required', [])
    fields = s.get('properties', {})
    out = table(row(name, name in needed, f, f.get('description')) for name, f in fields.items()) if fields else ''
    inner = [x for word in ('anyOf', 'oneOf', 'allOf') for x in s.get(word, [])]
    inner += [s[word] for word in ('items', 'additionalProperties') if isinstance(s.get(word), dict)]
    return out + ''.join(map(fields_of, inner))


def found(doc, o):
    while '$ref' in o:
        at = doc
        for piece in o['$ref'][2:].split('/'):
            at = at[piece.replace('~1', '/').replace('~0', '~')]
        o = at
    return o


def parameters(doc, op):
    all_of = [found(doc, p) for p in op.get('parameters', [])]
    if not all_of:
        return ''
    rows = (row('%s' % p['name'], p.get('required'), p.get('schema', {}),
                ('In the %s. ' % p['in'] if p['in'] != 'query' else '') + p.get('description', '')) for p in all_of)
    return '<h4>Parameters</h4>' + table(rows)


def contents(content):
    return ''.join('<p>%s%s</p>%s' % (code(kind), ': ' + kind_of(c['schema']) if c.get('schema') else '', fields_of(c.get('schema') or {}))
                   for kind, c in content.items())


def body(doc, op):
    b = found(doc, op['requestBody']) if 'requestBody' in op else None
    if not b:
        return ''
    return '<h4>Body</h4><p>%s</p>%s' % (text(b.get('description', '')), contents(b.get('content', {})))


def responses(doc, op):
    out = ['<h4>Responses</h4><dl>']
    for status, response in op['responses'].items():
        r = found(doc, response)
        shown = contents(r.get('content', {})) if status < '400' else ''
        out.append('<dt>%s</dt><dd>%s%s</dd>' % (code(status), text(r.get('description', '')), shown))
    return ''.join(out) + '</dl>'


def operation(doc, path, method, op):
    name = op['operationId']
    access = '' if op.get('security') else ' <span class="quiet">no key needed</span>'
    return ('<section id="%s"><h3><a href="#%s"><span class="method">%s</span> %s</a></h3><p><strong>%s.</strong>%s %s</p>%s%s%s</section>' % (
        text(name), text(name), method.upper(), code(path), text(op['summary'].rstrip('.')), access, text(op.get('description', '')),
        parameters(doc, op), body(doc, op), responses(doc, op)))


def section_of(path):
    piece = path.split('/')[3] if path.startswith('/api/v1/') else path.split('/')[-1]
    return SECTIONS.get(piece, piece.capitalize())


def operations(doc):
    """By section, in the order of the description."""
    by = {}
    for path, item in doc['paths'].items():
        for method in METHODS:
            if method in item:
                by.setdefault(section_of(path), []).append((path, method, item[method]))
    return by


def navigation(by):
    out = []
    for title, ops in by.items():
        links = ''.join('<li><a href="#%s">%s</a></li>' % (text(op['operationId']), text(op['summary'].rstrip('.'))) for _, _, op in ops)
        out.append('<details><summary>%s</summary><ul>%s</ul></details>' % (text(title), links))
    return '<nav aria-label="Contents">%s<a href="#schemas">Schemas</a></nav>' % ''.join(out)


def schema(name, s):
    return '<section id="schema-%s"><h3><a href="#schema-%s">%s</a></h3><p>%s</p>%s</section>' % (
        anchor(name), anchor(name), text(name), sentences(text(s.get('description', '')), kind_of(s), limits_of(s)),
        fields_of(s))


def page(doc):
    by = operations(doc)
    info = doc['info']
    out = ['<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
           '<title>API reference - tracewell</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/api/reference.css"></head><body>',
           navigation(by), '<main><h1>API reference</h1><p>%s</p><p>%s</p>' % (text(info['summary']), text(info['description'])),
           '<p>Send the key as <code>Authorization: Bearer KEY</code>. This page is generated from the <a href="/api/v1/openapi.json">OpenAPI %s '
           'description</a>, from which clients can be generated too.</p>' % text(doc['openapi'])]
    for title, ops in by.items():
        out.append('<h2 id="%s">%s</h2>' % (anchor('area-' + title), text(title)))
        out += [operation(doc, *o) for o in ops]
    out.append('<h2 id="schemas">Schemas</h2>')
    out += [schema(name, s) for name, s in sorted(doc['components']['schemas'].items())]
    return '\n'.join(out) + '\n</main></body></html>\n'


def colours(tokens):
    """The tokens; the reader's system selects the dark ones, because no script does."""
    return re.sub(r':root\[data-theme="dark"\] \{([^}]*)\}', r'@media (prefers-color-scheme: dark) {\n:root {\1}\n}', tokens)


def main():
    openapi, tokens, style, to_html, to_css = sys.argv[1:6]
    with open(openapi, encoding='utf-8') as f:
        doc = json.load(f)
    with open(tokens, encoding='utf-8') as f, open(style, encoding='utf-8') as g:
        css = colours(f.read()) + g.read()
    with open(to_html, 'w', encoding='utf-8') as f:
        f.write(page(doc))
    with open(to_css, 'w', encoding='utf-8') as f:
        f.write(css)


main()
