// Conjugate gradients (Hestenes and Stiefel 1952): two reductions and one exchange, three barriers, per
// iteration; two, or one that is a slab's alone, where others' directions are made where they are read (RECOMPUTED).

// Without a preconditioner (r, z) is (r, r), and one sum is enough.
constexpr int SQUARES = PRECONDITIONER == NONE ? 1 : 2;

__device__ __forceinline__ void solve(Team& team, StopTest& stop_test)
{
    const bool resumed = stop_test.length > 0;
    Preconditioned m(team);
    Vector<X> x;
    Vector<R> r;
    Vector<P> p;
    Vector<Q> q;
    Vector<Z> z;                                     // unless M is diagonal
    team.bind(x, true);
    team.bind(r, resumed);
    team.bind(p, resumed);
    team.bind(q, false);
    if constexpr (!POINTWISE) team.bind(z, resumed);
    real rz = real(stop_test.a.state->scalars[0]);
    if (!resumed) {
        true_residual(team, x, q, r);
        if constexpr (!POINTWISE) m.apply(team, r, z);
        real sums[SQUARES];
        double norm[1];
        team.sum(sums, norm, [&](int k, unsigned i, real (&terms)[SQUARES]) {
            const real value = r.get(k, i);
            real scaled;
            if constexpr (POINTWISE) scaled = m.pointwise(k, i, value);
            else scaled = z.get(k, i);
            p.set(k, i, scaled);
            terms[SQUARES - 1] = value * value;
            if constexpr (SQUARES > 1) terms[0] = value * scaled;
        }, [](const real (&s)[SQUARES], double (&to)[1]) { to[0] = sqrt(double(s[SQUARES - 1])); });
        rz = sums[0];
        stop_test.converged(norm[0]);
    }
    real beta = real(0);
    bool is_first = true;                            // of the launch
    while (stop_test.goes_on()) {
        if (!stop_test.positive(OF_RHO, rz)) break;
        if constexpr (RECOMPUTED != NOTHING) {
            if (is_first) begin_remaking(team, p);
            else go_on_remaking(team, p, beta);
            is_first = false;
        } else {
            team.rows([&](int k, unsigned i) { team.publish(i, p.get(k, i)); });
            exchange(team);
        }
        real pq[1];
        double quotient[1];
        const auto term = [&](int k, unsigned i, real (&terms)[1]) { terms[0] = p.get(k, i) * q.get(k, i); };
        const auto divide = [&](const real (&s)[1], double (&to)[1]) { to[0] = rz / s[0]; };
        // What blocks have stored for others they have told before: p at the exchange, or z with the residual's sum.
        if constexpr (RECOMPUTED == OF_BLOCKS) multiply_and_sum(team, Recomputed(team), q, pq, quotient, term, divide, team.alone());
        else product_and_sum<P>(team, q, pq, quotient, term, divide, team.alone());
        if (!stop_test.positive(OF_CURVATURE, pq[0])) break;
        const real alpha = real(quotient[0]);
        const auto advance = [&](int k, unsigned i) {
            const real value = r.get(k, i) - alpha * q.get(k, i);
            x.set(k, i, x.get(k, i) + alpha * p.get(k, i));
            r.set(k, i, value);
            return value;
        };
        const auto derive = [&](const real (&s)[SQUARES], double (&to)[2]) {
            to[0] = sqrt(double(s[SQUARES - 1]));
            to[1] = s[0] / rz;
        };
        real sums[SQUARES];
        double made[2];
        if constexpr (POINTWISE) {
            team.sum(sums, made, [&](int k, unsigned i, real (&terms)[SQUARES]) {
                const real value = advance(k, i), scaled = m.pointwise(k, i, value);
                terms[SQUARES - 1] = value * value;
                if constexpr (SQUARES > 1) terms[0] = value * scaled;
                publish_residual(team, i, scaled);
            }, derive);
        } else {
            team.rows([&](int k, unsigned i) { advance(k, i); });
            m.apply(team, r, z);
            team.sum(sums, made, [&](int k, unsigned i, real (&terms)[SQUARES]) {
                terms[0] = r.get(k, i) * z.get(k, i);
                terms[1] = r.get(k, i) * r.get(k, i);
                publish_residual(team, i, z.get(k, i));
            }, derive);
        }
        stop_test.gained(alpha * rz);
        stop_test.converged(made[0]);
        beta = real(made[1]);
        rz = sums[0];
        team.rows([&](int k, unsigned i) {
            real scaled;
            if constexpr (POINTWISE) scaled = m.pointwise(k, i, r.get(k, i));
            else scaled = z.get(k, i);
            p.set(k, i, scaled + beta * p.get(k, i));
        });
    }
    team.leave(x);
    team.leave(r);
    team.leave(p);
    if constexpr (!POINTWISE) team.leave(z);
    const double true_square = checked(team, stop_test, x, q);
    const double scalars[SCALARS] = {rz, 0, 0, 0, 0, 0};
    stop_test.leave(scalars, true_square);
}
