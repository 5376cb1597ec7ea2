// GMRES's least-squares problem: the Hessenberg matrix, made triangular by Givens rotations as it grows. For
// cycles of m iterations, one buffer holds m columns of m entries, the rotations, the rotated right-hand
// side, the minimiser, and the projections of the vector that is being made orthogonal. The history holds
// norms, not squares.

fn column(j: u32) -> u32 { return j * task.restart; }
fn cosine(i: u32) -> u32 { return task.restart * task.restart + i; }
fn sine(i: u32) -> u32 { return cosine(task.restart) + i; }
fn rotated(i: u32) -> u32 { return sine(task.restart) + i; }
fn minimiser(i: u32) -> u32 { return rotated(task.restart) + 1u + i; }
fn projection(i: u32) -> u32 { return minimiser(task.restart) + i; }

// Begins a cycle from a residual of this norm, which is in w.
fn starts(norm: real) {
    stop_test.flag = 0u;
    stop_test.rho = norm;
    stop_test.beta = norm;
    triangle[rotated(0u)] = norm;
}

fn begin() {
    let norm = sqrt(total(0u));
    if goes_on(norm) { starts(norm); }
}

// The vectors of the basis that the phase at hand goes over.
var<workgroup> vectors: u32;

// Takes (v_k, w) as the column's entry, and the second time adds it.
fn collect(k: u32, sum: real) {
    triangle[projection(k)] = sum;
    triangle[column(stop_test.flag) + k] = ZERO + sum;
}

fn collect_again(k: u32, sum: real) {
    triangle[projection(k)] = sum;
    triangle[column(stop_test.flag) + k] += sum;
}

// Applies the old rotations to the new column, and a rotation of its own. The rest of the right-hand side is
// the residual's norm.
fn rotate() {
    let j = stop_test.flag;
    let below = sqrt(total(0u));
    if !finite(below) {
        ends(NOT_FINITE, OF_BASIS, below);
        return;
    }
    let first = column(j);
    for (var i = 0u; i < j; i++) {
        let upper = triangle[first + i];
        let lower = triangle[first + i + 1u];
        triangle[first + i] = triangle[cosine(i)] * upper + triangle[sine(i)] * lower;
        triangle[first + i + 1u] = triangle[cosine(i)] * lower - triangle[sine(i)] * upper;
    }
    let diagonal = triangle[first + j];
    // Scaled by the larger of the two, which keeps the squares in range.
    let scale = max(abs(diagonal), abs(below));
    var c = ONE;
    var s = ZERO;
    if scale != ZERO {
        let d = diagonal / scale;
        let e = below / scale;
        let root = sqrt(d * d + e * e);
        c = d / root;
        s = e / root;
    }
    triangle[first + j] = c * diagonal + s * below;
    triangle[cosine(j)] = c;
    triangle[sine(j)] = s;
    let before = triangle[rotated(j)];
    triangle[rotated(j + 1u)] = -(s * before);
    triangle[rotated(j)] = c * before;
    stop_test.beta = below;
    stop_test.flag = j + 1u;
    let more = goes_on(abs(s * before));
    stop_test.outcome = stop_test.status;
    // Without a next vector the Krylov space is exhausted: it holds the solution, or A is singular.
    if !more || below == ZERO || j + 1u == task.restart { stop_test.status = CLOSING; }
}

// Computes the minimiser, by back substitution.
fn minimise() {
    let count = stop_test.flag;
    for (var back = 1u; back <= count; back++) {
        let i = count - back;
        var sum = triangle[rotated(i)];
        for (var j = i + 1u; j < count; j++) { sum -= triangle[column(j) + i] * triangle[minimiser(j)]; }
        let diagonal = triangle[column(i) + i];
        if diagonal == ZERO {
            ends(VANISHED, OF_DETERMINANT, ZERO);
            return;
        }
        triangle[minimiser(i)] = sum / diagonal;
    }
}

// After x has changed, the true residual decides. It can meet the threshold before the recurred residual
// does. Where the basis was not quite orthogonal, the recurred residual met it too early, and another cycle
// refines x.
fn close() {
    if stop_test.outcome == ENDED {
        stop_test.status = ENDED;
        return;
    }
    let norm = sqrt(total(0u));
    let is_met = stop_test.outcome == CONVERGED;
    let last = (stop_test.length - 1u) % RING;
    if !finite(norm) {
        ends(NOT_FINITE, OF_TRUE_RESIDUAL, norm);
    } else if norm <= select(task.limit, task.near, is_met) {
        history[last] = min(history[last], norm);
        stop_test.status = CONVERGED;
    } else if stop_test.beta == ZERO && !is_met {
        ends(VANISHED, OF_NEXT, ZERO);
    } else if norm >= stop_test.rho {
        stop_test.status = STAGNATION;
    } else {
        stop_test.status = RUNNING;
        starts(norm);
    }
}
