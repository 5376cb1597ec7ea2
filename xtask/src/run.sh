#!/usr/bin/env bash
# Runs the tests of this folder on the machine at hand, then prints one summary.
#   run.sh [FILTER]...            all tests, or those whose name contains a filter
#   run.sh --bench [ARGUMENT]...  the benchmarks instead
#   run.sh --stress               every protocol for thousands of steps on random domains, then slabs of such domains on
#                                 all devices for ABIDE_SOAK seconds (600 unless set)
#   run.sh --sanitize [TOOL]...   small runs of every kernel under compute-sanitizer's tools: memcheck, racecheck and
#                                 synccheck unless named
# The devices named in ABIDE_REQUIRE (cuda,wgpu unless set) must be there: their tests may not be skipped.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export ABIDE_REQUIRE=${ABIDE_REQUIRE-cuda,wgpu}
if [ "$here/programs.tgz" -nt "$here/unpacked" ]; then
    tar -xzf "$here/programs.tgz" -C "$here" && touch "$here/unpacked" || exit 1
fi

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
trap 'rm -f "$log" "$log".*' EXIT

# Runs a program in so many processes, each a part of its work. The first is shown, and kept in $log; any other has the
# same tests with other work, and is printed in full where it fails. Sets $status to the status of the first, and $lost
# to the number of others that failed.
in_parts() {
    local all=$1 part waited=()
    shift
    for ((part = 1; part < all; part++)); do
        ABIDE_PART=$part/$all "$@" >"$log.$part" 2>&1 &
        waited+=($!)
    done
    ABIDE_PART=0/$all "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]} lost=0
    for ((part = 1; part < all; part++)); do
        if ! wait "${waited[part - 1]}"; then
            cat "$log.$part"
            lost=$((lost + 1))
        fi
        rm -f "$log.$part"
    done
}

if [ "${1-}" = --stress ]; then
    shift
    program=$here/tests/backend-cuda compile=stress::the_kernels_of_every_protocol_are_compiled
    # A process compiles one kernel at a time; but only kernels of one process meet on the device.
    begun=$SECONDS
    in_parts "$(nproc)" "$program" --ignored --exact "$compile" --nocapture
    failed=$((lost + (status != 0)))
    grep -aq '^test result: ok. 1 passed' "$log" || failed=$((failed + (status == 0)))
    printf '== compiled in %d s, %d of %d processes failed\n' $((SECONDS - begun)) "$failed" "$(nproc)"
    "$program" --ignored --nocapture --skip "$compile" stress:: "$@" || failed=$((failed + 1))
    "$program" --ignored --nocapture soak:: "$@" || failed=$((failed + 1))
    [ "$failed" -eq 0 ]
    exit
fi

if [ "${1-}" = --sanitize ]; then
    shift
    tools=${*:-memcheck racecheck synccheck}
    sanitizer=${COMPUTE_SANITIZER-$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)}
    if [ -z "$sanitizer" ]; then
        echo "compute-sanitizer is not here: install CUDA's, or name it in COMPUTE_SANITIZER" >&2
        exit 1
    fi
    program=$here/tests/backend-cuda
    # Compiled once, without a tool, which would slow the compiler too.
    echo "== without a tool"
    "$program" --ignored sanitize:: || exit 1
    passed=0 failed=0 lines=
    for tool in $tools; do
        for kernels in stepwise persistent whole_domains_on_the_chip streaming groups; do
            echo "== $tool, $kernels kernels"
            begun=$SECONDS
            timeout 900 "$sanitizer" --tool "$tool" --error-exitcode 9 \
                "$program" --ignored --exact "sanitize::$kernels" --nocapture 2>&1 | tee "$log"
            status=${PIPESTATUS[0]} verdict=ok
            # A test that did not run found nothing.
            if [ "$status" -eq 0 ] && grep -aq '^test result: ok. 1 passed' "$log"; then
                passed=$((passed + 1))
            else
                failed=$((failed + 1)) verdict="FAILED ($status)"
            fi
            lines+=$(printf '%-10s %-25s %5d s  %s' "$tool" "$kernels" $((SECONDS - begun)) "$verdict")$'\n'
        done
    done
    printf '\n%s%d passed, %d failed\n' "$lines" "$passed" "$failed"
    [ "$failed" -eq 0 ]
    exit
fi

# Into how many processes the work of a module is split: the compiler takes one kernel at a time in a process, and some do
# little but compile.
parts() {
    case $1 in
        "backend-cuda bits" | "backend-cuda krylov") nproc ;;
        *) echo 1 ;;
    esac
}

# The modules of a program's tests that use a device: each runs in processes of its own.
modules() {
    "$1" --list | sed -n 's/^\([a-z_]*\)::.*: test$/\1/p' | sort -u | grep -v -e 'emulated$' -e 'text$'
}

passed=0 failed=0 lines=

# Runs tests of a program, which has a name in the summary, and adds them to it.
run() {
    local name=$1 program=$2 begun=$SECONDS
    shift 2
    echo "== $name"
    in_parts "$(parts "$name")" "$program" "$@"
    local result good bad skipped
    result=$(grep -a '^test result: ' "$log" | tail -n 1)
    good=$(sed -n 's/.* \([0-9]*\) passed.*/\1/p' <<<"$result")
    bad=$(sed -n 's/.* \([0-9]*\) failed.*/\1/p' <<<"$result")
    good=${good:-0} bad=$((${bad:-0} + lost))
    # A program that died without a result is one failure.
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + good)) failed=$((failed + bad))
    skipped=$(grep -ao 'skipped: .*' "$log" | sort -u)
    lines+=$(printf '%-24s %5d s  %d passed, %d failed' "$name" $((SECONDS - begun)) "$good" "$bad")$'\n'
    [ -z "$skipped" ] || lines+=$skipped$'\n'
}

for program in "$here"/tests/*; do
    name=${program##*/}
    if [ "$name" != backend-cuda ] || [ $# -gt 0 ]; then
        run "$name" "$program" "$@"
        continue
    fi
    for module in $(modules "$program"); do
        # Kernels of several devices that wait for each other need these to one process, but not to be compiled.
        if [ "$module" = krylov_slabs ]; then
            in_parts "$(nproc)" "$program" --ignored --exact krylov_slabs::the_kernels_of_all_slabs_are_compiled
        fi
        run "$name $module" "$program" "$module::"
    done
done
printf '\n%s%d passed, %d failed\n' "$lines" "$passed" "$failed"
[ "$failed" -eq 0 ]
