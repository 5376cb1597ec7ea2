@compute @workgroup_size(THREADS)
fn NAME_phase(@builtin(local_invocation_index) thread: u32) {
    if thread == 0u { vectors = select(0u, stop_test.flag + 1u, stop_test.status == WHEN); }
    let count = workgroupUniformLoad(&vectors);
    for (var k = 0u; k < count; k++) {
        parts[thread] = four_shares(thread, k, task.groups);
        let sum = fold(thread, 1u);
        if thread == 0u { NAME(k, sum); }
    }
}
