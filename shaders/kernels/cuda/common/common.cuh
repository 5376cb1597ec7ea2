// The place where a neighbour's value is found once the boundary has been asked, for all kernels. The
// generated text above numbers the boundary kinds, says which cell a ghost cell shows (`below`, `above`), and
// names the axes S (swept, the slowest there is), Y and X (across, X the fastest).

struct Source {
    Offset index;    // along the axis
    bool constant;   // the cell is beyond a side that holds a value ...
    real value;      // ... this one
};

// `i` is at most one extent outside 0..n.
template <int LOW, int HIGH>
__device__ __forceinline__ Source source(Offset i, Offset n, real low, real high)
{
    Source s = {i, false, real(0)};
    if (i < 0) {
        if (LOW == CONSTANT) { s.constant = true; s.value = low; }
        s.index = below(LOW, i, n);
    } else if (i >= n) {
        if (HIGH == CONSTANT) { s.constant = true; s.value = high; }
        s.index = above(HIGH, i, n);
    }
    // Far outside a thin domain only cells that are never used are asked for, so any cell will do. In this order: ptxas
    // 12.8 and 13.0 for sm_90 take max(min(i, LAST), 0) == LAST for true at other i, where the index itself is used, too.
    s.index = min(max(s.index, Offset(0)), n - 1);
    return s;
}

__device__ __forceinline__ Source source_s(Offset i) { return source<LOW_S, HIGH_S>(i, EXTENT_S, LOW_VALUE_S, HIGH_VALUE_S); }
__device__ __forceinline__ Source source_y(Offset i) { return source<LOW_Y, HIGH_Y>(i, EXTENT_Y, LOW_VALUE_Y, HIGH_VALUE_Y); }
__device__ __forceinline__ Source source_x(Offset i) { return source<LOW_X, HIGH_X>(i, EXTENT_X, LOW_VALUE_X, HIGH_VALUE_X); }

// Returns whether a cell keeps its initial value: one of the outermost `FIX` cells of an axis on a side that
// is fixed.
__device__ __forceinline__ bool held_s(Offset i) { return (LOW_S == FIXED && i < FIX_S) || (HIGH_S == FIXED && i >= EXTENT_S - FIX_S); }
__device__ __forceinline__ bool held_y(Offset i) { return (LOW_Y == FIXED && i < FIX_Y) || (HIGH_Y == FIXED && i >= EXTENT_Y - FIX_Y); }
__device__ __forceinline__ bool held_x(Offset i) { return (LOW_X == FIXED && i < FIX_X) || (HIGH_X == FIXED && i >= EXTENT_X - FIX_X); }

// Model parameters, in the kernel's arguments, so that a formula reads them from the constant bank. Those that vary from
// stage to stage are read from device memory: VARYING of each stage of each step that the launch does, in order.
constexpr int PARAMETER_VALUES = PARAMETERS > 0 ? PARAMETERS : 1;
template <bool VARY> struct ParametersOf { real value[PARAMETER_VALUES]; };
template <> struct ParametersOf<true> { real value[PARAMETER_VALUES]; const real* varying; };
typedef ParametersOf<(VARYING > 0)> Parameters;
__device__ __forceinline__ const real* varying_of(const ParametersOf<false>&) { return nullptr; }
__device__ __forceinline__ const real* varying_of(const ParametersOf<true>& parameters) { return parameters.varying; }

// Returns parameter I in a stage whose varying ones begin at `varying`.
template <int I>
__device__ __forceinline__ real parameter_of(const Parameters& parameters, const real* varying)
{
    if constexpr (place_of_varying(I) >= 0) return __ldg(varying + place_of_varying(I));
    else return parameters.value[I];
}

template <int I> struct Index { static constexpr int value = I; };

// Calls f(Index<0>), f(Index<1>), … f(Index<N-1>): a loop whose counter is a constant, so that it can index
// registers.
template <int N, int I = 0, class F>
__device__ __forceinline__ void each(const F& f)
{
    if constexpr (I < N) { f(Index<I>{}); each<N, I + 1>(f); }
}
