// The stopping tests, by the first thread of a phase of one workgroup. The host repeats them on the same
// history.

fn ends(status: u32, quantity: u32, value: real) {
    stop_test.status = status;
    stop_test.quantity = quantity;
    stop_test.value = value;
}

// Enters an iterate's residual in the history, its norm's square or, in GMRES, the norm; returns whether the
// run goes on.
fn goes_on(residual: real) -> bool {
    let iteration = stop_test.length;
    history[iteration % RING] = residual;
    stop_test.length = iteration + 1u;
    if !finite(residual) {
        stop_test.status = ENDED;
        return false;
    }
    if residual <= task.limit {
        stop_test.status = CONVERGED;
        return false;
    }
    let is_over = stagnates(iteration, residual);
    if iteration >= task.most {
        stop_test.status = ENDED;
        return false;
    }
    if is_over {
        stop_test.status = select(ENDED, STAGNATION, BY_ENERGY);
        return false;
    }
    return true;
}

// Notes that an iteration has taken alpha rho off the square of the error's A-norm.
fn gained(energy: real) {
    stop_test.stretch += energy;
}

// Returns whether there was no progress for too long.
fn stagnates(iteration: u32, residual: real) -> bool {
    if BY_ENERGY {
        if iteration - stop_test.since < task.stagnation { return false; }
        let whole = stop_test.before + stop_test.stretch;
        // A sum that overflows or underflows says nothing.
        let is_over = finite(whole) && stop_test.stretch < LEAST_SHARE * whole;
        stop_test.since = iteration;
        stop_test.stretch = ZERO;
        stop_test.before = whole;
        return is_over;
    }
    if residual < stop_test.least {
        stop_test.least = residual;
        stop_test.since = iteration;
    }
    return task.stagnation != 0xffffffffu && iteration - stop_test.since >= task.stagnation;
}

// Returns whether a quantity is positive, as for every symmetric positive definite system; else the run ends.
fn positive(quantity: u32, value: real) -> bool {
    if value > ZERO && finite(value) { return true; }
    ends(select(NOT_FINITE, NOT_POSITIVE, finite(value)), quantity, value);
    return false;
}

// Returns whether a quantity can be divided by; else the run ends.
fn nonzero(quantity: u32, value: real) -> bool {
    if value != ZERO && finite(value) { return true; }
    ends(select(NOT_FINITE, VANISHED, finite(value)), quantity, value);
    return false;
}
