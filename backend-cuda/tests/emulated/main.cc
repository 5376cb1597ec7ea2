// Runs one launch of a kernel whose text is in kernel.h: main FOLDER SEED.
//
// FOLDER/fields holds the fields one after another, FOLDER/parameters the parameters, all of the kernel's type. The fields
// after the launch go to FOLDER/result. Macros from the command line say what the launch is: BLOCKS_LAUNCHED,
// THREADS_LAUNCHED, SHARED_BYTES, ARCHITECTURE and, for a persistent kernel, STEPS.

#include "lanes.h"

#include "cuda.h"

#include "kernel.h"

namespace {

constexpr size_t CELLS = size_t(EXTENT_S) * EXTENT_Y * EXTENT_X;
constexpr size_t GUARD = 4096;           // cells before and after a field that nobody may use

// A field in device memory; what nobody has written is not a number.
struct Field {
    std::vector<real> cells = std::vector<real>(CELLS + 2 * GUARD, real(NAN));

    real* first() { return cells.data() + GUARD; }

    void check() const
    {
        for (size_t i = 0; i < GUARD; ++i)
            if (!std::isnan(cells[i]) || !std::isnan(cells[GUARD + CELLS + i])) emulated::fail("written beyond a field");
    }
};

Buffers buffers;
Parameters parameters;
std::vector<unsigned> flags(32 * BLOCKS_LAUNCHED, 0);

void body()
{
#ifdef STEPS
    persistent(buffers, parameters, flags.data(), STEPS);
#else
    stream(buffers, parameters);
#endif
}

void read(const std::string& path, void* to, size_t bytes)
{
    FILE* file = fopen(path.c_str(), "rb");
    if (!file || fread(to, 1, bytes, file) != bytes) emulated::fail("cannot read " + path);
    fclose(file);
}

}  // namespace

int main(int, char** arguments)
{
    const std::string folder = arguments[1];
    const unsigned seed = atoi(arguments[2]);
    emulated::drawn.seed(seed);
    const unsigned late[] = {100, 0, 50};
    emulated::late = late[seed % 3];

    std::vector<real> start(FIELDS * CELLS);
    read(folder + "/fields", start.data(), start.size() * sizeof(real));
    if (PARAMETERS > 0) read(folder + "/parameters", &parameters, PARAMETERS * sizeof(real));
    static Field fields[FIELDS][2];
    bool changes[FIELDS];
    each<FIELDS>([&](auto f) { changes[f.value] = written<f.value>(); });
    for (int f = 0; f < FIELDS; ++f) {
        std::copy_n(start.data() + f * CELLS, CELLS, fields[f][0].first());
        buffers.current[f] = fields[f][0].first();
        buffers.next[f] = fields[f][changes[f]].first();
    }

    emulated::launch(body, [](int block, int thread) { blockIdx.x = block; threadIdx.x = thread; });

    FILE* result = fopen((folder + "/result").c_str(), "wb");
    const bool flipped[] = {FLIPPED};    // the fields whose result is in the second buffer
    for (int f = 0; f < FIELDS; ++f) {
        for (const Field& field : fields[f]) field.check();
#ifndef STEPS
        if (memcmp(fields[f][0].first(), start.data() + f * CELLS, CELLS * sizeof(real)) != 0) emulated::fail("a pass changed its input");
#endif
        if (!result || fwrite(fields[f][flipped[f]].first(), sizeof(real), CELLS, result) != CELLS) emulated::fail("cannot write the result");
    }
    return fclose(result);
}
