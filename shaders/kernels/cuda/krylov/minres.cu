// MINRES (Paige and Saunders 1975): one exchange and two reductions, three barriers, per iteration.

__device__ __forceinline__ void solve(Team& team, StopTest& stop_test)
{
    const bool resumed = stop_test.length > 0;
    Preconditioned m(team);
    Vector<X> x;
    Vector<R> r;
    Vector<P> v;                                     // Lanczos' vector, and the one before
    Vector<T> v_before;
    Vector<Q> q;                                     // A M^-1 v
    Vector<W> w;                                     // the direction, and the one before
    Vector<S> w_before;
    Vector<Z> z;                                     // M^-1 v, unless M is diagonal
    team.bind(x, true);
    team.bind(r, resumed);
    team.bind(v, resumed);
    team.bind(v_before, resumed);
    team.bind(q, false);
    team.bind(w, resumed);
    team.bind(w_before, resumed);
    if constexpr (!POINTWISE) team.bind(z, resumed);
    const auto scaled = [&](int k, unsigned i) {
        if constexpr (POINTWISE) return m.pointwise(k, i, v.get(k, i));
        else return z.get(k, i);
    };
    // (v, z), (r, v) and (v, v).
    const auto terms_of = [&](int k, unsigned i, real (&terms)[3]) {
        const real value = v.get(k, i);
        terms[0] = value * scaled(k, i);
        terms[1] = r.get(k, i) * value;
        terms[2] = value * value;
    };
    const double* const left = stop_test.a.state->scalars;
    real gamma = real(left[0]), gamma_before = real(left[1]), eta = real(left[2]), square = real(left[3]);
    real c = real(left[4]), s = real(left[5]), above = real(left[6]), beyond = real(left[7]);
    bool is_whole = true;                            // so far M is positive definite
    const auto is_positive = [&](real sum) {
        if (!(sum >= real(0)) || !StopTest::is_finite(sum)) is_whole = stop_test.positive(OF_RHO, sum);
        return is_whole;
    };
    if (!resumed) {
        true_residual(team, x, q, r);
        team.rows([&](int k, unsigned i) {
            v.set(k, i, r.get(k, i));
            v_before.set(k, i, real(0));
            w.set(k, i, real(0));
            w_before.set(k, i, real(0));
        });
        if constexpr (!POINTWISE) m.apply(team, v, z);
        real sums[3];
        double made[2];
        team.sum(sums, made, terms_of, [](const real (&sums)[3], double (&to)[2]) {
            to[0] = sqrt(double(sums[0]));
            to[1] = sqrt(double(sums[2]));
        });
        if (is_positive(sums[0])) {
            gamma = eta = above = real(made[0]);
            gamma_before = c = real(1);
            s = beyond = real(0);
            square = sums[2];
            stop_test.converged(made[1]);
        }
    }
    while (stop_test.goes_on()) {
        if (!stop_test.nonzero(OF_NEXT, gamma)) break;
        team.rows([&](int k, unsigned i) { team.publish(i, scaled(k, i)); });
        exchange(team);
        real form[1];
        double quotients[4];
        product_and_sum<-1>(team, q, form, quotients, [&](int k, unsigned i, real (&terms)[1]) {
            terms[0] = scaled(k, i) * q.get(k, i);
        }, [&](const real (&sums)[1], double (&to)[4]) {
            const real delta = sums[0] / (gamma * gamma);
            to[0] = delta;
            to[1] = real(1) / gamma;
            to[2] = delta / gamma;
            to[3] = gamma / gamma_before;
        }, team.counted());
        const real delta = real(quotients[0]), inverse = real(quotients[1]), old = real(quotients[2]), older = real(quotients[3]);
        const real diagonal = c * delta - s * above, beside = s * delta + c * above;
        const auto advance = [&](int k, unsigned i) {
            const real value = v.get(k, i), direction = w.get(k, i);
            w.set(k, i, (scaled(k, i) * inverse - beyond * w_before.get(k, i)) - beside * direction);
            w_before.set(k, i, direction);
            v.set(k, i, (q.get(k, i) * inverse - old * value) - older * v_before.get(k, i));
            v_before.set(k, i, value);
        };
        const auto derive = [&](const real (&sums)[3], double (&to)[4]) {
            const real squares = diagonal * diagonal + sums[0], one = real(1) / real(sqrt(double(squares)));
            const real gamma_next = real(sqrt(double(sums[0])));
            const real s_next = gamma_next * one, kept = s_next * s_next, taken = diagonal * one * eta * one;
            const real rest = (kept * kept * square - real(2) * kept * taken * sums[1]) + taken * taken * sums[2];
            to[0] = gamma_next;
            to[1] = one;
            to[2] = rest < real(0) ? real(0) : rest; // what rounding leaves of nothing
            to[3] = sqrt(to[2]);
        };
        real sums[3];
        double made[4];
        if constexpr (POINTWISE) {
            team.sum(sums, made, [&](int k, unsigned i, real (&terms)[3]) {
                advance(k, i);
                terms_of(k, i, terms);
            }, derive);
        } else {
            team.rows([&](int k, unsigned i) { advance(k, i); });
            m.apply(team, v, z);
            team.sum(sums, made, terms_of, derive);
        }
        if (!is_positive(sums[0]) || !stop_test.nonzero(OF_DETERMINANT, diagonal * diagonal + sums[0])) break;
        const real gamma_next = real(made[0]), one = real(made[1]);
        const real c_next = diagonal * one, s_next = gamma_next * one, length = c_next * eta;
        const real kept = s_next * s_next, taken = length * one;
        team.rows([&](int k, unsigned i) {
            const real direction = w.get(k, i) * one;
            w.set(k, i, direction);
            x.set(k, i, x.get(k, i) + length * direction);
            r.set(k, i, kept * r.get(k, i) - taken * v.get(k, i));
        });
        square = real(made[2]);
        above = c * gamma_next;
        beyond = s * gamma_next;
        c = c_next;
        s = s_next;
        gamma_before = gamma;
        gamma = gamma_next;
        eta = -(s_next * eta);
        stop_test.converged(made[3]);
    }
    team.leave(x);
    team.leave(r);
    team.leave(v);
    team.leave(v_before);
    team.leave(w);
    team.leave(w_before);
    if constexpr (!POINTWISE) team.leave(z);
    const double true_square = checked(team, stop_test, x, q);
    const double scalars[SCALARS] = {gamma, gamma_before, eta, square, c, s, above, beyond};
    stop_test.leave(scalars, true_square);
}
