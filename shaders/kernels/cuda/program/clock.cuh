// A clock on the device: one thread makes the scalars from one reduction of fields to the next, and what each stage between
// them reads.
//
// The generated text above names the type of the fields and counts the values; that below has a function per formula and a
// kernel per stretch of steps between two reductions.

// Addresses, in the order of the host's.
struct Clock {
    double* values;      // of all parameters of the stages, of which the first are scalars
    real* table;         // of what varies, a row for each stage of each step
    double* exact;       // the scalars as a reduction has them, ...
    real* rounded;       // ... and as its formulas read them
    double* reduced;     // where the value goes that the last reduction made
};

// The values in registers, as formulas in a type read them.
template <class Number>
struct View {
    const double* values;

    template <int I>
    __device__ __forceinline__ Number parameter() const { return Number(values[I]); }
};

template <class Number>
struct Values {
    double values[VALUES];

    __device__ __forceinline__ explicit Values(const Clock& clock)
    {
        #pragma unroll
        for (int i = 0; i < VALUES; ++i) values[i] = clock.values[i];
    }

    // Takes over the scalar that a reduction has made.
    __device__ __forceinline__ void take(const Clock& clock, int scalar)
    {
        values[scalar] = clock.exact[scalar];
        *clock.reduced = values[scalar];
    }

    // Gives the next stretch and the next reduction what they begin with.
    __device__ __forceinline__ void give(const Clock& clock) const
    {
        #pragma unroll
        for (int i = 0; i < VALUES; ++i) clock.values[i] = values[i];
        #pragma unroll
        for (int i = 0; i < SCALARS; ++i) {
            clock.rounded[i] = real(values[i]);
            clock.exact[i] = values[i];
        }
    }

    template <int I>
    __device__ __forceinline__ Number parameter() const { return Number(values[I]); }
    __device__ __forceinline__ View<double> exact() const { return {values}; }
};
