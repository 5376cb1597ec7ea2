/* What crosses the border: nulls, wrong sizes, names and types, strides of all kinds, windows, batches, records, checkpoints, and
 * handles that are at work. Usage: border FOLDER. */

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static int faults = 0;

#define HOLDS(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, abide_last_error()); \
            faults++;                                                         \
        }                                                                     \
    } while (0)

/* A call that must fail with a status and with words. */
static void fails(int line, abide_status status, abide_status wanted, const char *words) {
    if (status != wanted || !strstr(abide_last_error(), words)) {
        fprintf(stderr, "line %d: status %d, wanted %d with `%s`: %s\n", line, (int)status, (int)wanted, words,
                abide_last_error());
        faults++;
    }
}

#define FAILS(call, wanted, words) fails(__LINE__, (call), (wanted), (words))

static abide_view view(void *data, int dtype, int axes, const int64_t *extents, const int64_t *strides) {
    abide_view made;
    memset(&made, 0, sizeof made);
    made.data = data;
    made.dtype = dtype;
    made.axes = axes;
    int64_t stride = 1;
    for (int axis = axes - 1; axis >= 0; axis--) {
        made.extents[axis] = extents[axis];
        made.strides[axis] = strides ? strides[axis] : stride;
        stride *= extents[axis];
    }
    return made;
}

static abide_simulation *made(const char *name, const char *const *options, const abide_input *inputs, size_t count) {
    abide_model *model;
    abide_options *own;
    abide_simulation *simulation = NULL;
    CHECK(abide_model_named(name, &model));
    CHECK(abide_options_new(&own));
    CHECK(abide_options_set(own, "backend", "cpu"));
    for (; *options; options += 2)
        CHECK(abide_options_set(own, options[0], options[1]));
    CHECK(abide_simulation_new(model, own, inputs, count, &simulation));
    abide_options_free(own);
    abide_model_free(model);
    return simulation;
}

static void requests(void) {
    abide_model *model = NULL;
    abide_options *options = NULL;
    abide_simulation *simulation = NULL;
    FAILS(abide_model_named("heaat", &model), ABIDE_USAGE, "heat");
    FAILS(abide_model_named(NULL, &model), ABIDE_USAGE, "the name of a model: it is a null pointer");
    FAILS(abide_model_named("heat", NULL), ABIDE_USAGE, "model: it is a null pointer");
    FAILS(abide_model_named("\xff", &model), ABIDE_USAGE, "UTF-8");
    FAILS(abide_model_text("axes = 2\n[fields]\nu = 1.0\n[[stages]]\nu = \"u + w\"\n", "mine", &model), ABIDE_USAGE, "line 5");
    FAILS(abide_model_file("absent.toml", &model), ABIDE_REFUSED, "absent.toml");
    HOLDS(model == NULL);
    CHECK(abide_model_named("heat", &model));
    CHECK(abide_options_new(&options));
    FAILS(abide_options_set(options, "bakend", "cpu"), ABIDE_USAGE, "backend");
    FAILS(abide_options_set(NULL, "backend", "cpu"), ABIDE_USAGE, "options: it is a null pointer");
    CHECK(abide_options_set(options, "backend", "cpu"));
    CHECK(abide_options_set(options, "size", "64xx"));
    FAILS(abide_simulation_new(model, options, NULL, 0, &simulation), ABIDE_USAGE, "64xx");
    CHECK(abide_options_set(options, "size", "20x30"));
    CHECK(abide_options_set(options, "pin", "perhaps"));
    FAILS(abide_simulation_new(model, options, NULL, 0, &simulation), ABIDE_USAGE, "pin");
    CHECK(abide_options_set(options, "pin", "false"));
    CHECK(abide_options_set(options, "tolerance", "1e-8"));
    FAILS(abide_simulation_new(model, options, NULL, 0, &simulation), ABIDE_USAGE, "tolerance");
    FAILS(abide_simulation_new(model, NULL, NULL, 2, &simulation), ABIDE_USAGE, "inputs: it is a null pointer");
    FAILS(abide_simulation_new(NULL, NULL, NULL, 0, &simulation), ABIDE_USAGE, "model: it is a null pointer");
    FAILS(abide_simulation_run(NULL, 1, NULL), ABIDE_USAGE, "simulation: it is a null pointer");
    abide_options_free(options);
    abide_model_free(model);
    abide_simulation_free(NULL);
}

/* Arrays of every layout are the same field. */
static void arrays(void) {
    const char *const options[] = {"size", "3x4", "dtype", "f64", NULL};
    abide_simulation *heat = made("heat", options, NULL, 0);
    double packed[3][4], fortran[4][3], gaps[3][8], backward[3][4];
    float single[3][4];
    const int64_t extents[] = {3, 4}, column[] = {1, 3}, wide[] = {8, 2}, from_last[] = {-4, -1}, all[] = {0, 1};
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 4; i++) {
            packed[j][i] = 10 * j + i + 0.125;
            fortran[i][j] = gaps[j][2 * i] = backward[2 - j][3 - i] = packed[j][i];
            single[j][i] = (float)packed[j][i];
            gaps[j][2 * i + 1] = -7;
        }
    const abide_view views[] = {
        view(packed, ABIDE_F64, 2, extents, NULL), view(fortran, ABIDE_F64, 2, extents, column),
        view(gaps, ABIDE_F64, 2, extents, wide),   view(&backward[2][3], ABIDE_F64, 2, extents, from_last),
        view(single, ABIDE_F32, 2, extents, NULL),
    };
    for (int from = 0; from < 5; from++)
        for (int to = 0; to < 5; to++) {
            CHECK(abide_simulation_write(heat, "u", &views[from]));
            memset(fortran, to == 1 ? 0 : 255, to == 1 ? sizeof fortran : 0);
            CHECK(abide_simulation_read(heat, "u", &views[to]));
            for (int j = 0; j < 3; j++)
                for (int i = 0; i < 4; i++) {
                    HOLDS(fortran[i][j] == packed[j][i] && gaps[j][2 * i] == packed[j][i]);
                    HOLDS(backward[2 - j][3 - i] == packed[j][i] && single[j][i] == packed[j][i]);
                    HOLDS(gaps[j][2 * i + 1] == -7);
                }
        }
    abide_view mapped;
    CHECK(abide_simulation_map(heat, "u", &mapped));
    HOLDS(mapped.axes == 2 && mapped.extents[1] == 4 && mapped.strides[0] == 4 && mapped.memory == ABIDE_HOST);
    HOLDS(memcmp(mapped.data, packed, sizeof packed) == 0);

    /* A box, and what does not fit. */
    double box[2] = {5, 6};
    const int64_t low[] = {1, 2}, one_by_two[] = {1, 2}, beyond[] = {2, 3}, negative[] = {-1, 0};
    const abide_view small = view(box, ABIDE_F64, 2, one_by_two, NULL);
    CHECK(abide_simulation_write_window(heat, "u", low, &small));
    box[0] = box[1] = 0;
    CHECK(abide_simulation_read_window(heat, "u", low, &small));
    HOLDS(box[0] == 5 && box[1] == 6);
    FAILS(abide_simulation_read_window(heat, "u", beyond, &small), ABIDE_REFUSED, "window");
    FAILS(abide_simulation_read_window(heat, "u", negative, &small), ABIDE_REFUSED, "low corner");
    FAILS(abide_simulation_read_window(heat, "u", NULL, &small), ABIDE_USAGE, "null");
    FAILS(abide_simulation_read(heat, "u", &small), ABIDE_USAGE, "[3, 4] are needed");
    FAILS(abide_simulation_read(heat, "w", &views[0]), ABIDE_USAGE, "no field is named `w`");
    FAILS(abide_simulation_read(heat, "u", NULL), ABIDE_USAGE, "null");
    abide_view wrong = views[0];
    wrong.data = NULL;
    FAILS(abide_simulation_read(heat, "u", &wrong), ABIDE_USAGE, "null");
    wrong = views[0];
    wrong.dtype = 7;
    FAILS(abide_simulation_read(heat, "u", &wrong), ABIDE_USAGE, "ABIDE_F32 or ABIDE_F64");
    wrong = views[0];
    wrong.axes = 5;
    FAILS(abide_simulation_read(heat, "u", &wrong), ABIDE_REFUSED, "1 to 4");
    wrong = views[0];
    wrong.extents[0] = -3;
    FAILS(abide_simulation_read(heat, "u", &wrong), ABIDE_REFUSED, "extent of axis 0");
    wrong = views[0];
    wrong.strides[0] = INT64_MAX / 2;
    FAILS(abide_simulation_read(heat, "u", &wrong), ABIDE_USAGE, "beyond what addresses can say");
    wrong = view(packed, ABIDE_F64, 2, extents, all);
    FAILS(abide_simulation_read(heat, "u", &wrong), ABIDE_USAGE, "share a place");
    wrong = views[0];
    wrong.data = (char *)packed + 1;
    FAILS(abide_simulation_read(heat, "u", &wrong), ABIDE_USAGE, "multiple of 8 bytes");
    wrong = views[0];
    wrong.memory = ABIDE_CUDA;
    HOLDS(abide_simulation_read(heat, "u", &wrong) != ABIDE_OK);
    FAILS(abide_simulation_pack(heat, NULL), ABIDE_USAGE, "no array is bound");
    FAILS(abide_simulation_unpack(heat, "u"), ABIDE_USAGE, "field u: no array is bound");
    CHECK(abide_simulation_bind(heat, "u", &views[2]));
    CHECK(abide_simulation_unpack(heat, "u"));
    HOLDS(gaps[1][4] == 5 && gaps[1][5] == -7);
    CHECK(abide_simulation_bind(heat, "u", NULL));
    FAILS(abide_simulation_pack(heat, NULL), ABIDE_USAGE, "no array is bound");
    abide_simulation_free(heat);

    abide_block block;
    memset(&block, 0, sizeof block);
    FAILS(abide_block_view(&block, 0, 0, &wrong), ABIDE_USAGE, "the data of a block");
    block.data = packed;
    block.dtype = ABIDE_F64;
    block.axes = 1;
    block.variables = 3;
    block.cells[0] = 2;
    block.fringes[0] = 1;
    FAILS(abide_block_view(&block, 3, 0, &wrong), ABIDE_USAGE, "no variable 3 of 3");
    CHECK(abide_block_view(&block, ABIDE_ALL_VARIABLES, 0, &wrong));
    HOLDS(wrong.axes == 2 && wrong.extents[0] == 3 && wrong.extents[1] == 2 && wrong.strides[0] == 4);
    HOLDS((double *)wrong.data == &packed[0][1]);
    CHECK(abide_block_view(&block, 2, 1, &wrong));
    HOLDS(wrong.axes == 1 && wrong.extents[0] == 4 && (double *)wrong.data == &packed[2][0]);
}

/* Parameters, texts, records, batches and checkpoints. */
static void runs(const char *folder) {
    const char *const options[] = {"size", "16x16", "record-every", "5", "probe", "u@8,8", "input", "u=random:3", NULL};
    abide_simulation *heat = made("heat", options, NULL, 0);
    double kappa = 0, values[8];
    uint64_t steps[8], count = 9;
    size_t rows = 0, needed = 0, fields = 0;
    char text[8], name[512];
    CHECK(abide_simulation_set_parameter(heat, "kappa", 0.125));
    CHECK(abide_simulation_parameter(heat, "kappa", &kappa));
    HOLDS(kappa == 0.125);
    FAILS(abide_simulation_set_parameter(heat, "kapa", 1), ABIDE_USAGE, "kappa");
    FAILS(abide_simulation_set_parameter(heat, "kappa", NAN), ABIDE_USAGE, "kappa");
    FAILS(abide_simulation_text(heat, ABIDE_TEXT_REPORT, text, sizeof text, NULL), ABIDE_USAGE, "nothing has run");
    CHECK(abide_simulation_run(heat, 12, NULL));
    CHECK(abide_simulation_non_finite(heat, &count));
    HOLDS(count == 0);
    CHECK(abide_simulation_columns(heat, text, sizeof text, NULL));
    HOLDS(strcmp(text, "u@8,8") == 0);
    CHECK(abide_simulation_records(heat, 0, NULL, NULL, &rows));
    HOLDS(rows == 3);
    CHECK(abide_simulation_records(heat, 2, steps, values, &rows));
    HOLDS(rows == 2 && steps[1] == 5);
    CHECK(abide_simulation_records(heat, 8, steps, values, &rows));
    HOLDS(rows == 1 && steps[0] == 10);
    CHECK(abide_simulation_text(heat, ABIDE_TEXT_PLAN, text, sizeof text, &needed));
    HOLDS(strlen(text) == 7 && needed > 100);
    CHECK(abide_simulation_text(heat, ABIDE_TEXT_REPORT, NULL, 0, &needed));
    FAILS(abide_simulation_text(heat, 99, text, sizeof text, NULL), ABIDE_USAGE, "99 is none");
    CHECK(abide_simulation_fields(heat, &fields));
    CHECK(abide_simulation_field_name(heat, 0, name, sizeof name, NULL));
    HOLDS(fields == 1 && strcmp(name, "u") == 0);
    FAILS(abide_simulation_field_name(heat, 1, name, sizeof name, NULL), ABIDE_USAGE, "field");

    /* A run that goes on from a checkpoint has the bits of one run. */
    float one[16][16], other[16][16];
    const int64_t extents[] = {16, 16};
    const abide_view to_one = view(one, ABIDE_F32, 2, extents, NULL), to_other = view(other, ABIDE_F32, 2, extents, NULL);
    snprintf(name, sizeof name, "%s/heat.npz", folder);
    CHECK(abide_simulation_checkpoint(heat, name));
    CHECK(abide_simulation_advance(heat, 7, &values[0]));
    CHECK(abide_simulation_read(heat, "u", &to_one));
    abide_simulation_free(heat);
    const char *const resumed[] = {"resume", name, NULL};
    heat = made("heat", resumed, NULL, 0);
    CHECK(abide_simulation_step(heat, &count));
    HOLDS(count == 12);
    CHECK(abide_simulation_advance(heat, 7, NULL));
    CHECK(abide_simulation_read(heat, "u", &to_other));
    HOLDS(memcmp(one, other, sizeof one) == 0);
    FAILS(abide_simulation_checkpoint(heat, "/absent/heat.npz"), ABIDE_REFUSED, "/absent");
    abide_simulation_free(heat);

    /* A condition on a computed scalar ends a run. */
    const char *const timed[] = {"size", "24x24", "dtype", "f64", "until", "time>=0.2", NULL};
    double time = 0;
    abide_report report;
    abide_simulation *gas = made("cloverleaf", timed, NULL, 0);
    CHECK(abide_simulation_run(gas, 100000, &report));
    CHECK(abide_simulation_scalar(gas, "time", &time));
    HOLDS(time >= 0.2 && time < 0.4 && report.steps < report.steps_asked);
    FAILS(abide_simulation_scalar(gas, "tome", &time), ABIDE_USAGE, "time");
    abide_simulation_free(gas);

    /* Members of a batch, each with a parameter of its own. */
    const char *const spread[] = {"size", "5x6", "batch", "3", "param", "kappa=0.1:0.2", NULL};
    double members[3][5][6];
    const int64_t of_batch[] = {3, 5, 6};
    abide_view all = view(members, ABIDE_F64, 3, of_batch, NULL);
    int32_t axes = 0;
    int64_t found[ABIDE_AXES];
    heat = made("heat", spread, NULL, 0);
    CHECK(abide_simulation_field_extents(heat, "u", &axes, found));
    HOLDS(axes == 3 && found[0] == 3 && found[2] == 6 && found[3] == 1);
    CHECK(abide_simulation_advance(heat, 3, NULL));
    CHECK(abide_simulation_read(heat, "u", &all));
    HOLDS(members[0][2][3] != members[2][2][3]);
    abide_simulation_free(heat);
}

static abide_simulation *running;

static int32_t calls_back(void *user, uint64_t step, double seconds) {
    (void)step, (void)seconds;
    uint64_t now;
    *(abide_status *)user = abide_simulation_step(running, &now);
    abide_simulation_free(running);
    return 1;
}

static void *calls(void *unused) {
    (void)unused;
    HOLDS(abide_last_error()[0] == 0);
    uint64_t now;
    abide_status status = ABIDE_OK;
    for (long turn = 0; status == ABIDE_OK && turn < 200000000; turn++)
        status = abide_simulation_step(running, &now);
    FAILS(status, ABIDE_BUSY, "another thread is using it");
    return NULL;
}

static void threads(void) {
    const char *const options[] = {"size", "512x512", NULL};
    running = made("heat", options, NULL, 0);
    abide_status status = ABIDE_OK;
    abide_report report;
    CHECK(abide_simulation_run_observed(running, 1000000, 0, calls_back, &status, &report));
    HOLDS(status == ABIDE_BUSY && report.steps < report.steps_asked);
    FAILS(ABIDE_BUSY, ABIDE_BUSY, "from within its own run");
    pthread_t thread;
    HOLDS(pthread_create(&thread, NULL, calls, NULL) == 0);
    while (abide_simulation_advance(running, 200, NULL) == ABIDE_BUSY)
        ;
    HOLDS(pthread_join(thread, NULL) == 0);
    abide_simulation_free(running);
}

static void systems(void) {
    const int64_t offsets[] = {1, 3, 5}, columns[] = {1, 2, 1, 2}, falls[] = {1, 5, 3};
    const float entries[] = {4, 1, 1, 3};
    abide_csr matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.rows = matrix.columns = 2;
    matrix.offsets = offsets;
    matrix.indices = columns;
    matrix.index_bytes = 8;
    matrix.base = 1;
    matrix.values = entries;
    matrix.dtype = ABIDE_F32;
    abide_system *system = NULL;
    abide_options *options;
    CHECK(abide_options_new(&options));
    CHECK(abide_options_set(options, "backend", "cpu"));
    CHECK(abide_system_new(&matrix, options, &system));
    double b[] = {1, 2}, x[] = {0, 0}, residuals[2] = {0, 0};
    const int64_t two[] = {2}, three[] = {3}, square[] = {1, 2};
    abide_view right = view(b, ABIDE_F64, 1, two, NULL), left = view(x, ABIDE_F64, 2, square, NULL);
    abide_solve_report report;
    size_t count = 0, needed = 0;
    CHECK(abide_system_solve(system, &right, &left, &report));
    HOLDS(fabs(x[0] - 1.0 / 11) < 1e-6 && fabs(x[1] - 7.0 / 11) < 1e-6 && report.converged == 1);
    CHECK(abide_system_history(system, residuals, 2, &count));
    HOLDS(count == (size_t)report.iterations + 1 && residuals[0] > residuals[1]);
    CHECK(abide_system_notes(system, NULL, 0, &needed));
    HOLDS(needed > 0);
    right = view(b, ABIDE_F64, 1, three, NULL);
    FAILS(abide_system_solve(system, &right, &left, NULL), ABIDE_REFUSED, "the rows of the matrix");
    abide_system_free(system);
    matrix.offsets = falls;
    FAILS(abide_system_new(&matrix, options, &system), ABIDE_USAGE, "offsets that never fall");
    matrix.offsets = offsets;
    matrix.base = 0;
    FAILS(abide_system_new(&matrix, options, &system), ABIDE_USAGE, "its first offset is 1, and the base 0");
    matrix.base = 1;
    matrix.index_bytes = 2;
    FAILS(abide_system_new(&matrix, options, &system), ABIDE_USAGE, "index_bytes");
    matrix.index_bytes = 8;
    CHECK(abide_options_set(options, "method", "magic"));
    FAILS(abide_system_new(&matrix, options, &system), ABIDE_USAGE, "bicgstab");
    abide_options_free(options);
}

static void gases(void) {
    abide_gas *gas = NULL;
    FAILS(abide_gas_new("XE", NULL, &gas), ABIDE_USAGE, "no species is named `XE`");
    abide_options *options;
    CHECK(abide_options_new(&options));
    CHECK(abide_options_set(options, "backend", "cpu"));
    CHECK(abide_gas_new("N2", options, &gas));
    double t[2] = {300, 400}, p[2] = {1e5, 1e5}, rho[2] = {0, 0};
    const int64_t two[] = {2}, one_by_two[] = {1, 2};
    const abide_view temperature = view(t, ABIDE_F64, 1, two, NULL), pressure = view(p, ABIDE_F64, 1, two, NULL);
    const abide_view density = view(rho, ABIDE_F64, 2, one_by_two, NULL);
    size_t count = 0;
    CHECK(abide_gas_species(gas, &count));
    CHECK(abide_gas_properties(gas, "rho", &temperature, &pressure, NULL, &density));
    HOLDS(count == 1 && fabs(rho[0] - 1.123) < 0.005 && rho[1] < rho[0]);
    /* Fewer points with the same program. */
    const int64_t one[] = {1}, one_by_one[] = {1, 1};
    double again = 0;
    const abide_view t_one = view(t, ABIDE_F64, 1, one, NULL), p_one = view(p, ABIDE_F64, 1, one, NULL);
    const abide_view rho_one = view(&again, ABIDE_F64, 2, one_by_one, NULL);
    CHECK(abide_gas_properties(gas, "rho", &t_one, &p_one, NULL, &rho_one));
    HOLDS(again == rho[0]);
    t[1] = -1;
    FAILS(abide_gas_properties(gas, "rho", &temperature, &pressure, NULL, &density), ABIDE_REFUSED, "T of point [1]");
    FAILS(abide_gas_properties(gas, "rhoo", &temperature, &pressure, NULL, &density), ABIDE_USAGE, "rhoo");
    abide_gas_free(gas);
    CHECK(abide_gas_new("N2,O2", options, &gas));
    FAILS(abide_gas_properties(gas, "rho", &temperature, &pressure, NULL, &density), ABIDE_USAGE, "fractions of several");
    abide_gas_free(gas);
    /* States by density and energy; a diffusivity of each species. */
    t[1] = 400;
    double x[4] = {0.79, 0.79, 0.21, 0.21}, both[4] = {0, 0, 0, 0}, back[8];
    const int64_t two_by_two[] = {2, 2}, four_by_two[] = {4, 2};
    const abide_view fractions = view(x, ABIDE_F64, 2, two_by_two, NULL);
    const abide_view values = view(both, ABIDE_F64, 2, two_by_two, NULL), found = view(back, ABIDE_F64, 2, four_by_two, NULL);
    CHECK(abide_gas_new("N2,O2", options, &gas));
    CHECK(abide_gas_properties(gas, "rho,e", &temperature, &pressure, &fractions, &values));
    FAILS(abide_gas_properties(gas, "rho,D", &temperature, &pressure, &fractions, &values), ABIDE_USAGE, "");
    abide_gas_free(gas);
    CHECK(abide_options_set(options, "given", "ph"));
    FAILS(abide_gas_new("N2,O2", options, &gas), ABIDE_USAGE, "hp");
    CHECK(abide_options_set(options, "given", "rhoe"));
    CHECK(abide_gas_new("N2,O2", options, &gas));
    const abide_view e = view(both + 2, ABIDE_F64, 1, two, NULL), of_both = view(both, ABIDE_F64, 1, two, NULL);
    CHECK(abide_gas_properties(gas, "T,p,D", &of_both, &e, &fractions, &found));
    HOLDS(fabs(back[0] - 300) < 1e-9 && fabs(back[1] - 400) < 1e-9 && fabs(back[2] - 1e5) < 1e-6);
    HOLDS(back[4] > 1.8e-5 && back[4] < 2.6e-5 && back[6] > 1.8e-5 && back[6] < 2.6e-5);
    abide_gas_free(gas);
    abide_options_free(options);
}

int main(int count, char **arguments) {
    HOLDS(abide_last_error()[0] == 0 && strlen(abide_version()) >= 5);
    requests();
    arrays();
    runs(count > 1 ? arguments[1] : ".");
    threads();
    systems();
    gases();
    return faults != 0;
}
