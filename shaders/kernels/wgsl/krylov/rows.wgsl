// The product of `gathered` with compressed rows. A workgroup takes ROWS consecutive rows at a time: LANES
// threads per row, of which the j-th takes the entries j, j + LANES, …. Then all threads together take each
// of the long rows among them. `offsets` lists the long rows behind the rows' own offsets, after the place,
// for each ROWS rows, where their list begins.
const ROWS: u32 = THREADS / LANES;

var<workgroup> lanes: array<real, THREADS>;

// Returns the product of row base + thread, for the first ROWS threads. The whole workgroup calls it.
fn product(base: u32, thread: u32) -> real {
    let row = base + thread / LANES;
    let lane = thread % LANES;
    var sum: real;
    if row < task.rows {
        let end = offsets[row + 1u];
        var entry = offsets[row] + lane;
        if end - (entry - lane) > LONGEST { entry = end; }
        for (; entry < end; entry += LANES) { sum = fma(values[entry], gathered[columns[entry]], sum); }
    }
    if LANES > 1u {
        // Lane after lane, so that the words lie side by side for the threads that read them.
        lanes[lane * ROWS + thread / LANES] = sum;
        workgroupBarrier();
        sum = lanes[thread % ROWS];
        for (var other = 1u; other < LANES; other++) { sum += lanes[other * ROWS + thread % ROWS]; }
        workgroupBarrier();
    }
    if HAS_LONG {
        let list = task.rows + 1u + base / ROWS;
        for (var k = offsets[list]; k < offsets[list + 1u]; k++) {
            let long = offsets[k];
            var part: real;
            let end = offsets[long + 1u];
            for (var entry = offsets[long] + thread; entry < end; entry += THREADS) {
                part = fma(values[entry], gathered[columns[entry]], part);
            }
            // `parts` may hold the terms of rows before these.
            lanes[thread] = part;
            workgroupBarrier();
            if thread < 16u {
                part = lanes[16u * thread];
                for (var other = 1u; other < 16u; other++) { part += lanes[16u * thread + other]; }
                sixteenths[thread] = part;
            }
            workgroupBarrier();
            if base + thread == long {
                sum = sixteenths[0];
                for (var other = 1u; other < 16u; other++) { sum += sixteenths[other]; }
            }
            workgroupBarrier();
        }
    }
    return sum;
}
