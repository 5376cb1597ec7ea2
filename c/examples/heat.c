/* Heat on a periodic plate, by a formula in text: a wave decays by the same factor in each step, which is known exactly.
 *
 *     cc heat.c $(pkg-config --cflags --libs abide) -lm
 */

#include <math.h>
#include <string.h>

#include "check.h"

#define NY 48
#define NX 64
#define FRINGE 2

static const char *const MODEL =
    "axes = 2\n"
    "boundary = \"periodic\"\n"
    "[fields]\n"
    "u = \"given\"\n"
    "[parameters]\n"
    "k = 0.2\n"
    "[[stages]]\n"
    "u = \"u + k*(u[-1,0] + u[0,-1] + u[0,1] + u[1,0] - 4*u)\"\n";

/* Two variables on a block with fringes, as a flow code has them; the second is the temperature. */
static double q[2][NY + 2 * FRINGE][NX + 2 * FRINGE];

static double wave(int j, int i) {
    const double turn = 2 * acos(-1.0);
    return cos(turn * j / NY) * cos(turn * i / NX);
}

static int32_t ends(void *user, uint64_t step, double seconds) {
    (void)seconds;
    *(uint64_t *)user = step;
    return step >= 300;
}

int main(void) {
    if (abide_interface() != ABIDE_INTERFACE) {
        fprintf(stderr, "the library is of another interface than abide.h\n");
        return 1;
    }
    for (int j = 0; j < NY; j++)
        for (int i = 0; i < NX; i++)
            q[1][j + FRINGE][i + FRINGE] = wave(j, i);

    abide_block block;
    memset(&block, 0, sizeof block);
    block.data = q;
    block.dtype = ABIDE_F64;
    block.order = ABIDE_VARIABLE_SLOWEST;
    block.axes = 2;
    block.variables = 2;
    block.cells[0] = NX;
    block.cells[1] = NY;
    block.fringes[0] = block.fringes[1] = FRINGE;
    abide_input start;
    start.field = "u";
    CHECK(abide_block_view(&block, 1, 0, &start.values));

    abide_model *model;
    abide_options *options;
    abide_simulation *plate;
    CHECK(abide_model_text(MODEL, "heat", &model));
    CHECK(abide_options_new(&options));
    CHECK(abide_options_set(options, "dtype", "f64"));
    CHECK(abide_options_set(options, "backend", "cpu"));
    CHECK(abide_options_set(options, "param", "k=0.1"));
    CHECK(abide_simulation_new(model, options, &start, 1, &plate));
    abide_options_free(options);
    abide_model_free(model);

    /* The observer ends the run, and a run of its own steps goes on. */
    abide_report report;
    uint64_t seen = 0, step = 0;
    CHECK(abide_simulation_run_observed(plate, 1000, 100, ends, &seen, &report));
    CHECK(abide_simulation_run(plate, 200, &report));
    CHECK(abide_simulation_step(plate, &step));
    CHECK(abide_simulation_bind(plate, "u", &start.values));
    CHECK(abide_simulation_unpack(plate, NULL));

    const double turn = 2 * acos(-1.0);
    const double factor = 1 - 0.1 * (4 - 2 * cos(turn / NY) - 2 * cos(turn / NX));
    double worst = 0, fringes = 0;
    for (int j = 0; j < NY + 2 * FRINGE; j++)
        for (int i = 0; i < NX + 2 * FRINGE; i++) {
            const int y = j - FRINGE, x = i - FRINGE;
            const double exact = pow(factor, 500) * wave(y, x);
            if (y >= 0 && y < NY && x >= 0 && x < NX)
                worst = fmax(worst, fabs(q[1][j][i] - exact));
            else
                fringes = fmax(fringes, fabs(q[1][j][i]));
        }
    char device[64];
    CHECK(abide_simulation_text(plate, ABIDE_TEXT_BACKEND, device, sizeof device, NULL));
    printf("%d steps on %s, farthest from the exact wave: %.1e\n", (int)step, device, worst);
    abide_simulation_free(plate);
    return !(seen == 300 && step == 500 && worst < 1e-13 && fringes == 0);
}
