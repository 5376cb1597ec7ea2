// A stage that transforms lines of values along an axis: tiles of a product of two matrices, of which one is the operator's and the
// other one the values. Each result is a chain of fused multiply-adds over the line in ascending order, from 0. The tensor cores' products
// of f64 are such chains.
//
// `S` says the axis, the values of a line (COUNT), the rows of its matrix (at MATRIX, PITCH values apart, zeros behind the line's end)
// and a tile: LEFT rows by RIGHT columns, which lie beside each other in memory. Along the fastest axis rows are lines, and columns
// the results of each; else rows are the results of a line, and columns are lines. A value before the transform lies at `source`.

// The operands of a tile of OF_TILE products of each result: rows of the left one, and of the right one rows or columns.
template <class S>
struct __align__(16) Operands {
    static constexpr bool LINES_LEFT = S::AXIS == 2;
    static constexpr int PITCH = OF_TILE + PADDING;
    real left[S::LEFT][PITCH];
    real right[LINES_LEFT ? S::RIGHT : OF_TILE][LINES_LEFT ? PITCH : S::RIGHT + PADDING];

    __device__ __forceinline__ real& of_right(int k, int column)
    {
        if constexpr (LINES_LEFT) return right[column][k];
        else return right[k][column];
    }
};

// Where lines and results lie.
template <class S>
struct Lines {
    typedef typename S::Computed Box;
    static constexpr Offset Z = Box::END_Z - Box::LOW_Z, Y = Box::END_Y - Box::LOW_Y, X = Box::END_X - Box::LOW_X;
    static constexpr Offset BESIDE = S::AXIS == 2 ? Y : X;          // lines of one row or plane
    static constexpr Offset COUNT = Z * Y * X / S::COUNT;

    // Returns the place of a value of a line.
    __device__ static __forceinline__ Inside place(const Arguments& arguments, Offset line, Offset i)
    {
        const Offset slow = line / BESIDE, fast = line % BESIDE;
        if constexpr (S::AXIS == 2) return {{arguments, Box::LOW_Z + slow, Box::LOW_Y + fast, Box::LOW_X + i}};
        else if constexpr (S::AXIS == 1) return {{arguments, Box::LOW_Z + slow, Box::LOW_Y + i, Box::LOW_X + fast}};
        else return {{arguments, Box::LOW_Z + i, Box::LOW_Y + slow, Box::LOW_X + fast}};
    }
};

constexpr bool TENSOR = HAS_PRODUCTS && sizeof(real) == 8;

// Neighbours in shared memory that are loaded at once.
template <int N>
struct __align__(N * sizeof(real)) Neighbours {
    real value[N];
};

template <int N>
__device__ __forceinline__ Neighbours<N> neighbours(const real* from) { return *reinterpret_cast<const Neighbours<N>*>(from); }

// The results of a thread: of tensor cores, two neighbours of each 8 by 8 of a warp, which has a fourth of the tile; else some
// neighbours of each 8 by 16 of them.
template <class S>
struct Results {
    static constexpr bool LINES_LEFT = Operands<S>::LINES_LEFT;
    static constexpr int ROWS = TENSOR ? S::LEFT / 16 : S::LEFT / 8, COLUMNS = S::RIGHT / 16, EACH = TENSOR ? 2 : 1;
    static constexpr int WIDE = 16 / sizeof(real), ACROSS = LINES_LEFT ? 1 : WIDE < COLUMNS ? WIDE : COLUMNS;
    real sum[ROWS][COLUMNS][EACH];

    // Returns the row and the first column of results.
    __device__ static __forceinline__ int row(int i)
    {
        const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
        return TENSOR ? warp / 2 * (S::LEFT / 2) + i * 8 + lane / 4 : threadIdx.x / 16 + i * 8;
    }
    __device__ static __forceinline__ int column(int j)
    {
        const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
        return TENSOR ? warp % 2 * (S::RIGHT / 2) + j * 8 + lane % 4 * 2 : j / ACROSS * 16 * ACROSS + threadIdx.x % 16 * ACROSS + j % ACROSS;
    }

    __device__ __forceinline__ void add(Operands<S>& operands)
    {
        if constexpr (TENSOR) add_by_warp(operands);
        else add_alone(operands);
    }

    __device__ __forceinline__ void add_by_warp(Operands<S>& operands)
    {
        const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, beside = warp % 2 * (S::RIGHT / 2) + lane / 4;
        #pragma unroll
        for (int first = 0; first < OF_TILE; first += 4) {
            const int k = first + lane % 4;
            real left[ROWS / 2][2], right[COLUMNS];
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) left[i / 2][i % 2] = operands.left[row(i)][k];
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j) right[j] = operands.of_right(k, beside + j * 8);
            if constexpr (TENSOR) {
                #pragma unroll
                for (int i = 0; i < ROWS; i += 2) {
                    #pragma unroll
                    for (int j = 0; j < COLUMNS; ++j) add_products(sum[i][j], sum[i + 1][j], left[i / 2], right[j]);
                }
            }
        }
    }

    __device__ __forceinline__ void add_alone(Operands<S>& operands)
    {
        #pragma unroll
        for (int first = 0; first < OF_TILE; first += WIDE) {
            Neighbours<WIDE> left[ROWS], right[COLUMNS];
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) left[i] = neighbours<WIDE>(&operands.left[row(i)][first]);
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                if constexpr (LINES_LEFT) right[j] = neighbours<WIDE>(&operands.of_right(first, column(j)));
            }
            #pragma unroll
            for (int k = 0; k < WIDE; ++k) {
                #pragma unroll
                for (int j = 0; j < COLUMNS; j += ACROSS) {
                    Neighbours<ACROSS> beside;
                    if constexpr (LINES_LEFT) beside.value[0] = right[j].value[k];
                    else beside = neighbours<ACROSS>(&operands.of_right(first + k, column(j)));
                    #pragma unroll
                    for (int i = 0; i < ROWS; ++i) {
                        #pragma unroll
                        for (int a = 0; a < ACROSS; ++a) sum[i][j + a][0] = fma(left[i].value[k], beside.value[a], sum[i][j + a][0]);
                    }
                }
            }
        }
    }
};

// Copies operands to shared memory, which go on while others are multiplied.
template <class S>
struct Operand {
    static constexpr bool LINES_LEFT = Operands<S>::LINES_LEFT;
    static constexpr int WIDE = 16 / sizeof(real);

    const Arguments& arguments;
    Offset lines, results;

    // Copies WIDTH neighbours, zeros where nothing is.
    template <int WIDTH>
    __device__ static __forceinline__ void copy(real* to, bool asked, const real* from)
    {
        copy_async_if<WIDTH * sizeof(real)>(asked, to, from);
        if (!asked) *reinterpret_cast<Neighbours<WIDTH>*>(to) = {};
    }

    __device__ __forceinline__ void weights(Operands<S>& to, Offset first) const
    {
        constexpr int OF_ROW = OF_TILE / WIDE, ALONG = OF_TEAM / OF_ROW, ROWS = LINES_LEFT ? S::RIGHT : S::LEFT;
        const int row = threadIdx.x / OF_ROW, k = threadIdx.x % OF_ROW * WIDE;
        #pragma unroll
        for (int i = 0; i < ROWS; i += ALONG) {
            if (ROWS % ALONG != 0 && row + i >= ROWS) break;
            const Offset result = results + row + i;
            real* const own = LINES_LEFT ? &to.of_right(k, row + i) : &to.left[row + i][k];
            copy<WIDE>(own, result < S::COUNT, arguments.matrices + (S::MATRIX + result * S::PITCH + first + k));
        }
    }

    // Copies values of lines, WIDTH neighbours at a time: of a line, or of as many lines.
    template <int WIDTH>
    __device__ __forceinline__ void values(Operands<S>& to, Offset first) const
    {
        constexpr int OF_ROW = (LINES_LEFT ? OF_TILE : S::RIGHT) / WIDTH, ALONG = OF_TEAM / OF_ROW, ROWS = LINES_LEFT ? S::LEFT : OF_TILE;
        const int row = threadIdx.x / OF_ROW, beside = threadIdx.x % OF_ROW * WIDTH;
        #pragma unroll
        for (int i = 0; i < ROWS; i += ALONG) {
            if (ROWS % ALONG != 0 && row + i >= ROWS) break;
            const Offset line = lines + (LINES_LEFT ? row + i : beside), k = first + (LINES_LEFT ? beside : row + i);
            real* const own = LINES_LEFT ? &to.left[row + i][beside] : &to.of_right(row + i, beside);
            copy<WIDTH>(own, line < Lines<S>::COUNT && k < S::COUNT, S::source(Lines<S>::place(arguments, line, k)));
        }
    }

    __device__ __forceinline__ void copy_all(Operands<S>& to, Offset first) const
    {
        weights(to, first);
        values<S::WHOLE ? WIDE : 1>(to, first);
        copies_end();
    }
};

// Computes a tile of results. Tiles of the same lines follow each other, so that they find them in the cache.
template <class S>
__device__ __forceinline__ void transform(const Arguments& arguments, unsigned tile)
{
    constexpr bool LINES_LEFT = Operands<S>::LINES_LEFT;
    constexpr unsigned OF_LINE = LINES_LEFT ? (S::COUNT + S::RIGHT - 1) / S::RIGHT : (S::COUNT + S::LEFT - 1) / S::LEFT;
    constexpr int AHEAD = S::BUFFERS - 1;
    static_assert(sizeof(Operands<S>) == S::BYTES, "the host asks for as much");
    DYNAMIC_SHARED;
    Operands<S>* const all = reinterpret_cast<Operands<S>*>(shared);
    const Operand<S> operand = {arguments, Offset(tile / OF_LINE) * (LINES_LEFT ? S::LEFT : S::RIGHT), Offset(tile % OF_LINE) * (LINES_LEFT ? S::RIGHT : S::LEFT)};
    #pragma unroll 1
    for (int turn = 0; turn < AHEAD; ++turn) {
        if (turn * OF_TILE < S::COUNT) operand.copy_all(all[turn], turn * OF_TILE);
        else copies_end();
    }
    Results<S> own = {};
    int now = 0, next = AHEAD;
    #pragma unroll 1
    for (int k = 0; k < S::COUNT; k += OF_TILE) {
        copies_wait<AHEAD - 1>();
        __syncthreads();
        if (k + AHEAD * OF_TILE < S::COUNT) operand.copy_all(all[next], k + AHEAD * OF_TILE);
        else copies_end();
        own.add(all[now]);
        now = now == AHEAD ? 0 : now + 1;
        next = next == AHEAD ? 0 : next + 1;
    }
    #pragma unroll
    for (int i = 0; i < Results<S>::ROWS; ++i) {
        #pragma unroll
        for (int j = 0; j < Results<S>::COLUMNS; ++j) {
            #pragma unroll
            for (int e = 0; e < Results<S>::EACH; ++e) {
                const Offset row = Results<S>::row(i), column = Results<S>::column(j) + e;
                const Offset line = operand.lines + (LINES_LEFT ? row : column), result = operand.results + (LINES_LEFT ? column : row);
                if (line < Lines<S>::COUNT && result < S::COUNT) S::store(Lines<S>::place(arguments, line, result), own.sum[i][j][e]);
            }
        }
    }
}
