#!/usr/bin/env bash
# shellcheck disable=SC2317  # functions are called by name
# packages.sh FUNCTION [ARGUMENT...] - installs what tests need; called by tests/runner.py.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

# Debian starts the services that it installs, unless a policy forbids it.
stopped() { # PACKAGE...
	local policy=/usr/sbin/policy-rc.d made= code=0
	if [ ! -e "$policy" ] && [ "$(id -u)" = 0 ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made=yes
	fi
	install_missing "$@" || code=$?
	[ -z "$made" ] || rm -f "$policy"
	return $code
}

# Packages of every tier, the packages of the tests from npm, and the built page.
all() {
	install_missing "${BUILD_PACKAGES[@]}" ccache libcmocka-dev python3-yaml clang libclang-rt-14-dev clang-format clang-tidy pmccabe \
		binutils chromium-headless-shell fonts-dejavu-core openssl sqlite3 strace faketime iproute2 nftables
	stopped postgresql clickhouse-server haproxy
	install_node
	npm_install tests
	npm_install web
	build_page
}

"$@"
