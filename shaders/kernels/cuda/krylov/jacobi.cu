// Jacobi's method, damped (Saad, 2nd ed., section 4.1): per iteration an exchange, and a reduction for the
// stopping test alone, two barriers.

__device__ __forceinline__ void solve(Team& team, StopTest& stop_test)
{
    const bool resumed = stop_test.length > 0;
    Preconditioned m(team);
    Vector<X> x;
    Vector<R> r;
    Vector<Q> q;                                     // A x
    Vector<Z> z;                                     // M^-1 r, unless M is diagonal
    team.bind(x, true);
    team.bind(r, resumed);
    team.bind(q, false);
    if constexpr (!POINTWISE) team.bind(z, false);
    const real weight = real(stop_test.a.weight);
    const auto test = [&]() {
        true_residual(team, x, q, r);
        real sums[1];
        double norm[1];
        const auto square = [&](int k, unsigned i, real (&terms)[1]) { terms[0] = r.get(k, i) * r.get(k, i); };
        team.sum(sums, norm, square, [](const real (&s)[1], double (&to)[1]) { to[0] = sqrt(double(s[0])); });
        stop_test.converged(norm[0]);
    };
    if (!resumed) test();
    while (stop_test.goes_on()) {
        if constexpr (!POINTWISE) m.apply(team, r, z);
        team.rows([&](int k, unsigned i) {
            real scaled;
            if constexpr (POINTWISE) scaled = m.pointwise(k, i, r.get(k, i));
            else scaled = z.get(k, i);
            x.set(k, i, x.get(k, i) + weight * scaled);
        });
        test();
    }
    team.leave(x);
    team.leave(r);
    const double true_square = checked(team, stop_test, x, q);
    const double scalars[SCALARS] = {0, 0, 0, 0, 0, 0};
    stop_test.leave(scalars, true_square);
}
