// Pipelined conjugate gradients with residual replacement (Ghysels and Vanroose 2014): the exchange and the
// reduction share their barrier, one per iteration.

// Without a preconditioner (r, u) is (r, r): the first two of these sums are enough.
constexpr int PRODUCTS = PRECONDITIONER == NONE ? 2 : 3;

__device__ __forceinline__ void solve(Team& team, StopTest& stop_test)
{
    const bool resumed = stop_test.length > 0;
    Preconditioned m(team);
    Vector<X> x;
    Vector<R> r;
    Vector<W> w;                                     // A u
    Vector<P> p;
    Vector<S> s;                                     // A p
    Vector<Z> z;                                     // A q
    Vector<N> n;                                     // A m
    Vector<U> u;                                     // M^-1 r; u, q, mw are made when needed if M is diagonal
    Vector<Q> q;                                     // M^-1 s
    Vector<M> mw;                                    // M^-1 w
    team.bind(x, true);
    team.bind(r, resumed);
    team.bind(w, resumed);
    team.bind(p, resumed);
    team.bind(s, resumed);
    team.bind(z, resumed);
    team.bind(n, false);
    if constexpr (!POINTWISE) {
        team.bind(u, resumed);
        team.bind(q, resumed);
        team.bind(mw, false);
    }
    const auto scaled_r = [&](int k, unsigned i) {
        if constexpr (POINTWISE) return m.pointwise(k, i, r.get(k, i));
        else return u.get(k, i);
    };
    // y = A v for a vector that is made row by row.
    const auto multiply = [&](const auto& v, auto& y) {
        team.rows([&](int k, unsigned i) { team.publish(i, v(k, i)); });
        exchange(team);
        product<-1>(team, y);
    };
    // r, u and w from x.
    const auto renew = [&]() {
        true_residual(team, x, n, r);
        if constexpr (!POINTWISE) m.apply(team, r, u);
        multiply(scaled_r, w);
    };
    real gamma, delta;
    double residual, beta, curvature, alpha;
    const double* const kept = stop_test.a.state->scalars;
    real last_gamma = real(kept[0]), last_alpha = real(kept[1]);
    unsigned iteration = unsigned(kept[2]);
    // r, u and w are computed, not recurred, and there is no direction before.
    bool fresh = kept[3] != 0;
    // Publishes m = M^-1 w beside the sums.
    const auto reduce = [&]() {
        if constexpr (!POINTWISE) m.apply(team, w, mw);
        real sums[PRODUCTS];
        team.leave_terms<PRODUCTS>(team.scratch(), [&](int k, unsigned i, real (&terms)[PRODUCTS]) {
            if constexpr (POINTWISE) team.publish(i, m.pointwise(k, i, w.get(k, i)));
            else team.publish(i, mw.get(k, i));
            const real value = scaled_r(k, i), rest = r.get(k, i);
            terms[0] = rest * value;
            terms[1] = w.get(k, i) * value;
            if constexpr (PRODUCTS > 2) terms[2] = rest * rest;
        });
        if constexpr (SPREAD > 0) leave_pieces(team);
        double made[4];
        team.join(sums, made, [&](const real (&s)[PRODUCTS], double (&to)[4]) {
            const real quotient = fresh ? real(0) : s[0] / last_gamma;
            const real rest = s[1] - quotient * s[0] / last_alpha;
            to[0] = sqrt(double(s[PRODUCTS > 2 ? 2 : 0]));
            to[1] = quotient;
            to[2] = rest;
            to[3] = s[0] / rest;
        }, team.counted());
        gamma = sums[0];
        delta = sums[1];
        residual = made[0];
        beta = made[1];
        curvature = made[2];
        alpha = made[3];
    };
    double true_square = 0;
    if (!resumed) {
        team.rows([&](int k, unsigned i) {
            p.set(k, i, real(0));
            s.set(k, i, real(0));
            z.set(k, i, real(0));
            if constexpr (!POINTWISE) q.set(k, i, real(0));
        });
        last_gamma = last_alpha = real(1);
        iteration = 0;
        fresh = true;
    }
    // Before the sums r, u and w may be renewed from x, and s, q and z replaced from p; after them the residual may be tested. Each
    // of these stands here once, because copies of all their products would take minutes to compile. A launch that continues a
    // run computes the same sums again, and publishes m with them.
    bool renewed = !resumed, replaced = false, tested = !resumed;
    #pragma unroll 1
    while (true) {
        if (renewed) renew();
        if (replaced) {
            multiply([&](int k, unsigned i) { return p.get(k, i); }, s);
            if constexpr (!POINTWISE) m.apply(team, s, q);
            multiply([&](int k, unsigned i) {
                if constexpr (POINTWISE) return m.pointwise(k, i, s.get(k, i));
                else return q.get(k, i);
            }, z);
        }
        reduce();
        // Where the recurred residual is small enough, the true residual decides; recurrences that no longer follow the true
        // residual start anew from x.
        if (tested && stop_test.converged(residual)) {
            true_square = checked(team, stop_test, x, n);
            if (stop_test.lost(true_square)) {
                renewed = fresh = true;
                replaced = tested = false;
                continue;
            }
        }
        if (!stop_test.goes_on()) break;
        renewed = replaced = false;
        tested = true;
        product<-1>(team, n);
        const real before = real(beta), step = real(alpha);
        if (!fresh && (gamma <= real(0) || delta <= real(0) || curvature <= 0)) {
            // The failure may be rounding: compute the product afresh and check it, then start anew.
            team.rows([&](int k, unsigned i) { p.set(k, i, scaled_r(k, i) + before * p.get(k, i)); });
            multiply([&](int k, unsigned i) { return p.get(k, i); }, n);
            real sums[1];
            team.sum(sums, [&](int k, unsigned i, real (&terms)[1]) { terms[0] = p.get(k, i) * n.get(k, i); });
            if (!stop_test.positive(OF_CURVATURE, sums[0])) break;
            renewed = fresh = true;
            continue;
        }
        if (!stop_test.positive(OF_RHO, gamma) || !stop_test.positive(OF_CURVATURE, real(curvature))) break;
        fresh = false;
        team.rows([&](int k, unsigned i) {
            const real direction = scaled_r(k, i) + before * p.get(k, i);
            const real image = w.get(k, i) + before * s.get(k, i), second = n.get(k, i) + before * z.get(k, i);
            if constexpr (!POINTWISE) {
                const real scaled = mw.get(k, i) + before * q.get(k, i);
                q.set(k, i, scaled);
                u.set(k, i, u.get(k, i) - step * scaled);
            }
            p.set(k, i, direction);
            s.set(k, i, image);
            z.set(k, i, second);
            x.set(k, i, x.get(k, i) + step * direction);
            r.set(k, i, r.get(k, i) - step * image);
            w.set(k, i, w.get(k, i) - step * second);
        });
        stop_test.gained(step * gamma);
        last_gamma = gamma;
        last_alpha = step;
        if (++iteration == stop_test.a.replacement) {
            iteration = 0;
            renewed = replaced = true;
        }
    }
    team.leave(x);
    team.leave(r);
    team.leave(w);
    team.leave(p);
    team.leave(s);
    team.leave(z);
    if constexpr (!POINTWISE) {
        team.leave(u);
        team.leave(q);
    }
    const double scalars[SCALARS] = {last_gamma, last_alpha, double(iteration), fresh ? 1.0 : 0.0, 0, 0};
    stop_test.leave(scalars, stop_test.status == CONVERGED ? true_square : 0.0);
}
