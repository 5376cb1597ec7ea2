// y = A x for the rows of a block, where x is the exchanged vector: one of four products, as the plan chose.
//
// Every sum has one order, whatever runs first. After `product` the block's threads see all of y; except that
// with SLICED and STENCIL each thread has made its own rows of y itself.

// The entries of a block; those of its first rows are in shared memory.
struct Entries {
    const real* values;                              // of the rest
    const Column* columns;
    unsigned from;                                   // the first of the rest

    __device__ __forceinline__ Entries(const Team& team)
        : values(team.a.values + team.own.entries), columns(team.a.columns + team.own.entries), from(team.own.cached_entries) {}

    template <bool KEPT>
    __device__ __forceinline__ real value(unsigned e) const
    {
        if constexpr (KEPT) return shared_at<real>(VALUES_AT)[e];
        else return load_stream(values + e);
    }

    template <bool KEPT>
    __device__ __forceinline__ unsigned column(unsigned e) const
    {
        if constexpr (KEPT) return shared_at<Column>(COLUMNS_AT)[e];
        else return load_stream(columns + e);
    }
};

// The row offsets of a block (SLICED: of its slices), in shared memory where the plan keeps them there.
struct Offsets {
    const unsigned* home;

    __device__ __forceinline__ Offsets(const Team& team) : home(team.a.offsets + team.own.offsets) {}

    __device__ __forceinline__ unsigned operator[](unsigned n) const
    {
        if constexpr (OFFSETS_KEPT) return shared_at<unsigned>(OFFSETS_AT)[n];
        else return home[n];
    }
};

constexpr int OFFSETS_A_ROW = PRODUCT == SLICED ? 32 : 1;    // rows that one offset stands for

// Before the loop: loads the block's part of the matrix that stays in shared memory.
__device__ __forceinline__ void keep_matrix(Team& team)
{
    if (threadIdx.x == 0) *team.lost() = 0;
    if constexpr (PRODUCT != STENCIL) {
        const Share& own = team.own;
        for (unsigned e = threadIdx.x; e < own.cached_entries; e += THREADS) {
            shared_at<real>(VALUES_AT)[e] = team.a.values[own.entries + e];
            shared_at<Column>(COLUMNS_AT)[e] = team.a.columns[own.entries + e];
        }
        if constexpr (OFFSETS_KEPT)
            for (unsigned n = threadIdx.x; n <= (own.rows + OFFSETS_A_ROW - 1) / OFFSETS_A_ROW; n += THREADS)
                shared_at<unsigned>(OFFSETS_AT)[n] = team.a.offsets[own.offsets + n];
        if constexpr (SPREAD > 0) keep_pieces(team);
    }
    if constexpr (AHEAD > 0) {
        const Offsets offsets(team);
        const unsigned slices = (team.own.rows + OFFSETS_A_ROW - 1) / OFFSETS_A_ROW;
        const unsigned end = WIDTH > 0 ? slices * (32 * WIDTH) : offsets.home[slices];
        team.ahead = {team.a.values + team.own.entries, team.a.columns + team.own.entries, team.own.cached_entries, end};
    }
    // From here on, blocks write into the shared memory of others, which must have begun.
    if constexpr (SPACE == CLUSTER) cluster_barrier();
    else __syncthreads();
}

// The exchanged vector, read by column. If it is the block's own vector V and V is in shared memory, the
// block's part is read there. V is -1 where the exchanged vector is none of the method's.
template <int V>
struct Exchanged {
    static constexpr bool NEAR = SPACE == GRID && V >= 0 && PLACE[V < 0 ? 0 : V] == SHARED;

    const real* x;
    unsigned base, first, rows;

    __device__ __forceinline__ Exchanged(Team& team)
        : x(team.exchanged()), base(PRODUCT == STENCIL || SPACE != GRID ? 0 : team.own.base), first(team.own.first), rows(team.own.rows) {}

    __device__ __forceinline__ real operator[](unsigned column) const
    {
        if constexpr (NEAR) {
            const unsigned near = base + column - first;
            if (near < rows) return shared_at<real>(SHARED_AT[V < 0 ? 0 : V])[near];
        }
        return x[base + column];
    }
};

// SLICED: 32 rows per slice, the j-th entries of its rows side by side; short rows end with zeros. There are
// WIDTH entries per row, or as many as the offsets say.
template <bool KEPT, class X>
__device__ __forceinline__ real sliced_row(const Entries& entries, const Offsets& offsets, const X& x, unsigned i)
{
    real sum = nothing();                            // so that the first product is plain
    if constexpr (WIDTH > 0) {
        const unsigned e = i / 32 * (32 * WIDTH) + i % 32;
        #pragma unroll UNROLL
        for (int j = 0; j < WIDTH; ++j) sum = fma(entries.value<KEPT>(e + 32 * j), x[entries.column<KEPT>(e + 32 * j)], sum);
    } else {
        const unsigned end = offsets[i / 32 + 1];
        #pragma unroll UNROLL
        for (unsigned e = offsets[i / 32] + i % 32; e < end; e += 32) sum = fma(entries.value<KEPT>(e), x[entries.column<KEPT>(e)], sum);
    }
    return sum;
}

// SPLIT: LANES neighbouring lanes per row, each with every LANES-th entry; then a tree.
template <bool KEPT, class X>
__device__ __forceinline__ real split_row(const Entries& entries, const X& x, unsigned e, unsigned end)
{
    real sum = nothing();
    #pragma unroll UNROLL
    for (; e < end; e += LANES) sum = fma(entries.value<KEPT>(e), x[entries.column<KEPT>(e)], sum);
    return sum;
}

template <class X, class Y>
__device__ __forceinline__ void split(const Team& team, const Entries& entries, const Offsets& offsets, const X& x, Y& y)
{
    const unsigned lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    #pragma unroll 1
    for (unsigned first = 0; first < team.own.rows; first += THREADS / LANES) {
        const unsigned i = first + group;
        real sum = real(0);
        if (i < team.own.cached) sum = split_row<true>(entries, x, offsets[i] + lane, offsets[i + 1]);
        else if (i < team.own.rows) sum = split_row<false>(entries, x, offsets[i] + lane, offsets[i + 1]);
        #pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0 && i < team.own.rows) y.put(i, sum);
    }
}

// MERGED: Merrill and Garland's merge path (SC'16). Row ends and entries are one list of items; each thread
// takes ITEMS of them, THREADS threads per tile, whatever the rows' lengths. The place where a thread's items
// begin was searched for once, before the first launch. The products of a tile are made first, side by side,
// then summed; rows that threads share are joined by a segmented scan.
struct Carry {
    real sum;                                        // of the row that is open at the end
    bool closed;                                     // whether a row ended before
};

__device__ __forceinline__ Carry joined(const Carry& left, const Carry& right)
{
    return {right.closed ? right.sum : left.sum + right.sum, left.closed || right.closed};
}

// Returns what all lanes leave open (in the warp's last lane); `before` is what lanes before this one do.
__device__ __forceinline__ Carry scanned(Carry own, Carry& before)
{
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int by = 1; by < 32; by *= 2) {
        const Carry left = {__shfl_up_sync(0xffffffffu, own.sum, by), bool(__shfl_up_sync(0xffffffffu, int(own.closed), by))};
        if (lane >= by) own = joined(left, own);
    }
    before = {__shfl_up_sync(0xffffffffu, own.sum, 1), bool(__shfl_up_sync(0xffffffffu, int(own.closed), 1))};
    if (lane == 0) before = {real(0), false};
    return own;
}

template <class X, class Y>
__device__ __forceinline__ void merged(const Team& team, const Entries& entries, const Offsets& offsets, const X& x, Y& y)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    real* const products = shared_at<real>(TILE_AT);                 // [THREADS * ITEMS]
    real* const sums = shared_at<real>(CARRIES_AT);                  // [WARPS]
    int* const closed = shared_at<int>(CLOSED_AT);                   // [WARPS]
    const unsigned items = team.own.rows + offsets[team.own.rows];
    // Rows that ended before each thread's items.
    const unsigned* searched = team.a.searches + team.own.searches;
    Carry open = {real(0), false};                                   // left open by the tiles before
    #pragma unroll 1
    for (unsigned tile = 0; tile < items; tile += THREADS * ITEMS, searched += THREADS) {
        const unsigned tile_end = tile + THREADS * ITEMS < items ? tile + THREADS * ITEMS : items;
        const unsigned first = tile - searched[0], last = tile_end - searched[THREADS];
        #pragma unroll UNROLL
        for (unsigned e = first + threadIdx.x; e < last; e += THREADS)
            products[e - first] = e < entries.from ? entries.value<true>(e) * x[entries.column<true>(e)]
                                                   : entries.value<false>(e) * x[entries.column<false>(e)];
        __syncthreads();
        const unsigned begin = tile + threadIdx.x * ITEMS < items ? tile + threadIdx.x * ITEMS : items;
        const unsigned end = begin + ITEMS < items ? begin + ITEMS : items;
        unsigned row = searched[threadIdx.x], e = begin - row;
        const unsigned row_end = searched[threadIdx.x + 1], e_end = end - row_end;
        const unsigned head = row;
        real sum = real(0), head_sum = real(0);
        for (; row < row_end; ++row) {
            for (const unsigned stop = offsets[row + 1]; e < stop; ++e) sum += products[e - first];
            if (row == head) head_sum = sum;
            else y.put(row, sum);
            sum = real(0);
        }
        for (; e < e_end; ++e) sum += products[e - first];
        // Joins lanes, then warps, then the tiles before.
        Carry before, before_warp;
        const Carry through = scanned({sum, row_end > head}, before);
        if (lane == 31) {
            sums[warp] = through.sum;
            closed[warp] = through.closed;
        }
        __syncthreads();
        const Carry warps = scanned(lane < WARPS ? Carry{sums[lane], closed[lane] != 0} : Carry{real(0), false}, before_warp);
        const int from = warp == 0 ? 0 : warp - 1;
        before_warp = {__shfl_sync(0xffffffffu, warps.sum, from), bool(__shfl_sync(0xffffffffu, int(warps.closed), from))};
        if (warp == 0) before_warp = {real(0), false};
        if (row_end > head) y.put(head, joined(joined(open, before_warp), before).sum + head_sum);
        open = joined(open, {__shfl_sync(0xffffffffu, warps.sum, 31), bool(__shfl_sync(0xffffffffu, int(warps.closed), 31))});
        __syncthreads();
    }
}

//@stencil

// Whether a thread makes its own rows of the product, one after the other.
constexpr bool ROW_BY_ROW = PRODUCT == STENCIL || PRODUCT == SLICED;

// Returns a row of A x; ROW_BY_ROW.
template <class X>
__device__ __forceinline__ real row_of(const Team& team, const X& x, unsigned i)
{
    if constexpr (PRODUCT == STENCIL) return stencil_row(x, team.own.first + i);
    else {
        const Entries entries(team);
        const Offsets offsets(team);
        return i < team.own.cached ? sliced_row<true>(entries, offsets, x, i) : sliced_row<false>(entries, offsets, x, i);
    }
}

// Computes y = A x, but for spread rows.
template <class X, class Y>
__device__ __forceinline__ void multiply(Team& team, const X& x, Y& y)
{
    if constexpr (AHEAD > 0) team.ahead.next = team.own.cached_entries;
    if constexpr (ROW_BY_ROW) team.rows([&](int k, unsigned i) { y.set(k, i, row_of(team, x, i)); });
    else {
        const Entries entries(team);
        const Offsets offsets(team);
        if constexpr (PRODUCT == SPLIT) split(team, entries, offsets, x, y);
        else merged(team, entries, offsets, x, y);
        __syncthreads();
    }
}

// Computes y = A x, where x is what was published last: vector V of the method, or -1 for another.
template <int V, class Y>
__device__ __forceinline__ void product(Team& team, Y& y)
{
    if constexpr (SPREAD > 0) add_pieces(team);
    multiply(team, Exchanged<V>(team), y);
    if constexpr (SPREAD > 0) put_pieces(team, y);
    // No thread may change values that others of the block still read from its own vector.
    if constexpr (Exchanged<V>::NEAR) __syncthreads();
}

// Computes y = A x of a vector that has no spread rows, and sums the terms that f(k, i, terms) gives for a row once its y is
// there, by nodes of a kind.
template <class X, class Y, int K, int D, class F, class G, class Nodes>
__device__ __forceinline__ void multiply_and_sum(Team& team, const X& x, Y& y, real (&v)[K], double (&derived)[D], const F& f, const G& derive, const Nodes& nodes)
{
    if constexpr (ROW_BY_ROW) {
        if constexpr (AHEAD > 0) team.ahead.next = team.own.cached_entries;
        team.leave_terms<K>(team.scratch(), f, [&](int k, unsigned i) { y.set(k, i, row_of(team, x, i)); });
        team.join(v, derived, derive, nodes);
    } else {
        multiply(team, x, y);
        team.sum(v, derived, f, derive, nodes);
    }
}

// Repeats it with what was published last: vector V of the method.
template <int V, class Y, int K, int D, class F, class G, class Nodes>
__device__ __forceinline__ void product_and_sum(Team& team, Y& y, real (&v)[K], double (&derived)[D], const F& f, const G& derive, const Nodes& nodes)
{
    if constexpr (SPREAD == 0) multiply_and_sum(team, Exchanged<V>(team), y, v, derived, f, derive, nodes);
    else {
        product<V>(team, y);
        team.sum(v, derived, f, derive, nodes);
    }
}
