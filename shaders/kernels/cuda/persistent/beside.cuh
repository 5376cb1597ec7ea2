// Which tiles lie beside which, for blocks that wait for their neighbours.

// Returns the number of the tile at side `side`, of 27, of the tile at (s, y, x), or -1 where there is none; side 13
// is the tile itself, and so may others be across a periodic side.
__device__ __forceinline__ int tile_beside(int s, int y, int x, int side)
{
    int at[3] = {s + side / 9 - 1, y + side / 3 % 3 - 1, x + side % 3 - 1};
    const int tiles[3] = {TILES_S, TILES_Y, TILES_X};
    const bool wraps[3] = {LOW_S == PERIODIC, LOW_Y == PERIODIC, LOW_X == PERIODIC};
    bool there = side < 27;
    #pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        if (wraps[axis]) at[axis] = (at[axis] + tiles[axis]) % tiles[axis];
        there = there && at[axis] >= 0 && at[axis] < tiles[axis];
    }
    return there ? (at[0] * TILES_Y + at[1]) * TILES_X + at[2] : -1;
}
