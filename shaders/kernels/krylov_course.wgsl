// The stopping tests, by the first thread of a phase of one workgroup. The host makes them again on the same history.

fn ends(status: u32, quantity: u32, value: real) {
    course.status = status;
    course.quantity = quantity;
    course.value = value;
}

// Enters an iterate's residual in the history, its norm's square or, in GMRES, the norm; whether the run goes on.
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
    if residual < course.least {
        course.least = residual;
        course.least_at = iteration;
    }
    if iteration >= task.most || iteration - course.least_at >= task.patience {
        course.status = ENDED;
        return false;
    }
    return true;
}

// Whether a quantity is positive, as it is for every symmetric positive definite system; else the run ends.
fn positive(quantity: u32, value: real) -> bool {
    if value > ZERO && finite(value) { return true; }
    ends(select(NOT_FINITE, NOT_POSITIVE, finite(value)), quantity, value);
    return false;
}

// Whether a quantity can be divided by; else the run ends.
fn nonzero(quantity: u32, value: real) -> bool {
    if value != ZERO && finite(value) { return true; }
    ends(select(NOT_FINITE, VANISHED, finite(value)), quantity, value);
    return false;
}
