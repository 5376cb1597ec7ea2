@compute @workgroup_size(THREADS)
fn NAME_phase(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let begin = group.x * task.share;
    for (var at = 0u; at < task.share && begin + at < task.rows; at += THREADS) {
        let i = begin + at + thread;
        clear();
        if i < task.rows { NAME(i); }
        enter(at, THREADS, false, thread, COUNT);
    }
    leave(group.x, thread, COUNT);
}
