// Runs a solver's kernel whose text is in kernel.h to its end, CHUNK iterations per launch, or for LAUNCHES
// launches: solver FOLDER SEED CHUNK LAUNCHES.
//
// FOLDER/arrays holds `Arguments` and its arrays one after another, each after three lengths in bytes: its own, what is
// before it in the array of the whole system, and that of its content; arrays.h names them in their order. Each slab of
// the launch has such arguments. The vectors and the history go to FOLDER/homes and FOLDER/history, the state to
// FOLDER/state: vectors of all slabs, what all slabs have alike of the first.

#include "device.h"

#include "kernel.h"

namespace {

constexpr int SYSTEMS = BATCHED ? BLOCKS_LAUNCHED : 1;

Here here;

void body() { krylov(here); }

std::vector<emulated::Array> arrays;

// An array of a slab: what it has, and where that begins.
struct Part {
    unsigned char* first;
    size_t bytes;
};

std::map<std::string, Part> parts[HERE];

template <class T>
T* next(FILE* file, Part& part)
{
    unsigned long long lengths[3];
    if (fread(lengths, 8, 3, file) != 3) emulated::fail("cannot read lengths");
    arrays.emplace_back(lengths[0]);
    part = {arrays.back().first(), lengths[0]};
    if (lengths[2] > lengths[0] || fread(part.first, 1, lengths[2], file) != lengths[2]) emulated::fail("cannot read an array");
    return reinterpret_cast<T*>(part.first - lengths[1]);
}

// Puts what other slabs store into one region of each slab, at the same places, and tells each where the others' are.
void connect()
{
    constexpr size_t LINE = 128;
    unsigned char* regions[HERE];
    for (int slab = 0; slab < HERE; ++slab) {
        Arguments& a = here.of[slab];
        std::map<std::string, Part>& own = parts[slab];
        const char* const names[] = {"arrived", "partials", "exchanged", "tagged"};
        size_t begins[4], at = 0;
        for (int n = 0; n < 4; ++n) {
            begins[n] = at;
            at += (own[names[n]].bytes + LINE - 1) / LINE * LINE;
        }
        arrays.emplace_back(at);
        regions[slab] = arrays.back().first();
        for (int n = 0; n < 4; ++n) memcpy(regions[slab] + begins[n], own[names[n]].first, own[names[n]].bytes);
        a.arrived = reinterpret_cast<unsigned*>(regions[slab] + begins[0]);
        a.partials = reinterpret_cast<real*>(regions[slab] + begins[1]);
        a.exchanged = reinterpret_cast<real*>(regions[slab] + begins[2]);
        a.tagged = reinterpret_cast<unsigned long long*>(regions[slab] + begins[3]);
    }
    for (int slab = 0; slab < HERE; ++slab) {
        long long* const beyond = const_cast<long long*>(here.of[slab].beyond);
        for (int other = 0, n = 0; other < HERE; ++other)
            if (other != slab) beyond[n++] = regions[other] - regions[slab];
    }
}

void write(const std::string& path, const void* from, size_t bytes, const char* mode = "wb")
{
    FILE* file = fopen(path.c_str(), mode);
    if (!file || fwrite(from, 1, bytes, file) != bytes || fclose(file) != 0) emulated::fail("cannot write " + path);
}

}  // namespace

int main(int, char** words)
{
    const std::string folder = words[1];
    emulated::seed(atoi(words[2]));
    const unsigned chunk = atoi(words[3]);
    unsigned long long launches = strtoull(words[4], nullptr, 10);
    FILE* file = fopen((folder + "/arrays").c_str(), "rb");
    if (!file) emulated::fail("cannot read the arrays");
    arrays.reserve(32 * HERE);
    for (int slab = 0; slab < HERE; ++slab) {
        Arguments& a = here.of[slab];
        std::map<std::string, Part>& own = parts[slab];
        // The host's struct, byte by byte; then the arrays that its addresses stand for.
        if (fread(&a, sizeof a, 1, file) != 1) emulated::fail("cannot read the arguments");
#define ARRAY(name) a.name = next<std::remove_pointer_t<decltype(a.name)>>(file, own[#name]);
#include "arrays.h"
    }
    if constexpr (SLABS > 1) connect();
    Arguments& a = here.of[0];
    if (fgetc(file) != EOF) emulated::fail("there are more arrays than arguments");
    const auto running = [&] { return std::any_of(a.state, a.state + SYSTEMS, [](const State& s) { return s.status == RUNNING; }); };
    while (running() && launches-- > 0) {
        if (a.until > a.most) emulated::fail("a launch left a system running at its last iteration");
        const unsigned until = chunk == 0 ? a.most + 1 : std::min(a.until + chunk, a.most + 1);
        for (Arguments& own : here.of) {
            // As many tags as the launch before may have given.
            own.tags += own.until + 2;
            own.until = until;
            own.arrived[0] = 0;
            if constexpr (SLABS > 1) own.arrived[GIVEN_UP] = own.arrived[OWN_ARRIVED] = 0;
        }
        for (emulated::Lane& lane : emulated::lanes) lane.done = false;
        emulated::launch(body, [](int block, int thread) { blockIdx.x = block; threadIdx.x = thread; });
    }
    for (const emulated::Array& array : arrays) array.check();
    for (int slab = 0; slab < HERE; ++slab) {
        const Part& homes = parts[slab]["homes"];
        write(folder + "/homes", homes.first, homes.bytes, slab == 0 ? "wb" : "ab");
        const Arguments& own = here.of[slab];
        if (memcmp(own.state, a.state, SYSTEMS * sizeof(State)) != 0) emulated::fail("slabs have other states");
        if (memcmp(own.history, a.history, a.state->length * sizeof(double)) != 0) emulated::fail("slabs have other histories");
    }
    write(folder + "/history", a.history, SYSTEMS * a.histories * sizeof(double));
    write(folder + "/state", a.state, SYSTEMS * sizeof(State));
    return 0;
}
