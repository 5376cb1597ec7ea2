// A stage at points, a thread for each.
@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    //@ended
    let i = i32(group.y * groups.x + group.x) * THREADS + i32(local);
    if i >= POINTS { return; }
    let z = point(i).x;
    let y = point(i).y;
    let x = point(i).z;
    //@places
    //@edge
}
