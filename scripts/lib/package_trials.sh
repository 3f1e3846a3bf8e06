# What the `try` programs of the packages of languages have in common, beside checks.sh. Sourced, not run, from the top of the checkout.
#
#   trial_begin KIND           $PACKAGES has what make has made, which is done here where it has not been, or where LATCHKEY_PACKAGE_BINARY names
#                              the program to try; $TRIAL is an empty folder outside of the checkout
#   says_version COMMAND...    whether it is the server, by the version it tells
#   check_reproducible FILE... a second build must give the same bytes
#
# Servers that a trial starts itself are noted in trial_pids, and end with it.

source scripts/lib/checks.sh
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
  rm -f "$checks_output"
  [ ${#trial_pids[@]} -eq 0 ] || kill "${trial_pids[@]}" 2>/dev/null
  [ -n "${LATCHKEY_TRY_KEEP:-}" ] && echo "kept: $TRIAL" || rm -rf "$TRIAL"
}

# Whether this command, the server in some guise, says its version.
says_version() { "$@" --version | grep -qE 'v=[0-9]+\.[0-9]+\.[0-9]+'; }

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
