# shellcheck shell=bash
# packages.sh - installs the Debian packages needed; sourced by deploy/run and tests/run.
# shellcheck disable=SC2034  # used by the scripts that source this

BUILD_PACKAGES=(ca-certificates curl gcc libc6-dev meson ninja-build pkg-config python3
	libmicrohttpd-dev libpq-dev libsqlite3-dev libprotobuf-c-dev protobuf-c-compiler libzstd-dev libjansson-dev
	libelf-dev libgnutls28-dev libcurl4-gnutls-dev libgit2-dev libiberty-dev libpcre2-dev libseccomp-dev libsodium-dev zlib1g-dev)
NODE_PACKAGES=(nodejs npm)

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "Packages must be installed, and this is neither root nor is there sudo. As root:" >&2
		echo "  $*" >&2
		return 1
	fi
}

is_installed() {
	dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'
}

# install_missing PACKAGE...: runs apt only if a package is missing.
install_missing() {
	local missing=() p
	for p in "$@"; do
		is_installed "$p" || missing+=("$p")
	done
	[ ${#missing[@]} = 0 ] && return 0
	echo "Installing ${#missing[@]} Debian packages (about two minutes): ${missing[*]}" >&2
	# Errors are on stderr; apt's list of each package and its dependencies is hundreds of lines.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >/dev/null
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Any Node that is new enough to build the page.
install_node() {
	if command -v node >/dev/null && command -v npm >/dev/null &&
		[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ]; then
		return 0
	fi
	install_missing "${NODE_PACKAGES[@]}"
}

# npm_install FOLDER: installs from its lock file if that changed. No package needs its install script, and npm 9.2
# of Debian 12 may exit before running one ("Exit handler never called!").
npm_install() {
	[ -d "$1/node_modules" ] && [ "$1/node_modules" -nt "$1/package-lock.json" ] && return 0
	echo "Installing the npm packages of $1/ (up to a minute) ..." >&2
	(cd "$1" && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error >/dev/null)
	touch "$1/node_modules"
}

# build_page: builds web/dist if a source is newer.
build_page() {
	local made=web/dist/index.html
	if [ -f "$made" ] && [ -z "$(find web/src web/build.mjs web/package-lock.json -newer "$made" -print -quit)" ]; then
		return 0
	fi
	npm_install web
	echo "Building the page (up to a minute) ..." >&2
	(cd web && npm run --silent build >/dev/null) # prints the sizes
}
