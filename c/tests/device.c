/* Arrays in the memory of a CUDA device, which the driver itself allocates: blocks with fringes are packed and unpacked there.
 * Says so and ends where there is no driver or no device. */

#include <dlfcn.h>
#include <string.h>

#include "check.h"

enum { NJ = 24, NI = 40, FRINGE = 3, WIDE = NI + 2 * FRINGE, HIGH = NJ + 2 * FRINGE, BYTES = 2 * HIGH * WIDE * 8 };

typedef int (*init)(unsigned);
typedef int (*get_device)(int *, int);
typedef int (*retain)(void **, int);
typedef int (*set_current)(void *);
typedef int (*allocate)(uint64_t *, size_t);
typedef int (*to_device)(uint64_t, const void *, size_t);
typedef int (*to_host)(void *, uint64_t, size_t);

/* A function of the driver; ISO C has no cast from an object's address to a function's. */
#define FUNCTION(type, name)                         \
    type name;                                       \
    do {                                             \
        void *found = dlsym(driver, driver_##name);  \
        memcpy(&name, &found, sizeof found);         \
    } while (0)

static const char driver_initialize[] = "cuInit", driver_device_of[] = "cuDeviceGet";
static const char driver_retain_context[] = "cuDevicePrimaryCtxRetain", driver_use[] = "cuCtxSetCurrent";
static const char driver_allocate_bytes[] = "cuMemAlloc_v2", driver_up[] = "cuMemcpyHtoD_v2", driver_down[] = "cuMemcpyDtoH_v2";

static double q[2][HIGH][WIDE], before[2][HIGH][WIDE], u[NJ][NI], step[NJ][NI];

static abide_simulation *made(const char *backend, const abide_model *model, const abide_input *start) {
    abide_options *options;
    abide_simulation *simulation = NULL;
    CHECK(abide_options_new(&options));
    CHECK(abide_options_set(options, "dtype", "f64"));
    CHECK(abide_options_set(options, "backend", backend));
    CHECK(abide_simulation_new(model, options, start, 1, &simulation));
    abide_options_free(options);
    return simulation;
}

int main(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (!driver) {
        printf("no driver\n");
        return 0;
    }
    FUNCTION(init, initialize);
    FUNCTION(get_device, device_of);
    FUNCTION(retain, retain_context);
    FUNCTION(set_current, use);
    FUNCTION(allocate, allocate_bytes);
    FUNCTION(to_device, up);
    FUNCTION(to_host, down);
    int number;
    uint64_t address;
    if (initialize(0) || device_of(&number, 0) || retain_context(&context, number) || use(context)) {
        printf("no device\n");
        return 0;
    }
    for (int j = 0; j < HIGH; j++)
        for (int i = 0; i < WIDE; i++) {
            q[0][j][i] = -1;
            q[1][j][i] = (7 * i + 5 * j) % 11 / 32.0;
        }
    memcpy(before, q, sizeof q);
    for (int j = 0; j < NJ; j++)
        memcpy(u[j], &q[1][j + FRINGE][FRINGE], sizeof u[j]);
    if (allocate_bytes(&address, BYTES) || up(address, q, BYTES))
        return 1;

    const abide_view host = {u, ABIDE_F64, ABIDE_HOST, 0, 2, {NJ, NI}, {NI, 1}};
    const abide_input start = {"u", host};
    abide_model *model;
    CHECK(abide_model_named("heat", &model));
    abide_simulation *cuda = made("cuda", model, &start), *cpu = made("cpu", model, &start);
    abide_block block;
    memset(&block, 0, sizeof block);
    block.data = (void *)(uintptr_t)address;
    block.dtype = ABIDE_F64;
    block.memory = ABIDE_CUDA;
    block.axes = 2;
    block.variables = 2;
    block.cells[0] = NI, block.cells[1] = NJ;
    block.fringes[0] = block.fringes[1] = FRINGE;
    abide_view there;
    CHECK(abide_block_view(&block, 1, 0, &there));
    CHECK(abide_simulation_bind(cuda, "u", &there));
    /* 5 steps, then the block's values anew and 9 steps more: those of 9 steps on the CPU. */
    CHECK(abide_simulation_advance(cuda, 5, NULL));
    CHECK(abide_simulation_pack(cuda, NULL));
    CHECK(abide_simulation_advance(cuda, 9, NULL));
    CHECK(abide_simulation_unpack(cuda, NULL));
    CHECK(abide_simulation_advance(cpu, 9, NULL));
    const abide_view result = {step, ABIDE_F64, ABIDE_HOST, 0, 2, {NJ, NI}, {NI, 1}};
    CHECK(abide_simulation_read(cpu, "u", &result));
    if (down(q, address, BYTES))
        return 1;
    int faults = 0;
    for (int j = 0; j < HIGH; j++)
        for (int i = 0; i < WIDE; i++) {
            const int y = j - FRINGE, x = i - FRINGE;
            const int is_cell = y >= 0 && y < NJ && x >= 0 && x < NI;
            faults += q[0][j][i] != -1;
            faults += q[1][j][i] != (is_cell ? step[y][x] : before[1][j][i]);
        }
    /* Where the field lies, and arrays that are refused. */
    abide_view mapped;
    CHECK(abide_simulation_map(cuda, "u", &mapped));
    faults += mapped.memory != ABIDE_CUDA || mapped.extents[1] != NI || mapped.strides[1] != 1;
    if (down(u[0], (uint64_t)(uintptr_t)mapped.data, sizeof u[0]))
        return 1;
    faults += memcmp(u[0], step[0], sizeof u[0]) != 0;
    abide_view wrong = there;
    wrong.device = 7;
    faults += abide_simulation_read(cuda, "u", &wrong) != ABIDE_USAGE;
    wrong = there;
    wrong.dtype = ABIDE_F32;
    faults += abide_simulation_read(cuda, "u", &wrong) != ABIDE_USAGE;
    wrong = there;
    wrong.data = u;
    faults += abide_simulation_read(cuda, "u", &wrong) != ABIDE_USAGE;
    faults += abide_simulation_read(cpu, "u", &there) != ABIDE_USAGE;
    abide_simulation_free(cuda);
    abide_simulation_free(cpu);
    abide_model_free(model);
    printf("%d faults\n", faults);
    return faults != 0;
}
