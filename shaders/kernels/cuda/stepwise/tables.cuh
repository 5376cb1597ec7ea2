// Tables of formulas in shared memory, before a tile. Each block loads them once and goes over tiles `LAUNCHED` apart.

constexpr unsigned TILES = unsigned((EXTENT_S + TILE_S - 1) / TILE_S * ((EXTENT_Y + TILE_Y - 1) / TILE_Y) * ((EXTENT_X + TILE_X - 1) / TILE_X));

__device__ __forceinline__ real* shared_values()
{
    DYNAMIC_SHARED;
    return reinterpret_cast<real*>(shared);
}

template <int COUNT>
__device__ __forceinline__ void load_table(real* to, const real* from)
{
    for (int i = threadIdx.x; i < COUNT; i += THREADS_S * THREADS_Y * THREADS_X * TEAM) to[i] = from[i];
}
