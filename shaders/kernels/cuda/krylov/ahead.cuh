// Memory would be idle while blocks wait for each other. Where the matrix is streamed from there, each wait brings a part of
// what the next product streams first into the last-level cache: AHEAD entries of each block.

constexpr int LINE = 128;                            // bytes

// Entries of a block that pass through its product in their order.
struct Stream {
    const real* values;
    const Column* columns;
    unsigned next, end;                              // entries that were not asked for

    // All threads but those of the first warp, which may wait for others: ask for the next part.
    __device__ __forceinline__ void ask()
    {
        const unsigned from = next, to = from + AHEAD < end ? from + AHEAD : end;
        if (threadIdx.x >= WARP) {
            lines(values, from, to);
            lines(columns, from, to);
        }
        next = to;
    }

    template <class T>
    static __device__ __forceinline__ void lines(const T* of, unsigned from, unsigned to)
    {
        constexpr unsigned EACH_LINE = LINE / sizeof(T);
        for (unsigned e = from + (threadIdx.x - WARP) * EACH_LINE; e < to; e += (THREADS - WARP) * EACH_LINE) prefetch(of + e);
    }
};
