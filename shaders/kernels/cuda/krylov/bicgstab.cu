// BiCGStab, preconditioned from the right (van der Vorst 1992): two exchanges and three reductions, five
// barriers, per iteration.

__device__ __forceinline__ void solve(Team& team, StopTest& stop_test)
{
    const bool resumed = stop_test.length > 0;
    Preconditioned m(team);
    Vector<X> x;
    Vector<R> r;                                     // and s
    Vector<SHADOW> shadow;
    Vector<P> p;
    Vector<V> v;                                     // A M^-1 p
    Vector<T> t;                                     // A M^-1 s
    Vector<P_HAT> p_hat;                             // M^-1 p and M^-1 s, unless M is diagonal
    Vector<S_HAT> s_hat;
    team.bind(x, true);
    team.bind(r, resumed);
    team.bind(shadow, resumed);
    team.bind(p, resumed);
    team.bind(v, resumed);
    team.bind(t, false);
    if constexpr (!POINTWISE) {
        team.bind(p_hat, false);
        team.bind(s_hat, false);
    }
    const auto scaled_p = [&](int k, unsigned i) {
        if constexpr (POINTWISE) return m.pointwise(k, i, p.get(k, i));
        else return p_hat.get(k, i);
    };
    const auto scaled_s = [&](int k, unsigned i) {
        if constexpr (POINTWISE) return m.pointwise(k, i, r.get(k, i));
        else return s_hat.get(k, i);
    };
    real rho = real(stop_test.a.state->scalars[0]);
    if (!resumed) {
        true_residual(team, x, v, r);
        real sums[1];
        double norm[1];
        team.sum(sums, norm, [&](int k, unsigned i, real (&terms)[1]) {
            const real value = r.get(k, i);
            shadow.set(k, i, value);
            p.set(k, i, value);
            terms[0] = value * value;
        }, [](const real (&s)[1], double (&to)[1]) { to[0] = sqrt(double(s[0])); });
        rho = sums[0];
        stop_test.converged(norm[0]);
    }
    while (stop_test.goes_on()) {
        if (!stop_test.nonzero(OF_SHADOW, rho)) break;
        if constexpr (!POINTWISE) m.apply(team, p, p_hat);
        team.rows([&](int k, unsigned i) { team.publish(i, scaled_p(k, i)); });
        exchange(team);
        real shadow_v[1];
        double quotient[1];
        product_and_sum<-1>(team, v, shadow_v, quotient, [&](int k, unsigned i, real (&terms)[1]) {
            terms[0] = shadow.get(k, i) * v.get(k, i);
        }, [&](const real (&s)[1], double (&to)[1]) { to[0] = rho / s[0]; }, team.counted());
        if (!stop_test.nonzero(OF_SHADOW_PRODUCT, shadow_v[0])) break;
        const real alpha = real(quotient[0]);
        team.rows([&](int k, unsigned i) { r.set(k, i, r.get(k, i) - alpha * v.get(k, i)); });
        if constexpr (!POINTWISE) m.apply(team, r, s_hat);
        team.rows([&](int k, unsigned i) { team.publish(i, scaled_s(k, i)); });
        exchange(team);
        real half[3];
        double made[2];
        product_and_sum<-1>(team, t, half, made, [&](int k, unsigned i, real (&terms)[3]) {
            const real image = t.get(k, i), value = r.get(k, i);
            terms[0] = image * value;
            terms[1] = image * image;
            terms[2] = value * value;
        }, [](const real (&s)[3], double (&to)[2]) {
            to[0] = sqrt(double(s[2]));
            to[1] = s[0] / s[1];
        }, team.counted());
        if (made[0] <= stop_test.a.threshold) {
            // Half an iteration is enough.
            team.rows([&](int k, unsigned i) { x.set(k, i, x.get(k, i) + alpha * scaled_p(k, i)); });
            stop_test.converged(made[0]);
            break;
        }
        if (!stop_test.nonzero(OF_SQUARE, half[1])) break;
        const real omega = real(made[1]);
        real sums[2];
        team.sum(sums, made, [&](int k, unsigned i, real (&terms)[2]) {
            x.set(k, i, x.get(k, i) + (alpha * scaled_p(k, i) + omega * scaled_s(k, i)));
            const real value = r.get(k, i) - omega * t.get(k, i);
            r.set(k, i, value);
            terms[0] = shadow.get(k, i) * value;
            terms[1] = value * value;
        }, [&](const real (&s)[2], double (&to)[2]) {
            to[0] = sqrt(double(s[1]));
            to[1] = s[0] / rho * (alpha / omega);
        });
        stop_test.converged(made[0]);
        if (stop_test.status != RUNNING || !stop_test.nonzero(OF_OMEGA, omega)) break;
        const real beta = real(made[1]);
        rho = sums[0];
        team.rows([&](int k, unsigned i) { p.set(k, i, r.get(k, i) + beta * (p.get(k, i) - omega * v.get(k, i))); });
    }
    team.leave(x);
    team.leave(r);
    team.leave(shadow);
    team.leave(p);
    team.leave(v);
    const double true_square = checked(team, stop_test, x, t);
    const double scalars[SCALARS] = {rho, 0, 0, 0, 0, 0};
    stop_test.leave(scalars, true_square);
}
