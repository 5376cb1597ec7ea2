// Rows so long that one block would keep all others waiting for it: SPREAD of them, taken out of the product.
// Every block holds their entries in the columns of its own rows. It sums these entries as soon as its own
// part of the exchanged vector is published. The pieces travel with the vector, through the same barrier, and
// have as many turns. After that barrier the row's owner adds them up.
//
// A row's sum has one order: the lanes of PARTS warps, these warps, the blocks.

// Warps that share a block's piece of a row.
constexpr int PARTS = SPREAD > 0 && SPREAD < WARPS ? WARPS / SPREAD : 1;

// Returns the sums of the pieces, [SPREAD][BLOCKS], that go with the vector exchanged next.
__device__ __forceinline__ real* pieces(const Team& team) { return team.a.pieces + (TURNS > 1 ? team.turn * (SPREAD * BLOCKS) : 0); }

// Before the loop: finds where the block's pieces begin.
__device__ __forceinline__ void keep_pieces(const Team& team)
{
    const unsigned* const offsets = team.a.offsets + team.own.offsets - (SPREAD + 1);
    for (unsigned n = threadIdx.x; n <= SPREAD; n += THREADS) shared_at<unsigned>(PIECE_OFFSETS_AT)[n] = offsets[n];
}

// After publishing, before the next barrier of all blocks: sums the block's piece of each row.
__device__ __forceinline__ void leave_pieces(const Team& team)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const real* const values = team.a.values + team.own.entries;
    const Column* const columns = team.a.columns + team.own.entries;
    const real* const x = team.a.exchanged + (TURNS > 1 ? team.turn * team.a.turn : 0) + team.own.first;
    const unsigned* const offsets = shared_at<unsigned>(PIECE_OFFSETS_AT);
    real* const parts = shared_at<real>(PIECES_AT);
    __syncthreads();                                 // the block's part of the vector is there
    #pragma unroll 1
    for (int n = warp; n < SPREAD * PARTS; n += WARPS) {
        const int row = n / PARTS;
        const unsigned end = offsets[row + 1];
        real sum = real(0);
        #pragma unroll UNROLL
        for (unsigned e = offsets[row] + n % PARTS * 32 + lane; e < end; e += PARTS * 32)
            sum = fma(load_stream(values + e), x[load_stream(columns + e)], sum);
        const real part = join_warp<SUM>(sum);
        if (lane == 0) (PARTS > 1 ? parts + n : pieces(team) + row * BLOCKS + blockIdx.x)[0] = part;
    }
    if constexpr (PARTS > 1) {
        __syncthreads();                             // the parts of each piece
        if (warp < SPREAD) {
            const real piece = join_warp<SUM>(lane < PARTS ? parts[warp * PARTS + lane] : real(0));
            if (lane == 0) pieces(team)[warp * BLOCKS + blockIdx.x] = piece;
        }
    }
}

// After that barrier, before the vector's turn ends: sums the block's own spread rows.
__device__ __forceinline__ void add_pieces(const Team& team)
{
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    #pragma unroll 1
    for (unsigned n = warp; n < team.own.spread_rows; n += WARPS) {
        const real* const row = pieces(team) + (team.own.spread_first + n) * BLOCKS;
        real sum = real(0);
        #pragma unroll
        for (int from = 0; from < BLOCKS; from += 32)
            if (from + lane < BLOCKS) sum += __ldcg(row + from + lane);
        const real total = join_warp<SUM>(sum);
        if (lane == 0) shared_at<real>(PIECES_AT)[n] = total;
    }
}

// After the product, in which spread rows are empty: the rows' owners take the sums.
template <class Y>
__device__ __forceinline__ void put_pieces(const Team& team, Y& y)
{
    if (team.own.spread_rows == 0) return;
    if constexpr (PRODUCT == SLICED) __syncthreads();                // the sums; other products have met
    #pragma unroll 1
    for (unsigned n = 0; n < team.own.spread_rows; ++n) {
        const unsigned row = team.a.spread[team.own.spread_first + n] - team.own.first;
        if (!team.owns(row)) continue;
        team.rows([&](int k, unsigned i) {
            if (i == row) y.set(k, i, shared_at<real>(PIECES_AT)[n]);
        });
    }
}

// Waits for all blocks; all of them then see what was published before, with the pieces of spread rows.
__device__ __forceinline__ void exchange(Team& team)
{
    if constexpr (SPREAD > 0) leave_pieces(team);
    team.meet();
}
