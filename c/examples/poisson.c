/* Poisson's equation on a square: the matrix in compressed rows, conjugate gradients, and the residual computed apart.
 *
 *     cc poisson.c $(pkg-config --cflags --libs abide) -lm
 */

#include <math.h>
#include <string.h>

#include "check.h"

#define N 60
#define ROWS (N * N)

static int32_t offsets[ROWS + 1], columns[5 * ROWS];
static double values[5 * ROWS], b[ROWS], x[ROWS];

/* Fills the rows of -u[j-1,i] - u[j,i-1] + 4 u[j,i] - u[j,i+1] - u[j+1,i], with 0 beyond the sides. */
static void assemble(void) {
    const int dj[5] = {-1, 0, 0, 0, 1}, di[5] = {0, -1, 0, 1, 0};
    int32_t entries = 0;
    for (int row = 0; row < ROWS; row++) {
        offsets[row] = entries;
        for (int tap = 0; tap < 5; tap++) {
            const int j = row / N + dj[tap], i = row % N + di[tap];
            if (j < 0 || j >= N || i < 0 || i >= N)
                continue;
            columns[entries] = j * N + i;
            values[entries++] = tap == 2 ? 4 : -1;
        }
    }
    offsets[ROWS] = entries;
}

static double residual(void) {
    double sum = 0;
    for (int row = 0; row < ROWS; row++) {
        double r = b[row];
        for (int32_t entry = offsets[row]; entry < offsets[row + 1]; entry++)
            r -= values[entry] * x[columns[entry]];
        sum += r * r;
    }
    return sqrt(sum);
}

static abide_view vector(double *data) {
    abide_view view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.dtype = ABIDE_F64;
    view.axes = 1;
    view.extents[0] = ROWS;
    view.strides[0] = 1;
    return view;
}

int main(void) {
    assemble();
    for (int row = 0; row < ROWS; row++)
        b[row] = 1;
    abide_csr matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.rows = matrix.columns = ROWS;
    matrix.offsets = offsets;
    matrix.indices = columns;
    matrix.index_bytes = sizeof offsets[0];
    matrix.values = values;
    matrix.dtype = ABIDE_F64;

    abide_options *options;
    abide_system *system;
    CHECK(abide_options_new(&options));
    CHECK(abide_options_set(options, "method", "cg"));
    CHECK(abide_options_set(options, "preconditioner", "jacobi"));
    CHECK(abide_options_set(options, "tolerance", "1e-10"));
    CHECK(abide_options_set(options, "backend", "cpu"));
    CHECK(abide_system_new(&matrix, options, &system));

    abide_view right = vector(b), solution = vector(x);
    abide_solve_report report;
    CHECK(abide_system_solve(system, &right, &solution, &report));
    const double own = residual();
    printf("%d iterations, |b - A x| / |b| = %.1e\n", (int)report.iterations, own / report.norm);
    abide_system_free(system);

    /* A limit that comes first is a status of its own; the iterate is there. */
    CHECK(abide_options_set(options, "max-iterations", "3"));
    CHECK(abide_system_new(&matrix, options, &system));
    memset(x, 0, sizeof x);
    const abide_status limited = abide_system_solve(system, &right, &solution, &report);
    printf("%s\n", abide_last_error());
    abide_system_free(system);
    abide_options_free(options);
    return !(own < 1.1e-10 * report.norm && limited == ABIDE_NOT_CONVERGED && report.iterations == 3 && x[0] != 0);
}
