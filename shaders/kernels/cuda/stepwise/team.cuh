// A cell that a team of threads computes: neighbouring lanes of a warp, which share the turns of some loops.

// The lane of the thread in its team.
__device__ __forceinline__ int lane_of_team() { return threadIdx.x % TEAM; }

// Joins what the lanes of a team have summed, by the tree of all reductions. Each lane ends with the whole.
__device__ __forceinline__ real team_sum(real own) { return join_warp<SUM, 1, TEAM>(own); }

// Computes a cell, of which each result is stored by one of the team's lanes. All teams of a warp go through all loops: those
// beyond the domain's end compute the last cell along each axis, which gets from its loops what it gets anyway.
template <class S>
__device__ __forceinline__ void stage_team(const Buffers& buffers, const Parameters& parameters, const real* tile, Offset s0, Offset y0, Offset x0, int cs, int cy, int cx)
{
    const bool is_in = s0 + cs < EXTENT_S && y0 + cy < EXTENT_Y && x0 + cx < EXTENT_X;
    const Offset s = s0 + cs < EXTENT_S ? s0 + cs : EXTENT_S - 1;
    const Offset y = y0 + cy < EXTENT_Y ? y0 + cy : EXTENT_Y - 1;
    const Offset x = x0 + cx < EXTENT_X ? x0 + cx : EXTENT_X - 1;
    const real* cell = tile + (s - s0 + S::RADIUS_S) * View<S>::PLANE + (y - y0 + S::RADIUS_Y) * View<S>::ROW + S::RADIUS_X + (x - x0);
    const View<S> view = {buffers, parameters, cell, s, y, x};
    real value[S::VALUES];
    S::compute(view, value);
    if (!is_in) return;
    if (HAS_FIXED && (held_s(s) || held_y(y) || held_x(x))) S::keep(view, value);
    #pragma unroll
    for (int o = 0; o < S::WRITES; ++o) {
        if (lane_of_team() == o % TEAM) of_field(buffers.next, S::writes(o))[s * STRIDE_S + y * STRIDE_Y + x] = value[o];
    }
}
