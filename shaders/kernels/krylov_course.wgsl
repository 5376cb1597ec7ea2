// The stopping tests, by the first thread of a phase of one workgroup. The host repeats them on the same
// history.

fn ends(status: u32, quantity: u32, value: real) {
    course.status = status;
    course.quantity = quantity;
    course.value = value;
}

// Enters an iterate's residual in the history, its norm's square or, in GMRES, the norm; returns whether the
// run goes on.
fn goes_on(residual: real) -> bool {
    let iteration = course.length;
    history[iteration % RING] = residual;
    course.length = iteration + 1u;
    if !finite(residual) {
        course.status = ENDED;
        return false;
    }
    if residual <= task.limit {
        course.status = CONVERGED;
        return false;
    }
    let is_over = stagnates(iteration, residual);
    if iteration >= task.most {
        course.status = ENDED;
        return false;
    }
    if is_over {
        course.status = select(ENDED, STAGNATION, BY_ENERGY);
        return false;
    }
    return true;
}

// Notes that an iteration has taken alpha rho off the square of the error's A-norm.
fn gained(energy: real) {
    course.stretch += energy;
}

// Returns whether there was no progress for too long.
fn stagnates(iteration: u32, residual: real) -> bool {
    if BY_ENERGY {
        if iteration - course.since < task.patience { return false; }
        let whole = course.before + course.stretch;
        // A sum that overflows or underflows says nothing.
        let is_over = finite(whole) && course.stretch < LEAST_SHARE * whole;
        course.since = iteration;
        course.stretch = ZERO;
        course.before = whole;
        return is_over;
    }
    if residual < course.least {
        course.least = residual;
        course.since = iteration;
    }
    return task.patience != 0xffffffffu && iteration - course.since >= task.patience;
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
