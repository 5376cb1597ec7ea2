// STENCIL: a row is a cell, and A one step of a linear stencil on the grid, never stored. Taps are summed in
// their order: the first product plain, every later one fused onto the sum.

template <class X>
__device__ __forceinline__ real stencil_row(const X& x, unsigned row)
{
    const Offset cell = row;
    const Offset s = cell / STRIDE_S, y = cell % STRIDE_S / STRIDE_Y, c = cell % STRIDE_Y;
    if (held_s(s) || held_y(y) || held_x(c)) return x[cell];
    real sum = real(0);
    if (s >= FIX_S && s < EXTENT_S - FIX_S && y >= FIX_Y && y < EXTENT_Y - FIX_Y && c >= FIX_X && c < EXTENT_X - FIX_X) {
        #pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            const real value = x[cell + TAP_S[t] * STRIDE_S + TAP_Y[t] * STRIDE_Y + TAP_X[t]];
            sum = t == 0 ? WEIGHT[t] * value : fma(WEIGHT[t], value, sum);
        }
        return sum;
    }
    #pragma unroll 1
    for (int t = 0; t < TAPS; ++t) {
        const Source from_s = source_s(s + TAP_S[t]), from_y = source_y(y + TAP_Y[t]), from_x = source_x(c + TAP_X[t]);
        // The value beyond a side that holds a constant is 0.
        const bool beyond = from_s.constant || from_y.constant || from_x.constant;
        const real value = beyond ? real(0) : x[from_s.index * STRIDE_S + from_y.index * STRIDE_Y + from_x.index];
        sum = t == 0 ? WEIGHT[t] * value : fma(WEIGHT[t], value, sum);
    }
    return sum;
}
