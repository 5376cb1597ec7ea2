/* Properties of methane and oxygen at the cells of a block with fringes, from the block's own temperature, pressure and mass
 * fractions.
 *
 *     cc gas.c $(pkg-config --cflags --libs abide)
 */

#include <string.h>

#include "check.h"

enum { NI = 6, NJ = 5, NK = 4, FRINGE = 3, VARIABLES = 4 };
enum { TEMPERATURE, PRESSURE, METHANE, OXYGEN };

static double q[NK + 2 * FRINGE][NJ + 2 * FRINGE][NI + 2 * FRINGE][VARIABLES];


int main(void) {
    for (int k = 0; k < NK; k++)
        for (int j = 0; j < NJ; j++)
            for (int i = 0; i < NI; i++) {
                double *cell = q[k + FRINGE][j + FRINGE][i + FRINGE];
                cell[TEMPERATURE] = 200 + 100 * i;
                cell[PRESSURE] = 5e6 + 1e6 * j;
                cell[METHANE] = 0.1 + 0.2 * k;
                cell[OXYGEN] = 1 - cell[METHANE];
            }
    abide_block block;
    memset(&block, 0, sizeof block);
    block.data = q;
    block.dtype = ABIDE_F64;
    block.order = ABIDE_VARIABLE_FASTEST;
    block.axes = 3;
    block.variables = VARIABLES;
    block.cells[0] = NI, block.cells[1] = NJ, block.cells[2] = NK;
    block.fringes[0] = block.fringes[1] = block.fringes[2] = FRINGE;
    abide_view temperature, pressure, fractions;
    CHECK(abide_block_view(&block, TEMPERATURE, 0, &temperature));
    CHECK(abide_block_view(&block, PRESSURE, 0, &pressure));
    /* The mass fractions are the variables from METHANE on. */
    CHECK(abide_block_view(&block, ABIDE_ALL_VARIABLES, 0, &fractions));
    fractions.data = (double *)fractions.data + METHANE;
    fractions.extents[0] = 2;

    static double results[2][NK][NJ][NI];
    abide_view values;
    memset(&values, 0, sizeof values);
    values.data = results;
    values.dtype = ABIDE_F64;
    values.axes = 4;
    values.extents[0] = 2, values.extents[1] = NK, values.extents[2] = NJ, values.extents[3] = NI;
    values.strides[0] = NK * NJ * NI, values.strides[1] = NJ * NI, values.strides[2] = NI, values.strides[3] = 1;

    abide_options *options;
    abide_gas *gas;
    CHECK(abide_options_new(&options));
    CHECK(abide_options_set(options, "mass", "true"));
    CHECK(abide_options_set(options, "backend", "cpu"));
    CHECK(abide_gas_new("CH4,O2", options, &gas));
    abide_options_free(options);
    CHECK(abide_gas_properties(gas, "rho,c", &temperature, &pressure, &fractions, &values));
    abide_gas_free(gas);


    for (int k = 0; k < NK; k++)
        for (int j = 0; j < NJ; j++)
            for (int i = 0; i < NI; i++)
                printf("%.17g %.17g\n", results[0][k][j][i], results[1][k][j][i]);
    return 0;
}
