@compute @workgroup_size(THREADS)
fn NAME_phase(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let begin = group.x * task.product_share;
    let end = min(task.rows, begin + task.product_share);
    for (var at = 0u; begin + at < end; at += ROWS) {
        let base = begin + at;
        clear();
        let image = product(base, thread);
        let i = base + thread;
        if thread < ROWS && i < task.rows { NAME(i, image); }
        enter(at, ROWS, base + ROWS >= end, thread, COUNT);
    }
    leave(group.x, thread, COUNT);
}
