# How the project is built. Sourced, not run, from the top of the checkout.
#
#   build_release            the server as people run it, in $LATCHKEY_RELEASE
#   build_in DIR ARG...      any other: configures DIR with meson's ARGs the first time, then builds all of it
#
# Each build has the tests: a machine without Catch2 is told so by Meson, not by a target that is missing.

LATCHKEY_RELEASE=$PWD/build/release
# So that ccache serves what is compiled with a precompiled header.
export CCACHE_SLOPPINESS=pch_defines,time_macros

build_in() {
  local directory=$1 log
  shift
  log=$(mktemp)
  if [ ! -f "$directory/build.ninja" ]; then
    local compiler=${CXX:-g++}
    command -v ccache >/dev/null && compiler="ccache $compiler"
    rm -rf "$directory"
    CXX=$compiler meson setup "$directory" -Dtests=enabled "$@" >"$log" 2>&1 || { cat "$log"; rm -f "$log"; return 1; }
  fi
  ninja -C "$directory" ${LATCHKEY_TARGETS:-} >"$log" 2>&1 || { tail -60 "$log"; rm -f "$log"; return 1; }
  rm -f "$log"
}

build_release() {
  LATCHKEY_TARGETS=src/latchkey-server build_in "$LATCHKEY_RELEASE" --buildtype=release -Db_lto=true
}
