// The tree of all reductions: blocks of two values are joined, then blocks of four, and so on. What is
// missing counts as NOTHING.
//
// THREADS is 256, the values of a leaf. `join` and NOTHING stand before this text.

// The values that threads join, one row of a leaf for each reduction.
var<workgroup> parts: array<real, SUMS * THREADS>;
var<workgroup> sixteenths: array<real, SUMS * 16>;

fn two(at: u32) -> real { return join(parts[at], parts[at + 1u]); }
fn four(at: u32) -> real { return join(two(at), two(at + 2u)); }
fn eight(at: u32) -> real { return join(four(at), four(at + 4u)); }

fn two_of(at: u32) -> real { return join(sixteenths[at], sixteenths[at + 1u]); }
fn four_of(at: u32) -> real { return join(two_of(at), two_of(at + 2u)); }
fn eight_of(at: u32) -> real { return join(four_of(at), four_of(at + 4u)); }

// Joins each of the first `count` leaves in `parts`: thread k returns with the k-th's value, others with
// NOTHING. All threads call it; the parts may then be written again.
fn fold(thread: u32, count: u32) -> real {
    workgroupBarrier();
    if thread / 16u < count {
        let first = 16u * thread;
        sixteenths[thread] = join(eight(first), eight(first + 8u));
    }
    workgroupBarrier();
    if thread >= count { return NOTHING; }
    return join(eight_of(16u * thread), eight_of(16u * thread + 8u));
}

// The last block of each size that waits for the block beside it, and the leaves so far: a bit of them says
// whether a block of that size waits.
var<private> waiting: array<real, 32>;
var<private> leaves: u32;

// Adds the next leaf's value.
fn keep(value: real) {
    var all = value;
    var level = 0u;
    for (; (leaves >> level) % 2u == 1u; level++) { all = join(waiting[level], all); }
    waiting[level] = all;
    leaves++;
}

// Returns the value of all leaves, and begins anew.
fn kept() -> real {
    var all = NOTHING;
    for (var level = 0u; (leaves >> level) != 0u; level++) {
        if (leaves >> level) % 2u == 1u { all = join(waiting[level], all); }
    }
    leaves = 0u;
    return all;
}
