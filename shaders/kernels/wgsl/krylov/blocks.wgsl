// Block-Jacobi: made = the inverse of each block of rows on the diagonal, times given; one thread per row.
fn blocks(i: u32) {
    let first = i / task.size * task.size;
    let columns = min(task.size, task.rows - first);
    var sum: real;
    for (var k = 0u; k < columns; k++) { sum += inverses[i * task.size + k] * given[first + k]; }
    made[i] = sum;
}
