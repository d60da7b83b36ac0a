#!/usr/bin/env python3
"""Derives sources from the catalogue's migrations (SQL of SQLite, in order):

  catalogue.py postgres OUT.c SYMBOL FILE...   the same migrations in PostgreSQL's dialect
  catalogue.py tables OUT.c FILE...            tw_tables: the tables of both engines with their keys and columns

In a migration, a line that ends with `-- sqlite` is for SQLite only, and a line that begins with
`--postgres ` for PostgreSQL only.  There {stages}, {ranks} and {columns} are derived from the
indexes trace_stage_*, which are SQLite's lists of waiting traces.  Tables whose first line ends with `-- not copied` are last in
tw_tables; tables of PostgreSQL only are not in it.
"""
import re
import sqlite3
import sys

import embed

TYPES = {'INTEGER': 'BIGINT', 'TEXT': 'TEXT COLLATE "C"', 'BLOB': 'BYTEA'}


def of_stages(sql):
    """The stages' names, a trace's rank in each (NULL: it does not wait), and the columns that these depend on."""
    names, ranks, used = [], [], set()
    for name, rank, waits in re.findall(r'^CREATE INDEX trace_stage_(\w+) ON trace\(project_id, (?:(\w+), )?trace_id\) WHERE (.*); -- sqlite$', sql, re.M):
        columns = set(re.findall(r'\b[a-z]\w*', waits)) | ({rank} - {''})
        rank = f'CASE WHEN {waits} THEN {rank or 0} END'
        names.append(f"'{name}'")
        ranks.append(re.sub(r'\b([a-z]\w*)', r't.\1', rank))
        used |= columns
    return {'{stages}': ', '.join(names), '{ranks}': ', '.join(ranks), '{columns}': ', '.join(sorted(used))}


def postgres(sql):
    derived = of_stages(sql)
    lines = []
    for line in sql.splitlines():
        if line.startswith('--postgres '):
            line = line[len('--postgres '):]
            lines.append(re.sub(r'\{\w+\}', lambda m: derived[m[0]], line))
            continue
        code = line.partition('--')[0].rstrip()
        if not code or line.endswith('-- sqlite'):
            continue
        code = re.sub(r'\b(INTEGER|TEXT|BLOB)\b', lambda m: TYPES[m[1]], code)
        code = re.sub(r'\b(TABLE|REFERENCES) user\b', r'\1 "user"', code)
        lines.append(re.sub(r'\) (STRICT|STRICT, WITHOUT ROWID|WITHOUT ROWID);$', ');', code))
    return '\n'.join(lines) + '\n'


def columns(db, table):
    """In the order of the key, then as declared."""
    rows = db.execute(f'SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (table,)).fetchall()
    return sorted((r for r in rows if r[3]), key=lambda r: r[3]) + [r for r in rows if not r[3]]


def tables(paths):
    db = sqlite3.connect(':memory:')
    for path in paths:
        with open(path, encoding='utf-8') as f:
            db.executescript(f.read())
    parts = ['#include "server/catalogue/catalogue_tables.h"\n']
    copied, others = [], []
    for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"
                                " AND name NOT LIKE 'sqlite%' ORDER BY rowid"):
        rows = others if sql.splitlines()[0].endswith('-- not copied') else copied
        cols = columns(db, name)
        large = any(kind == 'BLOB' and not col.endswith('hash') for col, kind, _, _ in cols)
        parts.append(f'static const struct tw_column columns_of_{name}[] = {{\n' + ''.join(
            '{"%s", TW_COLUMN_%s, %d},\n' % (col, {'INTEGER': 'INT', 'BLOB': 'BYTES'}.get(kind, kind), not (not_null or pk))
            for col, kind, not_null, pk in cols) + '};\n')
        rows.append('{"%s", %d, %s, %d, columns_of_%s},\n' % (
            name, sum(c[3] > 0 for c in cols), 'TW_PAGE_LARGE' if large else 'TW_PAGE', len(cols), name))
    parts.append(f'const struct tw_table tw_tables[] = {{\n{"".join(copied + others)}}};\n'
                 f'const unsigned tw_tables_n = {len(copied)};\n'
                 f'const unsigned tw_tables_all_n = {len(copied + others)};\n')
    return ''.join(parts)


def main():
    what, out, *rest = sys.argv[1:]
    if what == 'postgres':
        symbol, *paths = rest
        text = embed.source(symbol, ((n, postgres(data.decode()).encode()) for n, data in embed.files_of(paths)))
    else:
        text = tables(rest)
    embed.write(out, text)


if __name__ == '__main__':
    main()
