// A reduction at the end of a group: its argument's rows stay in a ring that has one slot more than a leaf has rows.
// The warps join the leaves that a turn completes, while the next turn may begin to write into the slot left over.
template <class Leaves>
struct JoinRows {
    static constexpr bool JOINS = true;

    template <class S>
    __device__ static __forceinline__ void
    join_rows(const Arguments& arguments, const real* rings, int front, Offset z, Offset y, Offset x)
    {
        constexpr bool PLANES = S::AXIS == 0, LINE = LEAF_Z * LEAF_Y == 1;
        constexpr int TILE = PLANES ? S::TILE_Z : S::TILE_Y, ROWS = PLANES ? LEAF_Z : LEAF_Y;
        constexpr int ACROSS_Y = PLANES ? S::TILE_Y / LEAF_Y : 1, ACROSS_X = S::TILE_X / LEAF_X;
        const int last = front - S::LAG;
        if (last < 0 || last >= TILE || (last + 1) % ROWS != 0) return;
        const int lane = threadIdx.x % WARP;
        for (int leaf = threadIdx.x / WARP; leaf < ACROSS_Y * ACROSS_X; leaf += S::THREADS / WARP) {
            const int first_y = leaf / ACROSS_X, first_x = leaf % ACROSS_X;
            real v[WARPS];
            #pragma unroll
            for (int w = 0; w < WARPS; ++w) {
                const int dz = LINE ? 0 : w / LEAF_Y, dy = LINE ? 0 : w % LEAF_Y, dx = LINE ? w * WARP + lane : lane;
                const int row = last - (ROWS - 1) + (PLANES ? dz : dy) + S::BIAS;
                const int place = ((PLANES ? first_y * LEAF_Y + dy : 0) + S::BEFORE_Y) * S::ROW_X +
                                  first_x * LEAF_X + dx + S::BEFORE_X;
                v[w] = rings[S::LEAVES + unsigned(row) % (ROWS + 1) * (S::ROW_Y * S::ROW_X) + place];
            }
            const real joined = join_leaf<Leaves>(v);
            const Offset leaf_z = (z + (PLANES ? last : 0)) / LEAF_Z, leaf_x = x / LEAF_X + first_x;
            const Offset leaf_y = PLANES ? y / LEAF_Y + first_y : (y + last) / LEAF_Y;
            const bool counts = leaf_z < Leaves::LEAVES_Z && leaf_y < Leaves::LEAVES_Y && leaf_x < Leaves::LEAVES_X;
            if (lane == 0 && counts) {
                arguments.leaves[(leaf_z * Leaves::LEAVES_Y + leaf_y) * Leaves::LEAVES_X + leaf_x] = joined;
            }
        }
    }
};
