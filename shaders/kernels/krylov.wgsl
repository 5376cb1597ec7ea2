// The parts that all phases of a solver share. A phase is a dispatch: over rows, where each workgroup leaves
// its share of the sums; or of one workgroup alone, which adds the shares up, computes the method's scalars
// and makes the stopping tests. The order of dispatches is all the synchronisation there is. A phase whose
// turn it is not, because the run has ended, returns at once.
//
// `State`, `Task` and `Call`, and the buffers, stand before this text. They are made of the tables in
// shaders/src/state.rs and shaders/src/wgsl/krylov, from which the host's are made, too.

// The numbers that threads add up, sum after sum.
var<workgroup> parts: array<real, SUMS * THREADS>;

// Sums each of the first `count` parts over all threads: sixteen times sixteen, always in the same order.
// Thread k leaves sum k in the first place of its parts; other threads that want it must wait.
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

// Adds up the shares that `groups` workgroups left; the sums are then `total(0)`, `total(1)` and so on.
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

// The phase of one workgroup after a solution was found: computes the square of its true residual.
@compute @workgroup_size(THREADS)
fn check(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 1u, task.product_groups);
    if thread == 0u && course.status == CONVERGED { course.true_square = total(0u); }
}
