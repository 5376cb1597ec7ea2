@compute @workgroup_size(THREADS)
fn NAME_phase(@builtin(local_invocation_index) thread: u32) {
    if thread == 0u && stop_test.status == WHEN { NAME(); }
}
