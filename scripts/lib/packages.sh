# Debian packages the project needs, and how they get onto the machine. Sourced, not run.
#
#   ensure_packages PKG...   installs what is missing; costs one dpkg-query when nothing is.
#   ensure_node_modules      installs what tests/e2e/node names into build/node; costs a comparison when it is there.
#
# Written for Debian 12 and later. Installing needs root or sudo; asking does not.

# What turns the sources into latchkey-server and the unit tests.
build_packages=(
  g++ meson ninja-build ccache pkg-config
  libuv1-dev libboost-context-dev libluajit-5.1-dev libjemalloc-dev libxxhash-dev liblzf-dev libre2-dev
  libssl-dev
  catch2
)

# What the end-to-end tests need: real clients, and the interpreter of the conformance suites.
test_packages=(
  python3 python3-pytest python3-pytest-xdist python3-redis python3-rq celery php-cli php-redis phpunit
  ruby ruby-minitest ruby-rspec ruby-redis libhiredis-dev redis-tools tcl tcl-tls openssl procps util-linux locales
)
# Node that comes with npm, as its makers pack it, is left as it is.
command -v npm >/dev/null || test_packages+=(nodejs npm)

# What runs a client library's own suite (scripts/client-suite).
suite_packages=(git python3-pytest python3-pytest-asyncio python3-redis redis-tools)

# What fetches and unpacks the servers we compare with (scripts/reference).
reference_packages=(dpkg-dev xz-utils ca-certificates patchelf)

# What the builds with sanitizers and the libFuzzer targets are made with.
fuzz_packages=(clang libclang-rt-dev lld)

# Prints those of the named packages that are not installed, one a line.
missing_packages() {
  local installed
  installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sed -n 's/^installed //p' <<<"$installed" | sort -u)
}

# Runs a command as root: directly, or through sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "this needs root or sudo: $*" >&2
    return 1
  fi
}

# Installs what is missing of the named packages. The package lists are refreshed only when the
# machine's present ones do not lead to an installation. Progress goes to standard error.
ensure_packages() {
  local -a missing install
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0

  echo "Installing ${missing[*]}" >&2
  install=(env DEBIAN_FRONTEND=noninteractive
    apt-get install --yes --quiet --no-install-recommends "${missing[@]}")
  as_root "${install[@]}" >&2 2>/dev/null && return 0
  as_root apt-get update --quiet >&2 && as_root "${install[@]}" >&2
}

# Node's libraries, from wherever npm is told to take them. Needs npm.
ensure_node_modules() {
  local wanted=tests/e2e/node/package.json target=build/node
  ! cmp --silent "$wanted" "$target/complete" || return 0
  mkdir -p "$target"
  cp "$wanted" "$target" &&
    timeout 300 npm install --prefix "$target" --no-package-lock --ignore-scripts --no-audit --no-fund --no-progress &&
    cp "$wanted" "$target/complete"
}
