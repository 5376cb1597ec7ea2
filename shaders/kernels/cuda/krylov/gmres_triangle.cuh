// GMRES's least-squares problem: the Hessenberg matrix, made triangular by Givens rotations as it grows
// (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 6.5.3).
//
// Every block does the same with the same sums, in its own shared memory. Finished columns go to device
// memory, from where all blocks read them at the end of a cycle. The first block writes them, a barrier or
// more before they are read.

struct Triangle {
    const Arguments& a;

    enum Told { BELOW, NORM, EXACT, SINGULAR, TOLD };
    static constexpr unsigned COLUMNS = unsigned(RESTART) * (RESTART + 1) / 2;   // entries of all columns
    // Numbers that the next launch needs.
    static constexpr unsigned CARRIED = 4 * RESTART + 2;

    __device__ __forceinline__ Triangle(const Arguments& arguments) : a(arguments) {}

    __device__ __forceinline__ real* own() const { return shared_at<real>(TRIANGLE_AT); }
    __device__ __forceinline__ real* cosines() const { return own(); }                        // [RESTART]
    __device__ __forceinline__ real* sines() const { return own() + RESTART; }                // [RESTART]
    // [RESTART + 1]: the right-hand side.
    __device__ __forceinline__ real* rotated() const { return own() + 2 * RESTART; }
    // [RESTART + 1]: the newest.
    __device__ __forceinline__ real* column() const { return own() + 3 * RESTART + 1; }
    // [RESTART + 1]: of a projection.
    __device__ __forceinline__ real* products() const { return own() + CARRIED; }
    __device__ __forceinline__ real* minimiser() const { return products() + RESTART + 1; }   // [RESTART]
    // [TOLD]: one thread's results.
    __device__ __forceinline__ real* told() const { return minimiser() + RESTART; }

    // Column j in device memory: j + 1 entries.
    __device__ __forceinline__ real* finished(unsigned j) const { return a.triangle + j * (j + 1) / 2; }

    // Begins a cycle from a residual of this norm.
    __device__ __forceinline__ void restart(real norm) const
    {
        if (threadIdx.x == 0) rotated()[0] = norm;
    }

    // All threads: the first projections begin column j.
    __device__ __forceinline__ void begin(unsigned j) const
    {
        for (unsigned k = threadIdx.x; k <= j; k += THREADS) column()[k] = products()[k];
    }

    // One warp: ends column j with the second projections. The norm of the rest of w follows from them by
    // Pythagoras (Smoktunowicz, Barlow and Langou, Numer. Math. 105 (2006), 299-313), because the first pass
    // has left little to take away. Where half of the square would be cancelled, the norm is to be summed and
    // the column rotated after that.
    __device__ __forceinline__ void end(unsigned j) const
    {
        const unsigned lane = threadIdx.x % 32;
        real squares = real(0);
        for (unsigned k = lane; k <= j; k += 32) {
            const real again = products()[k];
            column()[k] += again;
            squares += again * again;
        }
        const real taken = join_warp<SUM>(squares), square = products()[j + 1];
        __syncwarp();                                // the column is whole
        if (lane != 0) return;
        const bool exact = taken <= real(0.5) * square;
        told()[EXACT] = exact ? real(1) : real(0);
        if (exact) rotate(j, sqrt(square - taken));
    }

    // One thread: applies the old rotations to column j, and a new one that takes away the entry below the
    // diagonal. The rest of the right-hand side is the residual's norm.
    __device__ __forceinline__ void rotate(unsigned j, real below) const
    {
        real* const h = column();
        real upper = h[0];
        #pragma unroll 4
        for (unsigned i = 0; i < j; ++i) {
            const real lower = h[i + 1], c = cosines()[i], s = sines()[i];
            h[i] = c * upper + s * lower;
            upper = c * lower - s * upper;
        }
        // Scaled by the larger of the two, which keeps the squares in range.
        const real diagonal = upper, scale = fabs(diagonal) > fabs(below) ? fabs(diagonal) : fabs(below);
        real c = real(1), s = real(0);
        if (scale != real(0)) {
            const real d = diagonal / scale, e = below / scale, root = sqrt(d * d + e * e);
            c = d / root;
            s = e / root;
        }
        h[j] = c * diagonal + s * below;
        cosines()[j] = c;
        sines()[j] = s;
        const real before = rotated()[j];
        rotated()[j + 1] = -(s * before);
        rotated()[j] = c * before;
        told()[BELOW] = below;
        told()[NORM] = fabs(s * before);
    }

    // All threads: copy the newest column to where all blocks will read it.
    __device__ __forceinline__ void keep(unsigned j) const
    {
        if (own_block() != 0) return;
        for (unsigned k = threadIdx.x; k <= j; k += THREADS) finished(j)[k] = column()[k];
    }

    // All threads: compute the minimiser of the first `count` columns, of which all but the newest are read
    // from device memory. Returns whether there is a minimiser.
    __device__ __forceinline__ bool minimise(unsigned count) const
    {
        if (threadIdx.x < 32) {
            const unsigned lane = threadIdx.x;
            real* const y = minimiser();
            bool singular = false;
            for (unsigned k = lane; k < count; k += 32) y[k] = rotated()[k];
            __syncwarp();
            #pragma unroll 1
            for (unsigned i = count; i-- > 0;) {
                const auto entry = [&](unsigned k) { return i + 1 == count ? column()[k] : __ldcg(finished(i) + k); };
                const real diagonal = entry(i);
                singular = singular || diagonal == real(0);
                const real value = y[i] / diagonal;
                for (unsigned k = lane; k < i; k += 32) y[k] -= entry(k) * value;
                __syncwarp();                        // all have read y[i]
                if (lane == 0) y[i] = value;
            }
            if (lane == 0) told()[SINGULAR] = singular ? real(1) : real(0);
        }
        __syncthreads();
        return told()[SINGULAR] == real(0);
    }

    // Between launches the numbers in shared memory wait after the columns.
    __device__ __forceinline__ void leave() const
    {
        __syncthreads();                             // a cycle may just have begun
        if (own_block() != 0) return;
        for (unsigned n = threadIdx.x; n < CARRIED; n += THREADS) a.triangle[COLUMNS + n] = own()[n];
    }

    __device__ __forceinline__ void bring() const
    {
        for (unsigned n = threadIdx.x; n < CARRIED; n += THREADS) own()[n] = a.triangle[COLUMNS + n];
        __syncthreads();
    }
};
