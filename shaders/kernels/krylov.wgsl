// What all phases of a solver share. A phase is a dispatch: over rows, where each workgroup leaves its share
// of the sums; or of one workgroup alone, which adds the shares up, computes the method's scalars and makes
// the stopping tests. That dispatches follow each other is all the synchronisation there is. A phase whose
// turn it is not, for the run has ended, returns at once.

// How a run stands.
const RUNNING: u32 = 0u;
const CONVERGED: u32 = 1u;
const ENDED: u32 = 2u; // as the history tells
const NOT_FINITE: u32 = 3u;
const NOT_POSITIVE: u32 = 4u;
const VANISHED: u32 = 5u;
const SUSPECT: u32 = 6u; // a recurred product is to be computed afresh
const RESTART: u32 = 7u; // all of them are
const CONFIRM: u32 = 8u; // a recurred residual is small enough: is the true one?
const CLOSING: u32 = 9u; // GMRES's cycle is at its end
const STAGNANT: u32 = 10u; // no progress, other than the history tells

// What does not change in a solve.
struct Task {
    rows: u32,
    groups: u32, // workgroups of a phase over vectors
    product_groups: u32, // and of one with a product
    size: u32, // rows of a block of block-Jacobi
    most: u32, // iterations
    patience: u32, // iterations without progress; ~0 for any number
    factors: u32, // pairs of Chebyshev iteration's factors
    restart: u32, // iterations of GMRES's cycle
    limit: real, // what the history holds, the square of a residual's norm or the norm, that is small enough
    near: real, // and of a true one, where the recurred one's is
    weight: real, // of Jacobi's method
}

// What differs from phase to phase.
struct Call {
    when: u32, // the phase runs while the run stands like this
    unused: u32,
    keep: real, // the polynomial's factor of the old direction
    add: real, // and of the residual
}

// What phases of one workgroup tell the others, and in the end the host.
struct State {
    status: u32,
    quantity: u32, // that ended the run
    length: u32, // of the history
    since: u32, // the iteration of the least residual; BY_ENERGY: the stretch's first
    flag: u32, // what the method remembers
    outcome: u32, // how the run would stand but for the cycle's end
    value: real, // of the quantity
    true_square: real, // |b - A x|², computed afresh
    least: real, // the least entry of the history; BY_ENERGY: the square that the last start left
    rho: real,
    delta: real,
    alpha: real,
    beta: real,
    omega: real,
    stretch: real, // BY_ENERGY: taken off since iteration `since`
    before: real, // and before it
}

// What threads add up, sum after sum.
var<workgroup> parts: array<real, SUMS * THREADS>;

// The sum over all threads of each of the first `count` parts: sixteen times sixteen, always in the same
// order. Sum k is left in the first place of its parts, by thread k; who else wants it waits.
fn fold(thread: u32, count: u32) {
    let k = thread / 16u;
    var sum: real;
    workgroupBarrier();
    if k < count {
        for (var j = thread % 16u; j < THREADS; j += 16u) { sum += parts[k * THREADS + j]; }
    }
    workgroupBarrier();
    if k < count { parts[k * THREADS + thread % 16u] = sum; }
    workgroupBarrier();
    if thread < count {
        var all = parts[thread * THREADS];
        for (var j = 1u; j < 16u; j++) { all += parts[thread * THREADS + j]; }
        parts[thread * THREADS] = all;
    }
}

// Leaves the workgroup's share of `count` sums to the phase that adds them up.
fn leave(group: u32, thread: u32, count: u32) {
    fold(thread, count);
    if thread < count { partials[thread * MOST_GROUPS + group] = parts[thread * THREADS]; }
}

// Adds up what so many workgroups left; the sums are then `total(0)`, `total(1)` and so on.
fn gather(thread: u32, count: u32, groups: u32) {
    for (var k = 0u; k < count; k++) {
        var sum: real;
        for (var group = thread; group < groups; group += THREADS) { sum += partials[k * MOST_GROUPS + group]; }
        parts[k * THREADS + thread] = sum;
    }
    fold(thread, count);
    workgroupBarrier();
}

fn total(k: u32) -> real {
    return parts[k * THREADS];
}

// The phase of one workgroup after a solution was found: what its residual is in truth.
@compute @workgroup_size(THREADS)
fn check(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 1u, task.product_groups);
    if thread == 0u && course.status == CONVERGED { course.true_square = total(0u); }
}
