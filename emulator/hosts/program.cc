// Runs the launches of a program that is not plain, whose kernels are in kernel.h: program FOLDER SEED.
//
// FOLDER/launches holds, as 64-bit numbers, the count of buffers and each buffer's length in bytes before
// its content; the scalars likewise; the values of the leaves; the matrices as the buffers; the values of the record's
// rows; the steps to the first row and the bits of the first mark; the count of launches, and for each the kernel, its blocks, its
// threads and the buffer of each slot. entries.h names the kernels, and chains with the count of their slots: the blocks of a
// chain run side by side. The buffers after all launches go to FOLDER/result, behind them the scalars, the rows, and the
// progress.
//
// Of a persistent kernel (SCHEDULES), whose blocks run side by side, the launches are the schedules: the count of each one's
// tasks, the tasks and the buffer of each slot, and its tables of waits; then the count of launches, and for each the
// schedule, the first task and the count of tasks.

#include "device.h"

#include "kernel.h"

namespace {

typedef emulated::Array Memory;

FILE* file;

unsigned long long number()
{
    unsigned long long value;
    if (fread(&value, 8, 1, file) != 1) emulated::fail("cannot read a number");
    return value;
}

Memory content()
{
    Memory memory(number());
    const size_t read = fread(memory.first(), 1, memory.length(), file);
    if (read != memory.length()) emulated::fail("cannot read a buffer");
    return memory;
}

Arguments arguments;
std::vector<Memory> buffers;

// Names the buffers of the slots, whose numbers come next.
void name_buffers()
{
    for (int slot = 0; slot < SLOTS; ++slot) {
        const auto buffer = number();
        const bool named = buffer < buffers.size();
        arguments.values[slot] = named ? reinterpret_cast<real*>(buffers[buffer].first()) : nullptr;
    }
}

#ifdef SCHEDULES

// A schedule and its tables.
struct Tables {
    std::vector<Task> tasks;
    std::vector<unsigned long long> words;
    std::vector<unsigned> first;
    std::vector<Wait> waits;

    Tables()
    {
        for (auto left = number(); left > 0; --left) {
            const unsigned kernel = number(), tiles = number();
            tasks.push_back({kernel, tiles});
            name_buffers();
            const size_t before = words.size();
            words.resize(before + WORDS);
            memcpy(&words[before], &arguments, sizeof arguments);
        }
        for (auto left = number(); left > 0; --left) first.push_back(number());
        for (auto left = number(); left > 0; --left) {
            const unsigned block = number(), back = number();
            waits.push_back({block, back});
        }
    }
};

TaskSchedule schedule;

void body() { program_steps(schedule); }

void launch_all()
{
    std::vector<Tables> all(0);
    for (int left = SCHEDULES; left > 0; --left) all.emplace_back();
    for (auto left = number(); left > 0; --left) {
        Tables& tables = all[number()];
        const unsigned begin = number(), count = number();
        emulated::DeviceVector<unsigned> flags(32 * BLOCKS_LAUNCHED, 0);
        schedule = {tables.tasks.data(), tables.words.data(), tables.first.data(), tables.waits.data(), flags.data(), unsigned(tables.tasks.size()), begin, count};
        for (auto& cached : emulated::cached<real>) cached.clear();
        for (emulated::Lane& lane : emulated::lanes) lane.done = false;
        emulated::launch(body, [](int block, int thread) { blockIdx.x = block; threadIdx.x = thread; });
    }
}

#else

struct Kernel {
    const char* name;
    void (*run)(const void* words);
    int slots;
    bool is_chain;
};

const Kernel kernels[] = {
#define ENTRY(name) {#name, [](const void* words) { name(*static_cast<const Arguments*>(words)); }, SLOTS, false},
#define CHAIN(name, slots) {#name, [](const void* words) { name(*static_cast<const ChainArguments<slots>*>(words)); }, slots, true},
#include "entries.h"
};

const Kernel* running;
std::vector<unsigned long long> words;   // its arguments: the buffers, and what follows them in `Arguments`

void body() { running->run(words.data()); }

// Names the buffers of the kernel's slots, whose numbers come next.
void name_words()
{
    words.clear();
    for (int slot = 0; slot < running->slots; ++slot) {
        const auto buffer = number();
        words.push_back(buffer < buffers.size() ? reinterpret_cast<unsigned long long>(buffers[buffer].first()) : 0);
    }
    const auto* const others = reinterpret_cast<const unsigned long long*>(&arguments) + SLOTS;
    words.insert(words.end(), others, others + sizeof arguments / sizeof *others - SLOTS);
}

// Runs the blocks of a cluster.
void run_cluster(int blocks, int threads)
{
    if (blocks > BLOCKS_LAUNCHED || threads > THREADS_LAUNCHED) emulated::fail("a cluster of another size");
    emulated::threads = threads;
    emulated::blocks_launched = blocks;
    for (emulated::Lane& lane : emulated::lanes) lane.done = false;
    emulated::launch(body, [](int block, int thread) { blockIdx.x = block; threadIdx.x = thread; });
}

// Only kernels that join values need lanes that wait for each other.
void run_block(int block, int threads)
{
    blockIdx.x = block;
    if (strncmp(running->name, "update", 6) != 0 && threads > 1) {
        if (threads > THREADS_LAUNCHED || threads % emulated::WARP != 0) emulated::fail("a block of another size");
        emulated::threads = threads;
        emulated::blocks_launched = 1;
        for (emulated::Lane& lane : emulated::lanes) lane.done = false;
        emulated::launch(body, [block](int, int thread) { blockIdx.x = block; threadIdx.x = thread; });
        return;
    }
    std::vector<int> order(threads);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), emulated::drawn);
    for (const int thread : order) {
        threadIdx.x = thread;
        body();
    }
}

void launch_all()
{
    for (auto left = number(); left > 0; --left) {
        running = kernels + number();
        std::vector<int> blocks(number());
        const int threads = number();
        name_words();
        if (running->is_chain) {
            run_cluster(blocks.size(), threads);
            continue;
        }
        gridDim.x = blocks.size();
        std::iota(blocks.begin(), blocks.end(), 0);
        std::shuffle(blocks.begin(), blocks.end(), emulated::drawn);
        for (const int block : blocks) run_block(block, threads);
    }
}

#endif

}  // namespace

int main(int, char** words)
{
    const std::string folder = words[1];
    emulated::seed(atoi(words[2]));
    file = fopen((folder + "/launches").c_str(), "rb");
    if (!file) emulated::fail("cannot read the launches");
    for (auto left = number(); left > 0; --left) buffers.push_back(content());
    Memory scalars = content(), leaves(number() * sizeof(real));
    // In f64, and where fields are f32, behind them rounded.
    const size_t exact = sizeof(real) < sizeof(double) ? scalars.length() / 12 * 8 : 0;
    arguments.exact = reinterpret_cast<double*>(scalars.first());
    arguments.scalars = reinterpret_cast<real*>(scalars.first() + exact);
    arguments.leaves = reinterpret_cast<real*>(leaves.first());
    Memory matrices = content();
    arguments.matrices = reinterpret_cast<const real*>(matrices.first());
    Memory rows(number() * sizeof(double)), progress(sizeof(Progress));
    arguments.rows = reinterpret_cast<double*>(rows.first());
    arguments.progress = reinterpret_cast<Progress*>(progress.first());
    *arguments.progress = {0, 0, 0, number(), 0.0, 0, 0};
    const unsigned long long mark = number();
    memcpy(&arguments.progress->mark, &mark, sizeof mark);
    launch_all();
    leaves.check();
    for (const Memory& memory : {scalars, rows, progress}) buffers.push_back(memory);
    FILE* result = fopen((folder + "/result").c_str(), "wb");
    for (Memory& memory : buffers) {
        memory.check();
        const size_t written = result ? fwrite(memory.first(), 1, memory.length(), result) : 0;
        if (written != memory.length()) emulated::fail("cannot write the result");
    }
    return fclose(result);
}
