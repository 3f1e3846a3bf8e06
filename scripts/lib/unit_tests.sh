# Runs unit tests. Sourced, not run.
#
#   unit_tests [--spread] PROGRAM [FILTER]...    prints their output, and `N passed, N failed` last; false unless all passed

# A program of Catch2's, as many processes of some test cases each, two at a time: a process that forks pays for all the memory it has
# had, and twice as much where it may change the processor, which it may with --spread. Catch2's summary has two shapes, which are
# added up to one line.
unit_tests() {
  local between=' ' program work status=0
  local -a processors
  [ "$1" != --spread ] || { between=,; shift; }
  program=$1
  shift
  work=$(mktemp -d)
  # Its status is the number of names.
  "$program" --list-test-names-only "$@" >"$work/names"
  [ -s "$work/names" ] || { echo "$program has no tests"; rm -rf "$work"; return 1; }
  # Commas and brackets mean something in a filter.
  sed 's/[\\,[]/\\&/g' "$work/names" | split --elide-empty-files --number=r/64 - "$work/some-"
  read -ra processors < <(/usr/bin/python3 -c 'import os, sys; print(*os.sched_getaffinity(0), sep=sys.argv[1])' "$between")
  printf '%s\n' "$work"/some-* | xargs --max-procs=2 --process-slot-var=SLOT -I{} bash -c '
    program=$1 some=$2
    shift 2
    taskset --cpu-list "${@:SLOT % $# + 1:1}" "$program" --input-file "$some" >"${some/some-/output-}" 2>&1' \
    bash "$program" {} "${processors[@]}" || status=1
  cat "$work"/output-*
  awk -v cases="$(wc -l <"$work/names")" '
    /^All tests passed/ { match($0, /in [0-9]+ test case/); passed += substr($0, RSTART + 3, RLENGTH - 13) }
    /^test cases:/ { for (i = 1; i <= NF; ++i) { if ($i == "passed") passed += $(i - 1); if ($i == "failed") failed += $(i - 1) } }
    END {
      if (passed + failed != cases) { print "FAILED: " cases " test cases were to be run"; ++failed }
      printf "%d passed, %d failed\n", passed, failed
      exit failed > 0
    }' "$work"/output-* || status=1
  rm -rf "$work"
  return $status
}
