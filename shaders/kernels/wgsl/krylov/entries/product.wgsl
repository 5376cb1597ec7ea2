@compute @workgroup_size(THREADS)
fn NAME_phase(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var base = group.x * ROWS; base < task.rows; base += task.product_groups * ROWS) {
        let image = product(base, thread);
        let i = base + thread;
        if thread < ROWS && i < task.rows { NAME(i, image); }
    }
}
