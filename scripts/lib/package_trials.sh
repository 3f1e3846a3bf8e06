# What the `try` programs under scripts/packages/ have in common. Sourced, not run, from the top of the checkout.
#
#   trial_begin KIND           $PACKAGES has what make has made, which is done here where it has not been, or where LATCHKEY_PACKAGE_BINARY names
#                              the program to try; $TRIAL is an empty folder outside of the checkout
#   check WORDS COMMAND...     runs the command; one passed, or one failed with what it printed
#   refuse WORDS TEXT COMMAND...  the command must fail, and what it prints must match TEXT (an extended regular expression)
#   trial_end                  the line `N passed, N failed`, and the exit status
#   port_from N                a free port from N on
#   says_version COMMAND...    whether it is the server, by the version it tells
#
# Servers that a trial starts itself are noted in trial_pids, and end with it.

passed=0
failed=0
trial_pids=()

trial_begin() {
  TRIAL_KIND=$1
  PACKAGES=${LATCHKEY_PACKAGES:-$PWD/build/packages}/$1
  TRIAL=$(mktemp -d "${TMPDIR:-/tmp}/latchkey-try-$1-XXXXXX")
  trap trial_clean EXIT
  export TMPDIR=$TRIAL/tmp # what tests leave behind goes with the trial
  mkdir "$TMPDIR"
  if [ ! -d "$PACKAGES" ] || [ -n "${LATCHKEY_PACKAGE_BINARY:-}" ]; then
    PACKAGES=$TRIAL/packages
    if ! LATCHKEY_PACKAGE_OUTPUT=$PACKAGES scripts/packages/"$1"/make >"$TRIAL/make.log" 2>&1; then
      cat "$TRIAL/make.log"
      echo "0 passed, 1 failed"
      exit 1
    fi
  fi
}

trial_clean() {
  [ ${#trial_pids[@]} -eq 0 ] || kill "${trial_pids[@]}" 2>/dev/null
  [ -n "${LATCHKEY_TRY_KEEP:-}" ] && echo "kept: $TRIAL" || rm -rf "$TRIAL"
}

check() {
  local words=$1 output
  shift
  if output=$("$@" 2>&1 </dev/null); then
    passed=$((passed + 1))
    echo "passed: $words"
  else
    failed=$((failed + 1))
    echo "FAILED: $words"
    tail -n 40 <<<"$output" | sed 's/^/   | /'
  fi
}

refuse() {
  local words=$1 text=$2 output
  shift 2
  if output=$("$@" 2>&1 </dev/null); then
    output="it succeeded, and should not have: $output"
  elif grep -qE -- "$text" <<<"$output"; then
    passed=$((passed + 1))
    echo "passed: $words"
    return
  fi
  failed=$((failed + 1))
  echo "FAILED: $words (expected: $text)"
  tail -n 40 <<<"$output" | sed 's/^/   | /'
}

# Whether this command, the server in some guise, says its version.
says_version() { "$@" --version | grep -qE 'v=[0-9]+\.[0-9]+\.[0-9]+'; }

port_from() {
  local port=$1
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}

# Twice the same bytes: the packages that are there, against those of a second build.
check_reproducible() {
  check "a second build gives the same bytes" reproducible "$@"
}

reproducible() {
  local before after
  before=$(cd "$PACKAGES" && sha256sum "$@") || return 1
  LATCHKEY_PACKAGE_OUTPUT=$TRIAL/again scripts/packages/"$TRIAL_KIND"/make || return 1
  after=$(cd "$TRIAL/again" && sha256sum "$@") || return 1
  [ "$before" = "$after" ] || { printf '%s\n' "before:" "$before" "after:" "$after"; return 1; }
}

trial_end() {
  echo "$passed passed, $failed failed"
  [ $failed -eq 0 ]
}
