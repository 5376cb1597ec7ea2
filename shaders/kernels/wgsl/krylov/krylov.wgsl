// The parts that all phases of a solver share. A phase is a dispatch: over rows, where each workgroup leaves
// its share of the sums; or of one workgroup alone, which adds the shares up, computes the method's scalars
// and makes the stopping tests. The order of dispatches is all the synchronisation there is. A phase whose
// turn it is not, because the run has ended, returns at once.
//
// A method says what a phase does at a row, or with its sums, in a function of the phase's name. The entry
// points around these functions are made of `entries/`.
//
// `State`, `Task` and `Call`, and the buffers, stand before this text. They are made of the tables in
// shaders/src/state.rs and shaders/src/wgsl/krylov, from which the host's are made, too.

// A workgroup that sums has consecutive rows, `task.share` or `task.product_share` of them, a power of two: a
// block of the tree (tree.wgsl).

// The terms of the thread's row in each sum.
var<private> terms: array<real, SUMS>;

fn clear() {
    for (var k = 0u; k < SUMS; k++) { terms[k] = NOTHING; }
}

// Enters the terms of `width` rows, which stand `at` rows behind the workgroup's first, one per thread. Joins
// each leaf once it is whole, and the last one as it is.
fn enter(at: u32, width: u32, is_last: bool, thread: u32, count: u32) {
    let before = at % THREADS;
    let filled = before + width;
    if thread < width {
        for (var k = 0u; k < count; k++) { parts[k * THREADS + before + thread] = terms[k]; }
    }
    if filled < THREADS && !is_last { return; }
    if thread >= filled {
        for (var k = 0u; k < count; k++) { parts[k * THREADS + thread] = NOTHING; }
    }
    let leaf = fold(thread, count);
    if thread < count { keep(leaf); }
}

// Leaves the workgroup's share of `count` sums to the phase that adds them up.
fn leave(group: u32, thread: u32, count: u32) {
    if thread < count { partials[thread * MOST_GROUPS + group] = kept(); }
}

var<workgroup> totals: array<real, SUMS>;

// Returns the sum of the thread's four of the shares that `groups` workgroups left of sum k.
fn four_shares(thread: u32, k: u32, groups: u32) -> real {
    var four = array<real, 4>(NOTHING, NOTHING, NOTHING, NOTHING);
    for (var n = 0u; n < MOST_GROUPS / THREADS; n++) {
        let group = thread * (MOST_GROUPS / THREADS) + n;
        if group < groups { four[n] = partials[k * MOST_GROUPS + group]; }
    }
    return join(join(four[0], four[1]), join(four[2], four[3]));
}

// Adds up the shares that `groups` workgroups left; the sums are then `total(0)`, `total(1)` and so on.
fn gather(thread: u32, count: u32, groups: u32) {
    for (var k = 0u; k < count; k++) { parts[k * THREADS + thread] = four_shares(thread, k, groups); }
    let sum = fold(thread, count);
    if thread < count { totals[thread] = sum; }
    workgroupBarrier();
}

fn total(k: u32) -> real {
    return totals[k];
}
