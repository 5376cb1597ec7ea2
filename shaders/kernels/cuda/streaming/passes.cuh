// How the passes of a streaming kernel follow one another. The planes of all windows are cut into shares, one per block.
// Where all blocks are resident (CHAINED) they stay for all passes of a launch: a block begins a pass when the blocks around
// it, whose windows and planes reach into its own, have ended the pass before.

// The planes of all windows are cut into shares that take equally long, one share per block, so that all
// blocks end together. Windows that meet a boundary across cost more, as do those that copy cells one by one
// from the other side. Where there are far more shares than
// windows, each window is cut by itself, so that windows side by side go through the same rows at the same
// time. Else windows are laid end to end (as Stream-K does with the tiles of matrix products: Osama et al.,
// PPoPP'23), and beginning with a window costs as much as FILL planes.
typedef long long Cost;  // windows overlap, so their planes may be more than a cell's index can hold
constexpr Cost SPAN = OWN_LAST - OWN_FIRST + FILL;   // planes that are stored
__device__ constexpr bool side_y(int tile) { return EXTENT_Y > 1 && !WRAPS_Y && (tile == 0 || tile == TILES_Y - 1); }
__device__ constexpr bool side_x(int tile) { return (!WRAPS_X || EXTENT_X % LANES != 0) && (tile == 0 || tile == TILES_X - 1); }
__device__ constexpr int cost_of(int tile_y, int tile_x) { return side_y(tile_y) || side_x(tile_x) ? SIDE_COST : MIDDLE_COST; }
// Returns the cost of all windows before a window, row by row; behind the last window, the cost of them all.
__device__ constexpr Cost cost_before(int window)
{
    const int y = window / TILES_X, x = window % TILES_X, last = TILES_Y - 1;
    const int side_rows = (y > 0 && side_y(0)) + (last > 0 && y > last && side_y(last));
    const int sides = TILES_X == 1 ? side_x(0) : side_x(0) + side_x(TILES_X - 1);
    const int dear = side_rows * TILES_X + (y - side_rows) * sides + (y <= last && side_y(y) ? x : x > 0 && side_x(0));
    return Cost(MIDDLE_COST) * window + Cost(SIDE_COST - MIDDLE_COST) * dear;
}
constexpr Cost ALL_COST = cost_before(TILES_Y * TILES_X);
// Returns the cost at which a block's share begins.
__device__ __forceinline__ Cost share(int block) { return ALL_COST * block / SHARES; }

// Calls part(tile_y, tile_x, low, high) for each window of which this block has planes, low to high.
template <class Part>
__device__ __forceinline__ void each_part(const Part& part)
{
    int window = int(share(blockIdx.x) / SIDE_COST);
    while (cost_before(window + 1) <= share(blockIdx.x)) ++window;
    window = uniform(window);
    #pragma unroll 1
    for (; window < TILES_Y * TILES_X && cost_before(window) < share(blockIdx.x + 1); ++window) {
        const int tile_y = window / TILES_X, tile_x = window % TILES_X, cost = cost_of(tile_y, tile_x);
        const Cost begin = cost_before(window), from = share(blockIdx.x), to = share(blockIdx.x + 1);
        const Cost first = (from - begin) * SPAN / cost - FILL, last = (to - begin) * SPAN / cost - FILL;
        const Cost low = from <= begin || first < 0 ? 0 : first, high = last > SPAN - FILL ? SPAN - FILL : last;
        if (low < high) part(tile_y, tile_x, uniform(Offset(OWN_FIRST + low)), uniform(Offset(OWN_FIRST + high)));
    }
}

// The windows on each side of one that may have cells in common with it, and all windows around along an axis.
constexpr int AROUND_Y = (TILE_Y - 1) / USE_Y + 1, AROUND_X = (TILE_X - 1) / USE_X + 1;
constexpr int SPREAD_Y = TILES_Y < 2 * AROUND_Y + 1 ? TILES_Y : 2 * AROUND_Y + 1, SPREAD_X = TILES_X < 2 * AROUND_X + 1 ? TILES_X : 2 * AROUND_X + 1;
// The planes that a share reads before and behind its own.
constexpr int REACH_S = (MARGIN_S > BEHIND ? MARGIN_S : BEHIND) + 1;
// Threads that look after one window: blocks of its planes lie side by side.
constexpr int LOOKERS = SPREAD_Y * SPREAD_X * 4 <= THREADS ? 4 : 1;

// Returns the i-th of the windows around `tile`, or -1 where there is none.
template <int TILES, int SPREAD, int AROUND, bool WRAPS>
__device__ __forceinline__ int around(int tile, int i)
{
    if (SPREAD == TILES) return i;
    const int at = tile - AROUND + i;
    if (WRAPS) return at < 0 ? at + TILES : at >= TILES ? at - TILES : at;
    return at < TILES ? at : -1;
}

// Returns whether windows that begin at `a` and `b` have cells in common.
template <bool WRAPS>
__device__ __forceinline__ bool common(Offset a, Offset b, int tile, Offset extent)
{
    const Offset apart = a < b ? b - a : a - b;
    return apart < tile || (WRAPS && extent - apart < tile);
}

// Returns the block that has plane `s` of a window, or one beside it.
__device__ __forceinline__ int block_of(int tile_y, int tile_x, Offset s)
{
    const Cost begin = cost_before(tile_y * TILES_X + tile_x);
    return int((begin + (s > 0 ? (s + FILL) * Cost(cost_of(tile_y, tile_x)) / SPAN : 0)) * SHARES / ALL_COST);
}

// Waits until all blocks around this one have ended so many passes. All lanes of a warp take the same way, because the
// compiler then knows that they are together afterwards, and keeps in registers that they share what they have alike.
__device__ __forceinline__ void await_around(const unsigned* ended, unsigned passes)
{
    each_part([&](int tile_y, int tile_x, Offset low, Offset high) {
        #pragma unroll 1
        for (int turn = 0; turn < (SPREAD_Y * SPREAD_X * LOOKERS + THREADS - 1) / THREADS; ++turn) {
            const int i = (turn * THREADS + threadIdx.x) / LOOKERS;
            const int y = around<TILES_Y, SPREAD_Y, AROUND_Y, WRAPS_Y>(tile_y, i / SPREAD_X), x = around<TILES_X, SPREAD_X, AROUND_X, WRAPS_X>(tile_x, i % SPREAD_X);
            const bool near = i < SPREAD_Y * SPREAD_X && y >= 0 && x >= 0 && common<WRAPS_Y>(begin_y(tile_y), begin_y(y), TILE_Y, EXTENT_Y) &&
                              common<WRAPS_X>(begin_x(tile_x), begin_x(x), TILE_X, EXTENT_X);
            #pragma unroll 1
            for (int round = LOW_S == PERIODIC ? -1 : 0; round <= (LOW_S == PERIODIC ? 1 : 0); ++round) {
                const Offset first = low - REACH_S + round * EXTENT_S, last = high + REACH_S + round * EXTENT_S;
                const int from = block_of(y, x, first) - 1, to = block_of(y, x, last < EXTENT_S ? last : EXTENT_S) + 1;
                const int end = !near || last <= 0 || first >= EXTENT_S ? 0 : to < SHARES ? to + 1 : SHARES;
                #pragma unroll 1
                for (int block = (from < 0 ? 0 : from) + threadIdx.x % LOOKERS; __any_sync(~0u, block < end); block += LOOKERS) {
                    // Who has nothing to wait for looks at its own block.
                    const unsigned* const count = ended + (block < end ? block : int(blockIdx.x)) * 32;
                    while (!__all_sync(~0u, load_acquire(count) >= passes)) {}
                }
            }
        }
    });
    barrier();
}
