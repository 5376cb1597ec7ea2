// GMRES(m), preconditioned from the right (Saad and Schultz 1986). Vectors are made orthogonal by classical
// Gram-Schmidt done twice (Giraud, Langou and Rozloznik, Comput. Math. Appl. 50 (2005), 1069-1075), each time
// with one reduction however long the basis: an exchange and two reductions, three barriers, per iteration,
// and two more per cycle.

__device__ __forceinline__ void solve(Team& team, StopTest& stop_test)
{
    const bool resumed = stop_test.length > 0;
    Preconditioned m(team);
    const Basis basis(team);
    const Triangle triangle(stop_test.a);
    Vector<X> x;                                     // changes at a cycle's end
    Vector<W> w;                                     // the newest vector of the basis, then the next
    Vector<Z> z;                                     // M^-1 w, unless M is diagonal
    team.bind(x, true);
    team.bind(w, false);
    if constexpr (!POINTWISE) team.bind(z, false);
    const auto scaled = [&](int k, unsigned i) {
        if constexpr (POINTWISE) return m.pointwise(k, i, w.get(k, i));
        else return z.get(k, i);
    };
    const auto norm_of_w = [&](double& square) {
        real sums[1];
        double root[1];
        const auto terms_of = [&](int k, unsigned i, real (&terms)[1]) { terms[0] = w.get(k, i) * w.get(k, i); };
        team.sum(sums, root, terms_of, [](const real (&s)[1], double (&to)[1]) { to[0] = sqrt(double(s[0])); });
        square = sums[0];
        return real(root[0]);
    };
    // x += M^-1 V y, by way of w.
    const auto correct = [&](unsigned count) {
        team.rows([&](int k, unsigned i) { w.set(k, i, real(0)); });
        basis.add<1>(team, w, triangle.minimiser(), count);
        if constexpr (!POINTWISE) m.apply(team, w, z);
        team.rows([&](int k, unsigned i) { x.set(k, i, x.get(k, i) + scaled(k, i)); });
    };
    real norm = real(stop_test.a.state->scalars[0]);    // of the residual at the cycle's beginning
    unsigned steps = unsigned(stop_test.a.state->scalars[1]);           // iterations of the cycle
    double true_square = 0;
    const auto begin = [&](real of) {
        norm = of;
        steps = 0;
        triangle.restart(of);
        basis.append(team, 0, w, of);
    };
    if (resumed) {
        triangle.bring();
        team.rows([&](int k, unsigned i) {
            w.set(k, i, basis.at(steps)[i]);
            if (steps > 0) x.set(k, i, basis.at(RESTART)[i]);
        });
    } else {
        true_residual(team, x, w, w);
        const real first = norm_of_w(true_square);
        stop_test.converged(first);
        if (stop_test.status == RUNNING) begin(first);
    }
    while (stop_test.goes_on()) {
        const unsigned j = steps;
        if constexpr (!POINTWISE) m.apply(team, w, z);
        team.rows([&](int k, unsigned i) { team.publish(i, scaled(k, i)); });
        exchange(team);
        product<-1>(team, w);
        basis.project(team, w, j + 1, 0, triangle.products());
        triangle.begin(j);
        basis.add<-1>(team, w, triangle.products(), j + 1);
        basis.project(team, w, j + 1, 1, triangle.products());
        // One warp goes on with the column, the other warps with their rows.
        if (threadIdx.x < 32) triangle.end(j);
        __syncwarp();
        basis.add<-1>(team, w, triangle.products(), j + 1);
        __syncthreads();
        if (triangle.told()[Triangle::EXACT] == real(0)) {
            double square;
            const real below = norm_of_w(square);
            if (threadIdx.x == 0) triangle.rotate(j, below);
            __syncthreads();
        }
        const real below = triangle.told()[Triangle::BELOW];
        if (!StopTest::is_finite(below)) {
            stop_test.ends(NOT_FINITE, OF_BASIS, below);
            break;
        }
        triangle.keep(j);
        const bool met = stop_test.converged(triangle.told()[Triangle::NORM]);
        ++steps;
        if (stop_test.status == RUNNING && below != real(0) && steps < RESTART) {
            basis.append(team, steps, w, below);
            continue;
        }
        // The end of a cycle, after a limit too: x becomes the best iterate of the cycle so far.
        if (!triangle.minimise(steps)) {
            stop_test.ends(VANISHED, OF_DETERMINANT, 0);
            break;
        }
        correct(steps);
        if (stop_test.status != RUNNING && !met) break;
        true_residual(team, x, w, w);
        const real fresh = norm_of_w(true_square);
        // The true residual decides. It can meet the threshold before the recurred residual does. Where the
        // basis was not quite orthogonal, the recurred residual met it too early, and another cycle refines
        // x.
        if (!StopTest::is_finite(fresh)) stop_test.ends(NOT_FINITE, OF_TRUE_RESIDUAL, fresh);
        else if (fresh <= (met ? stop_test.a.near : stop_test.a.threshold)) {
            stop_test.lower(fresh);
            stop_test.ends(CONVERGED, OF_RESIDUAL, fresh);
        } else if (below == real(0) && !met) stop_test.ends(VANISHED, OF_NEXT, 0);
        else if (fresh >= norm) stop_test.ends(STAGNATION, OF_RESIDUAL, fresh);
        else if (stop_test.length > stop_test.a.most) stop_test.ends(ITERATIONS, OF_RESIDUAL, fresh);
        else {
            stop_test.status = RUNNING;
            begin(fresh);
        }
    }
    if (stop_test.status == RUNNING && steps > 0) {
        // Within a cycle the host receives the iterate so far; the x with which the cycle began waits beside
        // the basis.
        team.rows([&](int k, unsigned i) { basis.at(RESTART)[i] = x.get(k, i); });
        if (triangle.minimise(steps)) correct(steps);
    }
    triangle.leave();
    team.leave(x);
    const double scalars[SCALARS] = {norm, double(steps), 0, 0, 0, 0};
    stop_test.leave(scalars, stop_test.status == CONVERGED ? true_square : 0.0);
}
