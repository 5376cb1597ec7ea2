// Runs a solver's kernel whose text is in kernel.h to its end, CHUNK iterations per launch, or for LAUNCHES
// launches: solver FOLDER SEED CHUNK LAUNCHES.
//
// FOLDER/arrays holds `Arguments` and its arrays one after another, each after its length in bytes; arrays.h
// names them in their order. The vectors and the history go to FOLDER/homes and FOLDER/history, the state to
// FOLDER/state.

#include "lanes.h"

#include <climits>
#include <type_traits>

#include "cuda.h"
#include "more.h"

#include "kernel.h"

namespace {

constexpr int SYSTEMS = BATCHED ? BLOCKS_LAUNCHED : 1;

Arguments arguments;

void body() { krylov(arguments); }

// An array in device memory with guards around it.
struct Array {
    static constexpr size_t GUARD = 4096;
    std::vector<unsigned char> bytes;

    explicit Array(size_t length) : bytes(length + 2 * GUARD, 0xff) {}
    unsigned char* first() { return bytes.data() + GUARD; }

    void check() const
    {
        for (size_t i = 0; i < GUARD; ++i)
            if (bytes[i] != 0xff || bytes[bytes.size() - 1 - i] != 0xff) emulated::fail("written beyond an array");
    }
};

std::vector<Array> arrays;

template <class T>
T* next(FILE* file)
{
    unsigned long long length;
    if (fread(&length, 8, 1, file) != 1) emulated::fail("cannot read a length");
    arrays.emplace_back(length);
    if (fread(arrays.back().first(), 1, length, file) != length) emulated::fail("cannot read an array");
    return reinterpret_cast<T*>(arrays.back().first());
}

void write(const std::string& path, const void* from, size_t bytes)
{
    FILE* file = fopen(path.c_str(), "wb");
    if (!file || fwrite(from, 1, bytes, file) != bytes || fclose(file) != 0) emulated::fail("cannot write " + path);
}

}  // namespace

int main(int, char** words)
{
    const std::string folder = words[1];
    emulated::drawn.seed(atoi(words[2]));
    const unsigned chunk = atoi(words[3]);
    unsigned long long launches = strtoull(words[4], nullptr, 10);
    FILE* file = fopen((folder + "/arrays").c_str(), "rb");
    if (!file) emulated::fail("cannot read the arrays");
    arrays.reserve(32);
    Arguments& a = arguments;
    // The host's struct, byte by byte; then the arrays that its addresses stand for.
    if (fread(&a, sizeof a, 1, file) != 1) emulated::fail("cannot read the arguments");
#define ARRAY(name) a.name = next<std::remove_pointer_t<decltype(a.name)>>(file);
#include "arrays.h"
    if (fgetc(file) != EOF) emulated::fail("there are more arrays than arguments");
    const auto running = [&] { return std::any_of(a.state, a.state + SYSTEMS, [](const State& s) { return s.status == RUNNING; }); };
    while (running() && launches-- > 0) {
        if (a.until > a.most) emulated::fail("a launch left a system running at its last iteration");
        a.until = chunk == 0 ? a.most + 1 : std::min(a.until + chunk, a.most + 1);
        *a.arrived = 0;
        for (emulated::Lane& lane : emulated::lanes) lane.done = false;
        emulated::launch(body, [](int block, int thread) { blockIdx.x = block; threadIdx.x = thread; });
    }
    for (const Array& array : arrays) array.check();
    write(folder + "/homes", a.homes, SYSTEMS * VECTORS * a.stride * sizeof(real));
    write(folder + "/history", a.history, SYSTEMS * a.histories * sizeof(double));
    write(folder + "/state", a.state, SYSTEMS * sizeof(State));
    return 0;
}
