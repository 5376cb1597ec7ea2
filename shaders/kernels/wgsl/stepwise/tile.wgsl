// Stepwise, on tiles: each workgroup copies its tile with the halo to workgroup memory, then computes the
// tile's cells.
//@domain

const SIDE_S: i32 = TILE_S + 2 * RADIUS_S;
const SIDE_Y: i32 = TILE_Y + 2 * RADIUS_Y;
const SIDE_X: i32 = TILE_X + 2 * RADIUS_X;
const VOLUME: i32 = SIDE_S * SIDE_Y * SIDE_X;

// The staged fields' tiles, one after the other.
var<workgroup> tile: array<real, STAGED * VOLUME>;

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    // Tiles are counted through, because a grid of workgroups is limited along each axis.
    let block = i32(group.y * groups.x + group.x);
    if block >= BLOCKS { return; }
    let s0 = block / (BLOCKS_Y * BLOCKS_X) * TILE_S;
    let y0 = block / BLOCKS_X % BLOCKS_Y * TILE_Y;
    let x0 = block % BLOCKS_X * TILE_X;

    // The tile and its halo lie in the domain: no cell of it needs to ask the boundary.
    let inside = s0 >= RADIUS_S && s0 + TILE_S + RADIUS_S <= EXTENT_S
        && y0 >= RADIUS_Y && y0 + TILE_Y + RADIUS_Y <= EXTENT_Y
        && x0 >= RADIUS_X && x0 + TILE_X + RADIUS_X <= EXTENT_X;

    // A row of threads takes a row of cells, so that neighbours load neighbours.
    let tx = i32(thread) % THREADS_X;
    for (var row = i32(thread) / THREADS_X; row < SIDE_S * SIDE_Y; row += THREADS / THREADS_X) {
        let s = s0 + row / SIDE_Y - RADIUS_S;
        let y = y0 + row % SIDE_Y - RADIUS_Y;
        for (var column = tx; column < SIDE_X; column += THREADS_X) {
            let x = x0 + column - RADIUS_X;
            var at = (s * EXTENT_Y + y) * EXTENT_X + x;
            if !inside { at = place(s, y, x); }
            let slot = row * SIDE_X + column;
            if at >= 0 {
                //@load
            } else {
                let value = ghost(s, y, x);
                //@fill
            }
        }
    }
    workgroupBarrier();

    let ty = i32(thread) / THREADS_X % THREADS_Y;
    let ts = i32(thread) / (THREADS_X * THREADS_Y);
    for (var ds = ts; ds < TILE_S; ds += THREADS_S) {
        for (var dy = ty; dy < TILE_Y; dy += THREADS_Y) {
            for (var dx = tx; dx < TILE_X; dx += THREADS_X) {
                let s = s0 + ds;
                let y = y0 + dy;
                let x = x0 + dx;
                if !in_domain(s, y, x) { continue; }
                let at = (s * EXTENT_Y + y) * EXTENT_X + x;
                let here = ((ds + RADIUS_S) * SIDE_Y + dy + RADIUS_Y) * SIDE_X + dx + RADIUS_X;
                if computed(s, y, x) {
                    //@formula
                } else {
                    //@keep
                }
            }
        }
    }
}
