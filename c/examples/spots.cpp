// Spots of the Gray–Scott model grow on a plane, from values of the caller's.
//
//     c++ -std=c++17 spots.cpp $(pkg-config --cflags --libs abide)

#include <iostream>

#include "abide.hpp"

int main() {
    const int64_t n = 64;
    std::vector<double> u(n * n, 1.0), v(n * n, 0.0);
    for (int64_t j = 28; j < 36; j++)
        for (int64_t i = 28; i < 36; i++)
            v[j * n + i] = 0.5;
    try {
        const abide::options options{{"dtype", "f64"}, {"backend", "cpu"}, {"param", "kill=0.064"}};
        const auto model = abide::model::named("gray-scott");
        abide::simulation spots(model, options, {{"u", abide::view(u.data(), {n, n})}, {"v", abide::view(v.data(), {n, n})}});
        const abide_report report = spots.run(500);
        // The plane with x and y the other way round: the strides say so. The start is symmetric, and so is the result.
        std::vector<double> turned(n * n);
        spots.read("v", abide::view(v.data(), {n, n}));
        spots.read("v", abide::view(turned.data(), {n, n}, {1, n}));
        std::cout << report.steps << " steps on " << spots.text(ABIDE_TEXT_BACKEND) << ", v in the middle " << v[32 * n + 32] << "\n";
        if (turned[3 * n + 30] != v[30 * n + 3])
            return 1;

        double b[2] = {1, 2}, x[2] = {0, 0};
        const int32_t offsets[] = {0, 2, 4}, columns[] = {0, 1, 0, 1};
        const double values[] = {4, 1, 1, 3};
        const abide_csr matrix = {2, 2, offsets, columns, 4, 0, values, ABIDE_F64};
        abide::system system(matrix, {{"method", "cg"}, {"backend", "cpu"}});
        if (system.solve(abide::view(b, {2}), abide::view(x, {2})).converged != 1)
            return 1;

        double t[1] = {300}, p[1] = {1e5}, fractions[2] = {0.79, 0.21}, density[1];
        abide::gas air("N2,O2", {{"backend", "cpu"}});
        air.properties("rho", abide::view(t, {1}), abide::view(p, {1}), abide::view(fractions, {2, 1}), abide::view(density, {1, 1}));
        std::cout << density[0] << " kg/m³ of air\n";
        abide::model::named("gray-scot");
    } catch (const abide::error &failure) {
        std::cout << failure.what() << "\n";
        return failure.status() == ABIDE_USAGE ? 0 : 1;
    }
    return 1;
}
