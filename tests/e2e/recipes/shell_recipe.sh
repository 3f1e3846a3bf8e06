#!/bin/sh
# A space for this script, kept while it runs, because each redis-cli is a client that comes and goes.
set -eu
redis() { redis-cli -p "${REDIS_PORT:-6379}" --no-auth-warning --user "space-$space" -a x "$@"; }

space=$(redis-cli -p "${REDIS_PORT:-6379}" SPACE CREATE "shell-$$" KEEP)
trap 'redis-cli -p "${REDIS_PORT:-6379}" SPACE DROP "$space" >/dev/null' EXIT

redis SET lock token NX PX 30000
[ -z "$(redis SET lock other NX PX 30000)" ]
redis CLOCK ADVANCE 31s
[ "$(redis SET lock other NX PX 30000)" = OK ]
echo passed
