// z = M^-1 r. Without a preconditioner and with the diagonal's, z is made row by row where it is needed; the
// other preconditioners are work of the whole block, or of all blocks.

// Preconditions the residual's value in row k of the thread, where M is diagonal.
struct Pointwise {
    Vector<INVERSE> inverse;

    // The inverse diagonal is loaded once per launch; the host has put it at its home.
    __device__ __forceinline__ Pointwise(const Team& team)
    {
        if constexpr (PRECONDITIONER == JACOBI) team.bind(inverse, true);
    }

    __device__ __forceinline__ real operator()(int k, unsigned i, real r) const
    {
        if constexpr (PRECONDITIONER == JACOBI) return inverse.get(k, i) * r;
        else return r;
    }
};

// The polynomial preconditioner: steps of Chebyshev iteration from 0 (Saad, Iterative Methods for Sparse
// Linear Systems, 2nd ed., section 12.3.2).
struct Polynomial {
    Vector<RESIDUE> residual;
    Vector<DIRECTION> direction;
    Vector<IMAGE> image;
    Vector<INVERSE> inverse;

    __device__ __forceinline__ Polynomial(const Team& team)
    {
        if constexpr (PRECONDITIONER == POLYNOMIAL) {
            team.bind(residual, false);
            team.bind(direction, false);
            team.bind(image, false);
            team.bind(inverse, true);
        }
    }

    template <class R, class Z>
    __device__ __forceinline__ void apply(Team& team, const R& r, Z& z)
    {
        const real first = real(team.a.factors[0]);
        team.rows([&](int k, unsigned i) {
            const real d = first * (inverse.get(k, i) * r.get(k, i));
            residual.set(k, i, r.get(k, i));
            direction.set(k, i, d);
            z.set(k, i, d);
            team.publish(i, d);
        });
        #pragma unroll 1
        for (int step = 0; step < DEGREE; ++step) {
            exchange(team);
            product<-1>(team, image);
            const real old = real(team.a.factors[1 + 2 * step]), fresh = real(team.a.factors[2 + 2 * step]);
            team.rows([&](int k, unsigned i) {
                const real rest = residual.get(k, i) - image.get(k, i);
                const real d = old * direction.get(k, i) + fresh * (inverse.get(k, i) * rest);
                residual.set(k, i, rest);
                direction.set(k, i, d);
                z.set(k, i, z.get(k, i) + d);
                if (step + 1 < DEGREE) team.publish(i, d);
            });
        }
    }
};

// Applies blocks of SIZE consecutive rows on the diagonal, inverted beforehand; no share cuts such a block.
template <class R, class Z>
__device__ __forceinline__ void apply_blocks(const Team& team, const R& r, Z& z)
{
    __syncthreads();                                 // r is made
    const unsigned own = team.own.rows;
    team.rows([&](int k, unsigned i) {
        const unsigned begin = i / SIZE * SIZE, n = own - begin < SIZE ? own - begin : SIZE;
        // Rows of SIZE values each, also in a short last block.
        const real* const row = team.a.inverse + (unsigned long long)(team.own.first + i) * SIZE;
        real sum = real(0);
        for (unsigned j = 0; j < n; ++j) sum = sum + load_stream(row + j) * r.at(begin + j);
        z.set(k, i, sum);
    });
    __syncthreads();                                 // before r changes
}

struct Preconditioned {
    Pointwise pointwise;
    Polynomial polynomial;

    __device__ __forceinline__ Preconditioned(const Team& team) : pointwise(team), polynomial(team) {}

    // Computes z = M^-1 r as vectors.
    template <class R, class Z>
    __device__ __forceinline__ void apply(Team& team, const R& r, Z& z)
    {
        if constexpr (POINTWISE) team.rows([&](int k, unsigned i) { z.set(k, i, pointwise(k, i, r.get(k, i))); });
        else if constexpr (PRECONDITIONER == POLYNOMIAL) polynomial.apply(team, r, z);
        else apply_blocks(team, r, z);
    }
};

// Computes r = b - A x, by way of y.
template <class VX, class Y, class R>
__device__ __forceinline__ void true_residual(Team& team, const VX& x, Y& y, R& r)
{
    team.rows([&](int k, unsigned i) { team.publish(i, x.get(k, i)); });
    exchange(team);
    product<-1>(team, y);
    const real* const b = team.a.b + team.own.first;
    team.rows([&](int k, unsigned i) { r.set(k, i, b[i] - y.get(k, i)); });
}

// Returns |b - A x|^2, where the run has converged; y is lost.
template <class VX, class Y>
__device__ __forceinline__ double checked(Team& team, const StopTest& stop_test, const VX& x, Y& y)
{
    if (stop_test.status != CONVERGED) return 0.0;
    true_residual(team, x, y, y);
    real square[1];
    team.sum(square, [&](int k, unsigned i, real (&terms)[1]) { terms[0] = y.get(k, i) * y.get(k, i); });
    return square[0];
}
