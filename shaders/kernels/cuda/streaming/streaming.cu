// 2.5-D streaming (2.5-D temporal blocking): a pass advances DEPTH steps, and each plane of the domain goes through the
// chip once.
//
// A block owns a window of TILE_Y × TILE_X cells across and streams along S. Plane by plane the input arrives
// in a ring in shared memory. LEVELS stages stand behind one another, and each turns the plane that arrives
// at it into a plane of its result, some planes behind. Between planes a level keeps partial sums in
// registers (see core's `carry.rs`). Along X the window is as wide as a warp: neighbours' cells come by
// shuffles. Along Y, rows at the edge of a warp's strip pass through shared memory. Strips wait for each
// other at each level, or (LAG) each level takes the plane that the level before it made a plane ago, so that
// one barrier per plane serves all levels. Cells near the window's sides go wrong by a radius per level and
// are not stored: neighbouring windows overlap by twice MARGIN.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR)
stream(const __grid_constant__ Turns turns, const __grid_constant__ Parameters parameters, unsigned* ended, unsigned passes)
{
    DYNAMIC_SHARED;
    #pragma unroll 1
    for (unsigned pass = 0; pass < (CHAINED ? passes : 1); ++pass) {
        if constexpr (CHAINED) if (pass > 0) await_around(ended, pass);
        each_part([&](int tile_y, int tile_x, Offset low, Offset high) {
            const int tid = threadIdx.x, lane = tid % 32, warp = uniform(tid / 32);
            real* const ring = reinterpret_cast<real*>(shared);
            real* const edges = ring + RING * FIELDS * PLANE;
            real* const far = edges + (1 + LAG) * (LEVELS - 1) * PASSING * (WARPS + 2) * 2 * EDGE_Y * TILE_X;
            Kept kept;
            const real* const varying = varying_of(parameters) + pass * (LEVELS * VARYING);
            Stream stream = {{{turns.buffers[CHAINED ? pass % 2 : 0]}, parameters}, varying, turns, kept};
            stream.ring = ring + (EDGE_Y + warp * OWN_Y) * TILE_X;
            stream.edges = edges + (1 + warp) * 2 * EDGE_Y * TILE_X;
            stream.far = far;
            stream.row = far + LEVELS * FAR * TILE_Y * TILE_X + warp * TILE_X;
            stream.tid = tid;
            stream.lane = lane;
            stream.warp = warp;
            stream.turn = 0;
            each<LEVELS>([&](auto l) {
                each<NEAR>([&](auto k) { each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { stream.near[l.value][k.value][r.value][c.value] = real(0); }); }); });
                each<FIELDS>([&](auto f) { each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { stream.arriving[l.value][f.value][r.value][c.value] = real(0); }); }); });
            });
            each<MASKS>([&](auto k) { each<MASK_WORDS>([&](auto w) { stream.masks[k.value][w.value] = 0; }); });
            stream.enter(tile_y, tile_x);
            if constexpr (NOTES) stream.find_noted(stream.noting, tile_y * TILES_X + tile_x, low, high, pass);
            stream.run(low, high);
            // The next window's planes overwrite this window's, with which all threads must be done.
            copies_wait<0>();
            barrier();
        });
        // All threads have stored what they make of the pass, behind that barrier.
        if constexpr (CHAINED) if (threadIdx.x == 0 && pass + 1 < passes) store_release(ended + blockIdx.x * 32, pass + 1);
    }
}
