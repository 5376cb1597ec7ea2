// The stopping tests, as the reference has them: every thread runs them on the same numbers.
struct StopTest {
    const Arguments& a;
    double least;
    real stretch, before;
    unsigned length, since;
    int status;

    __device__ __forceinline__ StopTest(const Arguments& arguments)
        : a(arguments), least(a.state->least), stretch(real(a.state->stretch)), before(real(a.state->before)),
          length(a.state->length), since(a.state->since), status(a.state->status) {}

    // Returns whether this is the one thread that writes for all threads that work on the system.
    static __device__ __forceinline__ bool tells() { return (BATCHED || own_block() == 0) && threadIdx.x == 0; }

    __device__ __forceinline__ bool goes_on() const { return status == RUNNING && length < a.until; }

    __device__ __forceinline__ void ends(int how, int what, double with)
    {
        status = how;
        if (!tells()) return;
        a.state->quantity = what;
        a.state->value = with;
    }

    // Records the residual of the current iterate; returns whether it is small enough.
    __device__ __forceinline__ bool converged(double residual)
    {
        const unsigned iteration = length++;
        if (tells()) a.history[iteration] = residual;
        if (!is_finite(residual)) ends(NOT_FINITE, OF_RESIDUAL, residual);
        else if (residual <= a.threshold) ends(CONVERGED, OF_RESIDUAL, residual);
        else {
            const bool over = stagnates(iteration, residual);
            if (iteration >= a.most) ends(ITERATIONS, OF_RESIDUAL, residual);
            else if (over) ends(STAGNATION, OF_RESIDUAL, residual);
        }
        return status == CONVERGED;
    }

    // Notes that an iteration has taken alpha rho off the square of the error's A-norm.
    __device__ __forceinline__ void gained(real energy) { stretch += energy; }

    // Returns whether there was no progress for too long.
    __device__ __forceinline__ bool stagnates(unsigned iteration, double residual)
    {
        if constexpr (BY_ENERGY) {
            if (iteration - since < a.stagnation) return false;
            const real whole = before + stretch;
            // A sum that overflows or underflows says nothing.
            const bool over = is_finite(whole) && stretch < real(LEAST_SHARE) * whole;
            since = iteration;
            stretch = real(0);
            before = whole;
            return over;
        } else {
            if (residual < least) {
                least = residual;
                since = iteration;
            }
            return a.stagnation != ~0u && iteration - since >= a.stagnation;
        }
    }

    // Lowers the last entry of the history to the true residual, which can meet the threshold before the
    // recurred one does.
    __device__ __forceinline__ void lower(double residual) const
    {
        if (tells() && residual < a.history[length - 1]) a.history[length - 1] = residual;
    }

    // Returns whether the true residual, given by its square, belies a recurred residual that is small
    // enough. The run then goes on from a new start at x, if an iteration is left and the last start was of
    // use.
    __device__ __forceinline__ bool lost(double true_square)
    {
        const double residual = sqrt(true_square);
        if (status != CONVERGED || !(residual > a.near) || !is_finite(residual)) return false;
        if (tells()) a.history[length - 1] = residual;
        if (length > a.most) ends(ITERATIONS, OF_RESIDUAL, residual);
        else if (residual > 0.5 * least) ends(STAGNATION, OF_TRUE_RESIDUAL, residual);
        else status = RUNNING;
        least = residual;
        return status == RUNNING;
    }

    // Returns whether a quantity is positive; the run ends where it is not.
    __device__ __forceinline__ bool positive(int what, real with)
    {
        if (!is_finite(with)) ends(NOT_FINITE, what, with);
        else if (!(with > real(0))) ends(NOT_POSITIVE, what, with);
        return status == RUNNING;
    }

    // Returns whether a quantity is finite and not 0; the run ends where it is not.
    __device__ __forceinline__ bool nonzero(int what, real with)
    {
        if (!is_finite(with)) ends(NOT_FINITE, what, with);
        else if (with == real(0)) ends(VANISHED, what, with);
        return status == RUNNING;
    }

    __device__ __forceinline__ void leave(const double (&scalars)[SCALARS], double true_square) const
    {
        if (!tells()) return;
        State& s = *a.state;
        s.least = least;
        s.true_square = true_square;
        s.stretch = stretch;
        s.before = before;
        s.length = length;
        s.since = since;
        s.status = status;
        for (int n = 0; n < SCALARS; ++n) s.scalars[n] = scalars[n];
    }

    template <class T>
    static __device__ __forceinline__ bool is_finite(T x) { return x - x == T(0); }
};
