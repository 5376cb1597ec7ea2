// The end of a step: a row of the record, whether the run ends or halts there, and the count of the steps.
//
// The generated text below has the struct `End`: the columns of a row, how often one is due, and what is
// tested.

// A column: the value at a place of a slot's buffer, or a scalar.
struct Column {
    int slot;    // −1 for a scalar
    Offset at;   // the value's place, or the scalar's number
    enum { REAL, FLOAT, HALF, BFLOAT } stored;

    template <class Stored>
    __device__ __forceinline__ const Stored* place(const Arguments& arguments) const { return reinterpret_cast<const Stored*>(arguments.values[slot]) + at; }

    __device__ __forceinline__ double value(const Arguments& arguments) const
    {
        return slot < 0 ? arguments.exact[at]
             : stored == FLOAT ? *place<float>(arguments)
             : stored == HALF ? value_of(*place<Half>(arguments))
             : stored == BFLOAT ? value_of(*place<Bfloat>(arguments))
             : *place<real>(arguments);
    }
};

// A run ends where its condition holds, and where the scalar is not a number.
constexpr unsigned long long ENDED = 1, AT_MARK = 2;

template <class E>
__device__ __forceinline__ void end_of_step(const Arguments& arguments)
{
    Progress& progress = *arguments.progress;
    if (progress.stopped) return;
    bool is_due = false;
    if constexpr (E::COLUMNS > 0) {
        is_due = progress.until_due == 1;
        double* const row = arguments.rows + progress.rows * E::COLUMNS;
        if (is_due) {
            for (int i = threadIdx.x; i < E::COLUMNS; i += E::THREADS) row[i] = E::column(i).value(arguments);
        }
        // All threads have read the progress before one changes it.
        __syncthreads();
    }
    if (threadIdx.x > 0) return;
    progress.rows += is_due;
    progress.until_due = is_due ? E::EVERY : progress.until_due - 1;
    progress.stopped = E::stopped(arguments);
    ++progress.steps;
}
