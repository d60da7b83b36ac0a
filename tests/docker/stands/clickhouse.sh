#!/bin/bash
# What the image of ClickHouse does at a start, with Debian's, which calls the root of settings otherwise.
set -e
mkdir -p /var/lib/clickhouse/users.d
sed 's/clickhouse>/yandex>/g' /etc/clickhouse-server/users.d/tracewell.xml >/var/lib/clickhouse/users.d/tracewell.xml
export CLICKHOUSE_LISTEN=0.0.0.0
exec bash /tests/unit/on_clickhouse --serve /var/lib/clickhouse 8123
