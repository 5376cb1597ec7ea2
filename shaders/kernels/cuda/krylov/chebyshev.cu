// Chebyshev iteration (Saad, 2nd ed., algorithm 12.1): per iteration an exchange, and a reduction for the
// stopping test alone, two barriers.

__device__ __forceinline__ void solve(Team& team, StopTest& stop_test)
{
    const bool resumed = stop_test.length > 0;
    Preconditioned m(team);
    Vector<X> x;
    Vector<R> r;
    Vector<P> d;
    Vector<Q> q;                                     // A d
    Vector<Z> z;                                     // M^-1 r, unless M is diagonal
    team.bind(x, true);
    team.bind(r, resumed);
    team.bind(d, resumed);
    team.bind(q, false);
    if constexpr (!POINTWISE) team.bind(z, false);
    const double centre = stop_test.a.centre, half = stop_test.a.half;
    double rho = stop_test.a.state->scalars[0], old = stop_test.a.state->scalars[1], fresh = stop_test.a.state->scalars[2];
    const auto test = [&]() {
        real sums[1];
        double norm[1];
        const auto square = [&](int k, unsigned i, real (&terms)[1]) { terms[0] = r.get(k, i) * r.get(k, i); };
        team.sum(sums, norm, square, [](const real (&s)[1], double (&to)[1]) { to[0] = sqrt(double(s[0])); });
        stop_test.converged(norm[0]);
    };
    if (!resumed) {
        true_residual(team, x, q, r);
        team.rows([&](int k, unsigned i) { d.set(k, i, real(0)); });
        rho = half / centre;
        old = 0;
        fresh = 1 / centre;
        test();
    }
    while (stop_test.goes_on()) {
        if constexpr (!POINTWISE) m.apply(team, r, z);
        const real before = real(old), now = real(fresh);
        team.rows([&](int k, unsigned i) {
            real scaled;
            if constexpr (POINTWISE) scaled = m.pointwise(k, i, r.get(k, i));
            else scaled = z.get(k, i);
            const real direction = before * d.get(k, i) + now * scaled;
            d.set(k, i, direction);
            x.set(k, i, x.get(k, i) + direction);
            team.publish(i, direction);
        });
        exchange(team);
        product<P>(team, q);
        team.rows([&](int k, unsigned i) { r.set(k, i, r.get(k, i) - q.get(k, i)); });
        test();
        // rho / half has a limit where the interval is a point; 1 / half has none.
        const double over_half = 1 / (2 * centre - half * rho), next = half * over_half;
        old = next * rho;
        fresh = 2 * over_half;
        rho = next;
    }
    team.leave(x);
    team.leave(r);
    team.leave(d);
    const double true_square = checked(team, stop_test, x, q);
    const double scalars[SCALARS] = {rho, old, fresh, 0, 0, 0};
    stop_test.leave(scalars, true_square);
}
