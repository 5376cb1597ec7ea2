// Runs one launch of a kernel whose text is in kernel.h: main FOLDER SEED.
//
// FOLDER/fields holds the fields one after another, FOLDER/parameters the parameters, FOLDER/varying those that vary from
// stage to stage, all of the kernel's type; of a kernel that notes values, FOLDER/cells, firsts, lines and columns its tables. The fields
// after the launch go to FOLDER/result, what is noted to FOLDER/noted. Macros from the command line describe the launch:
// ARRAY_ENDS, BLOCKS_LAUNCHED, THREADS_LAUNCHED, SHARED_BYTES, ARCHITECTURE, for a streaming kernel PASSES, STAGE for
// the only stage of a stepwise one, and for a persistent kernel STEPS, and RESIDENT where it holds the whole domain, with EXCHANGES_LAUNCHED, the number of exchanges, if tiles
// exchange words with tags; MEMBERS_LAUNCHED of a batch, whose members lie one after another in fields and parameters.

#include "device.h"

#include "kernel.h"

namespace {

#ifdef MEMBERS_LAUNCHED
constexpr size_t MEMBERS = MEMBERS_LAUNCHED;
#else
constexpr size_t MEMBERS = 1;
#endif
constexpr size_t ROWS = MEMBERS * EXTENT_S * EXTENT_Y, CELLS = ROWS * EXTENT_X; // of the domain, or of all members'
constexpr size_t HELD = ROWS * PITCH;                                        // of a field in device memory

// The fields of each array, by the number after their last.
constexpr int ENDS[] = {ARRAY_ENDS};
static_assert(sizeof ENDS == ARRAYS * sizeof *ENDS && ENDS[ARRAYS - 1] == FIELDS);

int array_with(int field) { return std::upper_bound(ENDS, ENDS + ARRAYS, field) - ENDS; }
int first_in(int array) { return array == 0 ? 0 : ENDS[array - 1]; }

// Fields one after another in device memory.
struct Array : emulated::Array {
    explicit Array(size_t fields) : emulated::Array(fields * HELD * sizeof(real)) {}

    real* first() { return reinterpret_cast<real*>(emulated::Array::first()); }
    real* row(int field, size_t r) { return first() + field * HELD + r * PITCH; }
};

Buffers buffers, turns;                  // `turns`: what tiles of a resident kernel exchange by counters
#ifdef PASSES
Turns passes;
#endif
Parameters parameters[MEMBERS];
emulated::DeviceVector<unsigned> flags(32 * BLOCKS_LAUNCHED, 0);

#ifdef EXCHANGES_LAUNCHED
// What tiles exchange by tags. The words are as exchanges before this launch have left them, of which there were
// none, or so many that their number is about to begin anew.
struct ExchangeBuffers {
    static constexpr size_t WORDS = EXCHANGE_BYTES / 8, GUARD = 4096;
    emulated::DeviceVector<Tagged> all = emulated::DeviceVector<Tagged>(WORDS + 2 * GUARD, 0);
    unsigned before;

    explicit ExchangeBuffers(bool first) : before(first ? 0 : 0xfffffffe)
    {
        for (size_t i = 0; i < WORDS && !first; ++i) all[GUARD + i] = Tagged(before - (i / (CHANGING * BUFFER_WORDS) % 2 == (before & 1) ? 0 : 1)) << 32 | 0x7fc0dead;
    }

    ExchangeBuffer exchange_buffer() { return {all.data() + GUARD, before}; }

    void check() const
    {
        for (size_t i = 0; i < GUARD; ++i)
            if (all[i] != 0 || all[GUARD + WORDS + i] != 0) emulated::fail("written beyond the exchange buffers");
        // The next launch goes on where the host thinks that this one has ended.
        bool ended = EXCHANGES_LAUNCHED == 0;
        for (size_t i = 0; i < WORDS; ++i) {
            const unsigned number = unsigned(all[GUARD + i] >> 32) - before;
            ended = ended || number == EXCHANGES_LAUNCHED;
            if (int(number) > EXCHANGES_LAUNCHED) emulated::fail("an exchange more than the host counts");
        }
        if (!ended) emulated::fail("an exchange less than the host counts");
    }
};
std::unique_ptr<ExchangeBuffers> exchange_buffers;
ExchangeBuffer exchange_buffer() { return exchange_buffers->exchange_buffer(); }
#elif defined RESIDENT
ExchangeBuffer exchange_buffer() { return {turns}; }
#endif

void body()
{
#if defined MEMBERS_LAUNCHED
    resident(buffers, parameters, STEPS);
#elif defined RESIDENT
    resident(buffers, exchange_buffer(), *parameters, flags.data(), STEPS);
#elif defined STAGE
    stage_0(buffers, *parameters);
#elif defined STEPS
    persistent(buffers, *parameters, flags.data(), STEPS);
#else
    stream(passes, *parameters, flags.data(), PASSES);
#endif
}

#ifdef PASSES
// Has a slab's kernel give planes to memory of each array's own, where they keep their numbers; of that above there is none in a
// slab that gives nothing there.
void give(Given<false>&, std::vector<std::vector<Array>>&) {}
void give(Given<true>& given, std::vector<std::vector<Array>>& arrays)
{
    for (int a = 0; a < ARRAYS; ++a) {
        given.low[a] = GIVEN_LOW > 0 ? arrays[a][2].first() : nullptr;
        given.high[a] = GIVEN_HIGH > 0 ? arrays[a][2].first() : nullptr;
    }
}

// What was given is what the kernel has stored, and nothing else was stored.
void check_given(const Given<false>&, std::vector<std::vector<Array>>&) {}
void check_given(const Given<true>&, std::vector<std::vector<Array>>& arrays)
{
    for (int a = 0; a < ARRAYS; ++a)
        for (size_t r = 0; r < ROWS; ++r) {
            const Offset plane = r / EXTENT_Y;
            const bool own = plane >= OWN_FIRST && plane < OWN_LAST;
            const bool given = own && (plane < OWN_FIRST + GIVEN_LOW || plane >= OWN_LAST - GIVEN_HIGH);
            for (size_t x = 0; x < EXTENT_X; ++x) {
                const real stored = arrays[a][1].row(0, r)[x], there = arrays[a][2].row(0, r)[x];
                if (std::isnan(stored) == own || std::isnan(there) == given) emulated::fail("the planes stored are not the reference's: some are missing, or not the kernel's to store");
                if (given && memcmp(&stored, &there, sizeof(real)) != 0) emulated::fail("the planes given are not the reference's");
            }
        }
}
#endif

void read(const std::string& path, void* to, size_t bytes)
{
    FILE* file = fopen(path.c_str(), "rb");
    if (!file || fread(to, 1, bytes, file) != bytes) emulated::fail("cannot read " + path);
    fclose(file);
}

// The parameters that vary, of each stage of all steps of the launch.
emulated::DeviceVector<real> varying;
template <bool NOTE>
void vary(ParametersOf<false, NOTE>&, const std::string&) {}
template <bool NOTE>
void vary(ParametersOf<true, NOTE>& all, const std::string& folder)
{
    varying.resize(VARYING_VALUES);
    read(folder + "/varying", varying.data(), VARYING_VALUES * sizeof(real));
    all.varying = varying.data();
}

// What a kernel notes, and the tables by which it finds that.
struct Notes {
    std::vector<int> cells, firsts, lines, columns;
    emulated::DeviceVector<real> values;

    std::vector<int> read_all(const std::string& path)
    {
        std::vector<int> all;
        FILE* file = fopen(path.c_str(), "rb");
        if (!file) emulated::fail("cannot read " + path);
        for (int word; fread(&word, sizeof word, 1, file) == 1;) all.push_back(word);
        fclose(file);
        return all;
    }
} notes;
template <bool VARY>
void note(ParametersOf<VARY, false>&, const std::string&) {}
template <bool VARY>
void note(ParametersOf<VARY, true>& all, const std::string& folder)
{
    notes.cells = notes.read_all(folder + "/cells");
    notes.firsts = notes.read_all(folder + "/firsts");
    notes.lines = notes.read_all(folder + "/lines");
    notes.columns = notes.read_all(folder + "/columns");
    const size_t count = NOTED_VALUES;
    notes.values.resize(STEPS_NOTED * count);
    for (size_t i = 0; i < STEPS_NOTED * count; ++i) notes.values[i] = NAN;
    all.noted = {notes.cells.data(), notes.firsts.data(), notes.lines.data(), notes.columns.data(), notes.values.data(), int(count)};
}
void leave(const std::string& folder)
{
    FILE* file = fopen((folder + "/noted").c_str(), "wb");
    if (!file || fwrite(notes.values.data(), sizeof(real), notes.values.size(), file) != notes.values.size()) emulated::fail("cannot write what was noted");
    fclose(file);
}

}  // namespace

int main(int, char** arguments)
{
    const std::string folder = arguments[1];
    const unsigned seed = atoi(arguments[2]);
    emulated::seed(seed);

    std::vector<real> start(FIELDS * CELLS);
    read(folder + "/fields", start.data(), start.size() * sizeof(real));
    if (PARAMETERS > 0) read(folder + "/parameters", parameters, MEMBERS * PARAMETERS * sizeof(real));
    vary(*parameters, folder);
    note(*parameters, folder);
    bool changes[FIELDS];
    each<FIELDS>([&](auto f) { changes[f.value] = written<f.value>(); });
    std::vector<std::vector<Array>> arrays;
    for (int a = 0; a < ARRAYS; ++a) {
        arrays.emplace_back();
        for (int copy = 0; copy < 3; ++copy) arrays.back().emplace_back(ENDS[a] - first_in(a));
        const bool change = changes[first_in(a)];
        for (int f = first_in(a); f < ENDS[a]; ++f) {
            if (changes[f] != change) emulated::fail("an array of fields of which some change");
            for (size_t r = 0; r < ROWS; ++r) std::copy_n(start.data() + f * CELLS + r * EXTENT_X, EXTENT_X, arrays[a][0].row(f - first_in(a), r));
        }
        buffers.current[a] = arrays[a][0].first();
        buffers.next[a] = arrays[a][change].first();
        turns.current[a] = buffers.next[a];
        turns.next[a] = arrays[a][2 * change].first();
    }

#ifdef PASSES
    passes.buffers[0] = passes.buffers[1] = buffers;
    for (int f = 0; f < ARRAYS; ++f) std::swap(passes.buffers[1].current[f], passes.buffers[1].next[f]);
    give(passes, arrays);
#endif
#ifdef EXCHANGES_LAUNCHED
    exchange_buffers = std::make_unique<ExchangeBuffers>(seed % 2 == 0);
#endif
    emulated::launch(body, [](int block, int thread) { blockIdx.x = block; threadIdx.x = thread; });
#ifdef EXCHANGES_LAUNCHED
    exchange_buffers->check();
#endif

#ifdef PASSES
    check_given(passes, arrays);
#endif
    if (NOTES) leave(folder);
    FILE* result = fopen((folder + "/result").c_str(), "wb");
    const bool flipped[] = {FLIPPED};    // the fields whose result is in the second buffer
    for (const auto& copies : arrays)
        for (const Array& array : copies) array.check();
    for (int f = 0; f < FIELDS; ++f) {
        auto& array = arrays[array_with(f)];
        const int own = f - first_in(array_with(f));
        for (size_t r = 0; r < ROWS; ++r) {
#ifdef PASSES
            if (PASSES == 1 && memcmp(array[0].row(own, r), start.data() + f * CELLS + r * EXTENT_X, EXTENT_X * sizeof(real)) != 0) emulated::fail("a pass changed its input");
#endif
            if (!result || fwrite(array[flipped[f]].row(own, r), sizeof(real), EXTENT_X, result) != EXTENT_X) emulated::fail("cannot write the result");
        }
    }
    return fclose(result);
}
