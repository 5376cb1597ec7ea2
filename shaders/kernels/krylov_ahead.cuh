// Memory would be idle while blocks wait for each other. Where the matrix is streamed from there, each wait brings a part of
// what the next product streams first into the last-level cache: AHEAD entries of each block.

constexpr int LINE = 128;                            // bytes

// All threads but those of the first warp, which may wait for others: ask for the lines of entries `from` to `to`.
template <class T>
__device__ __forceinline__ void ask_lines(const T* entries, unsigned from, unsigned to)
{
    constexpr unsigned EACH_LINE = LINE / sizeof(T);
    if (threadIdx.x < WARP) return;
    for (unsigned e = from + (threadIdx.x - WARP) * EACH_LINE; e < to; e += (THREADS - WARP) * EACH_LINE) ask_ahead(entries + e);
}
