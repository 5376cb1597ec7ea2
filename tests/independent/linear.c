/* Runs a linear stencil with a fixed boundary, and knows nothing of Abide.
 *
 *   linear TYPE NZ NY NX STEPS TAPS INPUT OUTPUT
 *
 * TYPE is f32 or f64; INPUT and OUTPUT are the bare values of the domain, x fastest. Each line of TAPS holds an
 * offset and a weight: DZ DY DX WEIGHT, in any order. The taps are summed in the order of their offsets, z first; the
 * first product is plain, each later one is fused onto the sum. The outermost cells of each axis, as many as the
 * farthest offset along it, keep their values.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tap {
    long offset[3];
    double weight;
};

static struct tap taps[4096];
static int count;

static void fail(const char *what)
{
    fprintf(stderr, "linear: %s\n", what);
    exit(1);
}

static int compare(const void *left, const void *right)
{
    const struct tap *a = left, *b = right;
    for (int axis = 0; axis < 3; axis++)
        if (a->offset[axis] != b->offset[axis])
            return a->offset[axis] < b->offset[axis] ? -1 : 1;
    return 0;
}

static void *load(const char *path, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    char *data = malloc(bytes + 1);
    if (!file || !data || fread(data, 1, bytes + 1, file) != bytes)
        fail("the input is not there or has another size");
    fclose(file);
    return data;
}

/* One sweep for each type; FMA is the type's correctly rounded fused multiply-add. */
#define SWEEP(NAME, REAL, FMA)                                                                  \
    static void NAME(const REAL *old, REAL *new, const long n[3], const long r[3])              \
    {                                                                                           \
        for (long z = r[0]; z < n[0] - r[0]; z++)                                               \
            for (long y = r[1]; y < n[1] - r[1]; y++)                                           \
                for (long x = r[2]; x < n[2] - r[2]; x++) {                                     \
                    REAL sum = 0;                                                               \
                    for (int i = 0; i < count; i++) {                                           \
                        const long *o = taps[i].offset;                                         \
                        REAL value = old[((z + o[0]) * n[1] + y + o[1]) * n[2] + x + o[2]];     \
                        REAL weight = (REAL)taps[i].weight;                                     \
                        sum = i == 0 ? weight * value : FMA(weight, value, sum);                \
                    }                                                                           \
                    new[(z * n[1] + y) * n[2] + x] = sum;                                       \
                }                                                                               \
    }

SWEEP(sweep_f32, float, fmaf)
SWEEP(sweep_f64, double, fma)

int main(int argc, char **argv)
{
    if (argc != 9)
        fail("usage: linear TYPE NZ NY NX STEPS TAPS INPUT OUTPUT");
    int is_double = strcmp(argv[1], "f64") == 0;
    long n[3], r[3] = {0, 0, 0}, steps = atol(argv[5]);
    for (int axis = 0; axis < 3; axis++)
        n[axis] = atol(argv[2 + axis]);

    FILE *list = fopen(argv[6], "r");
    if (!list)
        fail("no list of taps");
    struct tap t;
    while (fscanf(list, "%ld %ld %ld %lf", &t.offset[0], &t.offset[1], &t.offset[2], &t.weight) == 4) {
        if (count == 4096)
            fail("too many taps");
        for (int axis = 0; axis < 3; axis++)
            if (labs(t.offset[axis]) > r[axis])
                r[axis] = labs(t.offset[axis]);
        taps[count++] = t;
    }
    fclose(list);
    qsort(taps, count, sizeof taps[0], compare);

    size_t bytes = (size_t)(n[0] * n[1] * n[2]) * (is_double ? 8 : 4);
    void *old = load(argv[7], bytes), *new = load(argv[7], bytes);
    for (long step = 0; step < steps; step++) {
        if (is_double)
            sweep_f64(old, new, n, r);
        else
            sweep_f32(old, new, n, r);
        void *other = old;
        old = new;
        new = other;
    }

    FILE *output = fopen(argv[8], "wb");
    if (!output || fwrite(old, 1, bytes, output) != bytes || fclose(output) != 0)
        fail("the output cannot be written");
    return 0;
}
