// Lines of values along an axis, each times a matrix: a workgroup makes 16 by 16 results, 16 products of each at a time. A result is a
// chain of multiply-adds over the line in ascending order, from 0.

// Of a result's row of the matrix, and of a line.
var<workgroup> weights: array<array<real, 17>, 16>;
var<workgroup> values: array<array<real, 17>, 16>;

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    //@ended
    let tile = i32(group.y * groups.x + group.x);
    if tile >= OF_LINE * ((LINES + 15) / 16) { return; }
    let first = tile / OF_LINE * 16;
    let begin = tile % OF_LINE * 16;
    let fast = i32(local.x);
    let slow = i32(local.y);
    // Neighbours in memory are of one line, or of as many lines.
    let own = select(slow, fast, ALONG_ROWS);
    let other = select(fast, slow, ALONG_ROWS);
    let line = first + other;
    var sum = real(0);
    for (var k = 0; k < COUNT; k += 16) {
        var weight = real(0);
        if begin + slow < COUNT { weight = matrices[MATRIX + (begin + slow) * PITCH + k + fast]; }
        var value = real(0);
        if line < LINES && k + own < COUNT { value = source(place(line, k + own)); }
        weights[slow][fast] = weight;
        values[other][own] = value;
        workgroupBarrier();
        for (var i = 0; i < 16; i++) { sum = fma(weights[own][i], values[other][i], sum); }
        workgroupBarrier();
    }
    if line < LINES && begin + own < COUNT { store(place(line, begin + own), sum); }
}
