// Stepwise, the baseline: a launch per stage. Each block stages its tile with halo in shared memory, then
// computes it. Of a stage that is not STAGED, threads read what they tap.

// `TEAM` threads share the loops of a point; of the others each has points of its own.
constexpr int THREADS = THREADS_S * THREADS_Y * THREADS_X * TEAM;
constexpr int BLOCKS_Y = int((EXTENT_Y + TILE_Y - 1) / TILE_Y), BLOCKS_X = int((EXTENT_X + TILE_X - 1) / TILE_X);

// The values that a formula sees at one cell: of a staged tile, fields tapped around it in shared memory; the rest in device
// memory. `INNER` says that all of them lie inside the domain.
template <class S, bool INNER = false>
struct View {
    static constexpr int ROW = TILE_X + 2 * S::RADIUS_X;
    static constexpr int PLANE = (TILE_Y + 2 * S::RADIUS_Y) * ROW;
    static constexpr int VOLUME = (TILE_S + 2 * S::RADIUS_S) * PLANE;
    const Buffers& buffers;
    const Parameters& parameters;
    const real* tile;          // the cell's own place in the first staged field
    Offset s, y, x;            // the cell in the domain

    // What is loaded for this cell afterwards is not known from before.
    __device__ __forceinline__ void forget()
    {
        tile += opaque(0);
        x = opaque(x);
    }

    template <int F, int DS, int DY, int DX>
    __device__ __forceinline__ real wide() const
    {
        if constexpr (S::STAGED) {
            return tile[F * VOLUME + DS * PLANE + DY * ROW + DX];
        } else if constexpr (INNER) {
            const real* const here = of_field(buffers.current, S::wide(F)) + whole(s * STRIDE_S + y * STRIDE_Y + x);
            return __ldg(here + (DS * STRIDE_S + DY * STRIDE_Y + DX));
        } else {
            const Source a = source_s(s + DS), b = source_y(y + DY), c = source_x(x + DX);
            if (a.constant) return a.value;
            if (b.constant) return b.value;
            if (c.constant) return c.value;
            return of_field(buffers.current, S::wide(F))[a.index * STRIDE_S + b.index * STRIDE_Y + c.index];
        }
    }
    template <int F>
    __device__ __forceinline__ real narrow() const { return __ldg(of_field(buffers.current, S::narrow(F)) + (s * STRIDE_S + y * STRIDE_Y + x)); }
    // The component so many behind a field.
    template <int FIRST>
    __device__ __forceinline__ real component(int number) const { return of_component<FIRST>(buffers.current, number)[s * STRIDE_S + y * STRIDE_Y + x]; }
    template <int FIRST>
    __device__ __forceinline__ void store(int number, real value) const
    {
        if (HAS_FIXED && (held_s(s) || held_y(y) || held_x(x))) value = component<FIRST>(number);
        of_component<FIRST>(buffers.next, number)[s * STRIDE_S + y * STRIDE_Y + x] = value;
    }
    template <int I>
    __device__ __forceinline__ real parameter() const { return parameter_of<I>(parameters, varying_of(parameters)); }
    template <int AXIS>
    __device__ __forceinline__ real coordinate() const { return real(AXIS == AXIS_S ? s : AXIS == AXIS_Y ? y : x); }
};

// Loads the tile with its halo, a row of cells by a row of threads. `INNER` says that no cell of tile or halo
// lies outside the domain.
template <class S, bool INNER>
__device__ __forceinline__ void load(real* tile, const Buffers& buffers, Offset s0, Offset y0, Offset x0)
{
    constexpr int RS = S::RADIUS_S, RY = S::RADIUS_Y, RX = S::RADIUS_X;
    constexpr int ROWS_Y = TILE_Y + 2 * RY, ROWS = (TILE_S + 2 * RS) * ROWS_Y, ROW = View<S>::ROW;
    constexpr int ACROSS = THREADS_X * TEAM;
    const int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    for (int row = ty; row < ROWS; row += THREADS / ACROSS) {
        const Offset s = s0 + row / ROWS_Y - RS, y = y0 + row % ROWS_Y - RY;
        const Source a = source_s(s), b = source_y(y);
        const Offset from = INNER ? s * STRIDE_S + y * STRIDE_Y : a.index * STRIDE_S + b.index * STRIDE_Y;
        for (int column = tx; column < ROW; column += ACROSS) {
            const Offset x = x0 + column - RX;
            #pragma unroll
            for (int f = 0; f < S::WIDE; ++f) {
                const real* field = of_field(buffers.current, S::wide(f));
                real value;
                if (INNER) {
                    value = field[from + x];
                } else {
                    const Source c = source_x(x);
                    value = a.constant ? a.value : b.constant ? b.value : c.constant ? c.value : field[from + c.index];
                }
                tile[f * View<S>::VOLUME + row * ROW + column] = value;
            }
        }
    }
}

// Computes and stores several cells of a thread together, or a cell by the threads of a team; where a kernel does so, it is
// defined behind this file.
template <class S>
__device__ __forceinline__ void stage_points(const Buffers& buffers, const Parameters& parameters, const real* row, Offset s, Offset y, Offset x0, int cx);
template <class S>
__device__ __forceinline__ void stage_team(const Buffers& buffers, const Parameters& parameters, const real* tile, Offset s0, Offset y0, Offset x0, int cs, int cy, int cx);

// Computes the cells of a tile. `INNER` says that no cell that they read lies outside the domain.
template <class S, bool INNER>
__device__ __forceinline__ void cells(const Buffers& buffers, const Parameters& parameters, const real* tile, Offset s0, Offset y0, Offset x0)
{
    constexpr int RS = S::RADIUS_S, RY = S::RADIUS_Y, RX = S::RADIUS_X;
    const int thread = threadIdx.x / TEAM;
    const int tx = thread % THREADS_X, ty = thread / THREADS_X % THREADS_Y, ts = thread / (THREADS_X * THREADS_Y);
    #pragma unroll BESIDE
    for (int ds = 0; ds < TILE_S; ds += THREADS_S) {
        #pragma unroll BESIDE
        for (int dy = 0; dy < TILE_Y; dy += THREADS_Y) {
            #pragma unroll BESIDE
            for (int dx = 0; dx < TILE_X; dx += POINTS * THREADS_X) {
                const int cs = ts + ds, cy = ty + dy, cx = tx + dx;
                if constexpr (TEAM > 1) {
                    stage_team<S>(buffers, parameters, tile, s0, y0, x0, cs, cy, cx);
                    continue;
                }
                const Offset s = s0 + cs, y = y0 + cy, x = x0 + cx;
                if (!INNER && (s >= EXTENT_S || y >= EXTENT_Y || x >= EXTENT_X)) continue;
                const real* row = tile + (cs + RS) * View<S>::PLANE + (cy + RY) * View<S>::ROW + RX;
                if constexpr (POINTS > 1) {
                    stage_points<S>(buffers, parameters, row, s, y, x0, cx);
                } else {
                    const View<S, INNER> view = {buffers, parameters, row + cx, s, y, x};
                    const Offset at = s * STRIDE_S + y * STRIDE_Y + x;
                    real value[S::VALUES];
                    S::compute(view, value);
                    if (HAS_FIXED && (held_s(s) || held_y(y) || held_x(x))) S::keep(view, value);
                    #pragma unroll
                    for (int o = 0; o < S::WRITES; ++o) of_field(buffers.next, S::writes(o))[at] = value[o];
                }
            }
        }
    }
}

template <class S>
__device__ __forceinline__ void stage(const Buffers& buffers, const Parameters& parameters)
{
    constexpr int RS = S::RADIUS_S, RY = S::RADIUS_Y, RX = S::RADIUS_X;
    //@begin
    const Offset s0 = Offset(block / (BLOCKS_Y * BLOCKS_X)) * TILE_S;
    const Offset y0 = Offset(block / BLOCKS_X % BLOCKS_Y) * TILE_Y;
    const Offset x0 = Offset(block % BLOCKS_X) * TILE_X;
    const bool inner = s0 >= RS && s0 + TILE_S + RS <= EXTENT_S && y0 >= RY && y0 + TILE_Y + RY <= EXTENT_Y &&
                       x0 >= RX && x0 + TILE_X + RX <= EXTENT_X;
    if constexpr (S::STAGED && S::WIDE > 0) {
        if (inner) load<S, true>(tile, buffers, s0, y0, x0);
        else load<S, false>(tile, buffers, s0, y0, x0);
        __syncthreads();
    }
    if constexpr (!S::STAGED && S::WIDE > 0 && TEAM == 1 && POINTS == 1) {
        if (inner) cells<S, true>(buffers, parameters, tile, s0, y0, x0);
        else cells<S, false>(buffers, parameters, tile, s0, y0, x0);
    } else {
        cells<S, false>(buffers, parameters, tile, s0, y0, x0);
    }
    //@end
}
