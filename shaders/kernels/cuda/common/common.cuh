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
// Values that kernels of several steps note after each step (NOTES), and where they go.
struct Noted {
    // Of streaming kernels: the cells of each window, plane by plane, as indices along S, Y and X and COLUMN * FIELDS + FIELD.
    const int* cells;                    // [count][4]
    const int* firsts;                   // [TILES_Y * TILES_X + 1]: the first cell of a window
    // Of those whose tiles stay:
    const int* lines;                    // [FIELDS][EXTENT_S][EXTENT_Y]: which of the lines below it is, or -1
    const int* columns;                  // [lines][EXTENT_X]: the number of each cell's value, or -1
    real* values;                        // [steps][count], from the launch's first step
    int count;
};
template <bool VARY, bool NOTE> struct ParametersOf { real value[PARAMETER_VALUES]; };
template <> struct ParametersOf<true, false> { real value[PARAMETER_VALUES]; const real* varying; };
template <> struct ParametersOf<false, true> { real value[PARAMETER_VALUES]; Noted noted; };
template <> struct ParametersOf<true, true> { real value[PARAMETER_VALUES]; const real* varying; Noted noted; };
typedef ParametersOf<(VARYING > 0), NOTES> Parameters;
template <bool NOTE>
__device__ __forceinline__ const real* varying_of(const ParametersOf<false, NOTE>&) { return nullptr; }
template <bool NOTE>
__device__ __forceinline__ const real* varying_of(const ParametersOf<true, NOTE>& parameters) { return parameters.varying; }
template <bool VARY>
__device__ __forceinline__ Noted noted_of(const ParametersOf<VARY, false>&) { return {}; }
template <bool VARY>
__device__ __forceinline__ const Noted& noted_of(const ParametersOf<VARY, true>& parameters) { return parameters.noted; }

// Returns the line of field `f` at plane `s` and row `y` that has noted values, or -1.
__device__ __forceinline__ int noted_line(const Noted& noted, int f, Offset s, Offset y) { return __ldg(noted.lines + (f * EXTENT_S + s) * EXTENT_Y + y); }

// Notes the value of cell `x` of such a line, if it is one of those.
__device__ __forceinline__ void note_cell(const Noted& noted, real* row, int line, Offset x, real value)
{
    const int column = __ldg(noted.columns + line * EXTENT_X + x);
    if (column >= 0) row[column] = value;
}

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
