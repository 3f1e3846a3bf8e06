# Counts checks, for the `try` of each kind of package. Sourced, not run.
#
#   check "what must hold" COMMAND ARG...     runs it in this shell; says FAILED and shows the output when its status is not 0
#   refuse "what must hold" TEXT COMMAND...   the command must fail, and what it prints match TEXT (an extended regular expression)
#   skip "what is not tried" "why"            counts nothing, says both
#   count_checks PASSED FAILED                adds the counts of a program that checks by itself
#   free_port                                 prints a TCP port nobody listens on (21000 to 22999; LATCHKEY_PORT_BASE moves it)
#   wait_for SECONDS COMMAND ARG...           runs it until it succeeds or the time is over
#   finish                                    prints `N passed, N failed` and exits 0 if none failed and some passed

checks_passed=0
checks_failed=0
checks_output=$(mktemp)

# Counts a check that held, or one that did not, with the end of what its command printed.
check_held() {
  checks_passed=$((checks_passed + 1))
  echo "ok      $1"
}

check_failed() {
  checks_failed=$((checks_failed + 1))
  echo "FAILED  $1"
  tail -n 40 "$checks_output" | sed 's/^/        | /'
}

check() {
  local name=$1
  shift
  if "$@" >"$checks_output" 2>&1 </dev/null; then check_held "$name"; else check_failed "$name"; fi
}

refuse() {
  local name=$1 text=$2
  shift 2
  if "$@" >"$checks_output" 2>&1 </dev/null; then
    check_failed "$name (it succeeded, and should not have)"
  elif grep -qE -- "$text" "$checks_output"; then
    check_held "$name"
  else
    check_failed "$name (expected: $text)"
  fi
}

count_checks() {
  checks_passed=$((checks_passed + $1))
  checks_failed=$((checks_failed + $2))
}

skip() { echo "skipped $1: $2"; }

free_port() {
  local port base=${LATCHKEY_PORT_BASE:-21000}
  while port=$((base + RANDOM % 2000)); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}

wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || { echo "not within the time: $*"; "$@"; return 1; }
    sleep 0.1
  done
}

finish() {
  rm -f "$checks_output"
  echo "$checks_passed passed, $checks_failed failed"
  [ $checks_failed -eq 0 ] && [ $checks_passed -gt 0 ]
  exit
}
