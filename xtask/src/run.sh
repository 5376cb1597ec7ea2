#!/usr/bin/env bash
# Runs the tests of this folder on the machine at hand, then prints one summary.
#   run.sh [FILTER]...            all tests, or those whose name contains a filter
#   run.sh --bench [ARGUMENT]...  the benchmarks instead
# The devices named in ABIDE_REQUIRE (cuda,wgpu unless set) must be there: their tests may not be skipped.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export ABIDE_REQUIRE=${ABIDE_REQUIRE-cuda,wgpu}
chmod +x "$here"/abide "$here"/tests/* "$here"/benches/* 2>/dev/null

if [ "${1-}" = --bench ]; then
    shift
    status=0
    for program in "$here"/benches/*; do
        [ -f "$program" ] || continue
        echo "== ${program##*/}"
        "$program" --bench "$@" || status=1
    done
    exit $status
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 lines=
for program in "$here"/tests/*; do
    name=${program##*/}
    echo "== $name"
    begun=$SECONDS
    "$program" "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    result=$(grep -a '^test result: ' "$log" | tail -n 1)
    good=$(sed -n 's/.* \([0-9]*\) passed.*/\1/p' <<<"$result")
    bad=$(sed -n 's/.* \([0-9]*\) failed.*/\1/p' <<<"$result")
    good=${good:-0} bad=${bad:-0}
    # A program that died without a result is one failure.
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + good)) failed=$((failed + bad))
    skipped=$(grep -ao 'skipped: .*' "$log" | sort -u)
    lines+=$(printf '%-24s %5d s  %d passed, %d failed' "$name" $((SECONDS - begun)) "$good" "$bad")$'\n'
    [ -z "$skipped" ] || lines+=$skipped$'\n'
done
printf '\n%s%d passed, %d failed\n' "$lines" "$passed" "$failed"
[ "$failed" -eq 0 ]
