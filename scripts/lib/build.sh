# How the project is built. Sourced, not run, from the top of the checkout.
#
#   build_release            the server as people run it, in $LATCHKEY_RELEASE
#   build_sanitized          everything, with AddressSanitizer and UndefinedBehaviorSanitizer, in $LATCHKEY_SANITIZED; also the fuzz targets,
#                            so it is made by Clang, whose warnings are seen there
#   build_threads_tests      the tests of what has threads, with ThreadSanitizer, in $LATCHKEY_THREAD
#   build_in DIR ARG...      any other: configures DIR with meson's ARGs the first time, then builds all of it
#
# Each build has the tests: a machine without Catch2 is told so by Meson, not by a target that is missing.

LATCHKEY_RELEASE=$PWD/build/release
LATCHKEY_SANITIZED=$PWD/build/sanitize
LATCHKEY_THREAD=$PWD/build/thread
# So that ccache serves what is compiled with a precompiled header. Without CCACHE_DEPEND, which takes no notice of what is in that
# header, and serves objects of before it changed.
export CCACHE_SLOPPINESS=pch_defines,time_macros
unset CCACHE_DEPEND

# ccache, or nothing where its cache has less than a build of the server: as on a new machine it would serve nothing and make each
# compilation cost half as much again, for it preprocesses the file by itself and reads the precompiled header. The cache fills by what
# is built with it otherwise: Meson uses ccache unasked. Found out once, so that all builds of a run agree.
compiler_cache() {
  ccache --print-stats 2>/dev/null | awk '$1 == "files_in_cache" && $2 >= 1000 { print "ccache" }'
}
export LATCHKEY_CCACHE=${LATCHKEY_CCACHE-$(compiler_cache)}

build_in() {
  local directory=$1 log
  shift
  log=$(mktemp)
  if [ ! -f "$directory/build.ninja" ]; then
    rm -rf "$directory"
    CXX="$LATCHKEY_CCACHE ${CXX:-g++}" CC="$LATCHKEY_CCACHE ${CC:-cc}" meson setup "$directory" -Dtests=enabled "$@" >"$log" 2>&1 ||
      { cat "$log"; rm -f "$log"; return 1; }
  fi
  ninja -C "$directory" ${LATCHKEY_TARGETS:-} >"$log" 2>&1 || { tail -60 "$log"; rm -f "$log"; return 1; }
  rm -f "$log"
}

build_release() {
  LATCHKEY_TARGETS=src/latchkey-server build_in "$LATCHKEY_RELEASE" --buildtype=release -Db_lto=true
}

# Clang takes half of GCC's time, and LLD a fourth of what GNU ld takes to link each of the fuzz targets.
build_sanitized() {
  CXX=clang++ CXX_LD=lld build_in "$LATCHKEY_SANITIZED" --buildtype=debug -Doptimization=2 -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
}

build_threads_tests() {
  LATCHKEY_TARGETS=tests/threads-tests CXX=clang++ CXX_LD=lld build_in "$LATCHKEY_THREAD" --buildtype=debug -Doptimization=1 \
    -Db_sanitize=thread -Db_lundef=false
}
