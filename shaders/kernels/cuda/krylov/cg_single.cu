// Conjugate gradients with one reduction (Chronopoulos and Gear 1989): one exchange and one reduction, two
// barriers, per iteration.

// Without a preconditioner (r, u) is (r, r): the first two of these sums are enough.
constexpr int PRODUCTS = PRECONDITIONER == NONE ? 2 : 3;

__device__ __forceinline__ void solve(Team& team, StopTest& stop_test)
{
    const bool resumed = stop_test.length > 0;
    Preconditioned m(team);
    Vector<X> x;
    Vector<R> r;
    Vector<W> w;
    Vector<P> p;
    Vector<S> s;
    Vector<U> u;                                     // unless M is diagonal: then u is made of r again
    team.bind(x, true);
    team.bind(r, resumed);
    team.bind(w, resumed);
    team.bind(p, resumed);
    team.bind(s, resumed);
    if constexpr (!POINTWISE) team.bind(u, resumed);
    const auto scaled = [&](int k, unsigned i) {
        if constexpr (POINTWISE) return m.pointwise(k, i, r.get(k, i));
        else return u.get(k, i);
    };
    // Computes w = A u, the sums of u and w, and the scalars that follow from them for the next direction.
    const double* const kept = stop_test.a.state->scalars;
    real gamma = real(kept[2]), delta = real(kept[3]);
    double residual, beta = kept[0], correction = kept[1], alpha = kept[4];
    const auto multiply = [&]() {
        if constexpr (!POINTWISE) m.apply(team, r, u);
        team.rows([&](int k, unsigned i) { team.publish(i, scaled(k, i)); });
        exchange(team);
        real sums[PRODUCTS];
        double made[4];
        product_and_sum<-1>(team, w, sums, made, [&](int k, unsigned i, real (&terms)[PRODUCTS]) {
            const real value = scaled(k, i), rest = r.get(k, i);
            terms[0] = rest * value;
            terms[1] = w.get(k, i) * value;
            if constexpr (PRODUCTS > 2) terms[2] = rest * rest;
        }, [&](const real (&s)[PRODUCTS], double (&to)[4]) {
            const real quotient = s[0] / gamma, product = quotient * s[0] / real(alpha);
            to[0] = sqrt(double(s[PRODUCTS > 2 ? 2 : 0]));
            to[1] = quotient;
            to[2] = product;
            to[3] = s[0] / (s[1] - product);
        }, team.counted());
        gamma = sums[0];
        delta = sums[1];
        residual = made[0];
        beta = made[1];
        correction = made[2];
        alpha = made[3];
    };
    if (!resumed) {
        true_residual(team, x, w, r);
        // All threads have read x before u takes its place.
        if constexpr (TURNS == 1) team.meet();
        team.rows([&](int k, unsigned i) {
            p.set(k, i, real(0));
            s.set(k, i, real(0));
        });
        gamma = real(1);
        alpha = 1;
        multiply();
        // There was no direction before.
        beta = correction = 0;
        alpha = gamma / delta;
        stop_test.converged(residual);
    }
    while (stop_test.goes_on()) {
        if (!stop_test.positive(OF_RHO, gamma) || !stop_test.positive(OF_FORM, delta)) break;
        if (delta - real(correction) <= real(0)) {
            // Near the attainable accuracy rounding does that, too: compute the product afresh and check it,
            // then start anew.
            team.rows([&](int k, unsigned i) {
                const real direction = scaled(k, i) + real(beta) * p.get(k, i);
                p.set(k, i, direction);
                team.publish(i, direction);
            });
            exchange(team);
            product<P>(team, s);
            real sums[1];
            team.sum(sums, [&](int k, unsigned i, real (&terms)[1]) { terms[0] = p.get(k, i) * s.get(k, i); });
            if (!stop_test.positive(OF_CURVATURE, sums[0])) break;
            beta = 0;
            alpha = gamma / delta;
        }
        const real step = real(alpha), before = real(beta);
        team.rows([&](int k, unsigned i) {
            const real direction = scaled(k, i) + before * p.get(k, i), image = w.get(k, i) + before * s.get(k, i);
            p.set(k, i, direction);
            s.set(k, i, image);
            x.set(k, i, x.get(k, i) + step * direction);
            r.set(k, i, r.get(k, i) - step * image);
        });
        stop_test.gained(step * gamma);
        multiply();
        stop_test.converged(residual);
    }
    team.leave(x);
    team.leave(r);
    team.leave(w);
    team.leave(p);
    team.leave(s);
    if constexpr (!POINTWISE) team.leave(u);
    const double true_square = checked(team, stop_test, x, w);
    const double scalars[SCALARS] = {beta, correction, gamma, delta, alpha, 0};
    stop_test.leave(scalars, true_square);
}
