// The lanes of a launch, each with a program counter and a stack of its own, taking turns in an order drawn
// at random.
//
// A lane runs until it meets others (a barrier, a shuffle, a vote), pauses (it polls a flag) or, now and then, is about to
// store. Between two such points any lane may be ahead of any other, which is what CUDA allows since Volta. One seed of four
// also holds lanes back that have just met others, time and again, until nobody else gets on: what a missing wait spoils may
// need one lane to be later than all others, which turns drawn one by one hardly ever make. A lane's stores reach
// device memory late and in any order (memory.h); shared memory is sequentially consistent. All blocks are resident.
// The program ends with a message at what cannot or must not happen on a device: lanes of a warp that meet at
// different operations, and lanes that wait for ever.

#pragma once

#include "memory.h"

namespace emulated {

constexpr size_t STACK_BYTES = size_t(1) << 18;
constexpr long PATIENCE = 64L * LANES / WARP;            // turns without any event after which all stores arrive
constexpr long HELD_TURNS = 2L * LANES / WARP;           // … or, while lanes are held back, these go on
constexpr long IDLE_TURNS = 1000L * LANES / WARP;        // turns without any event after which no lane will get on

// Lanes that wait until all of them have arrived.
struct Rendezvous {
    int arrived = 0;
    long ended = 0;                      // meetings that are over
    const char* what = "";               // the operation at which they meet
};

struct Copy {
    void* to;
    const void* from;
    int bytes;
};

struct Lane {
    ucontext_t first;                    // where it begins, ...
    jmp_buf here;                        // ... and where it goes on
    bool begun = false, done = false;
    const Rendezvous* awaited = nullptr;    // the rendezvous that the lane is in, ...
    long number = 0;                     // ... and how many of it were over before
    unsigned char shown[8];              // what it shows to others in a shuffle or a vote
    std::vector<Copy> open;              // copies that no group has yet, ...
    std::vector<std::vector<Copy>> groups; // ... and groups that have not been waited for
};

unsigned late = 100;                     // of a hundred copies, those that arrive only when they are waited for
jmp_buf scheduler;
Lane lanes[LANES];
Rendezvous warps[LANES / WARP], blocks[BLOCKS_LAUNCHED], cluster;
long events = 0;                         // meetings that ended and lanes that finished
constexpr size_t SHARED_SLOT = (SHARED_BYTES + 127) / 128 * 128 + 128;
alignas(128) unsigned char memory[BLOCKS_LAUNCHED][SHARED_SLOT];
bool holds = false;                      // whether lanes are held back
int held = 0, held_end = 0;              // the lanes that are

// Begins with the numbers that follow from a seed.
inline void seed(unsigned number)
{
    const unsigned lates[] = {100, 0, 50}, slows[] = {32, 8, 128};
    drawn.seed(number);
    late = lates[number % 3];
    slow = slows[number % 3];
    holds = number % 4 == 3;
}

inline unsigned char* shared_memory() { return memory[block()]; }

// Lets the scheduler choose; unlike swapcontext a jump asks the system for nothing.
inline void suspend()
{
    seep(slow);
    if (_setjmp(lanes[current].here) == 0) _longjmp(scheduler, 1);
}

// Lets a lane go on until it suspends itself.
inline void resume(Lane& lane)
{
    see(current);
    if (_setjmp(scheduler) != 0) return;
    if (lane.begun) _longjmp(lane.here, 1);
    lane.begun = true;
    setcontext(&lane.first);
}

// Lets other lanes run: called in loops that wait for a value in memory.
inline void pause() { suspend(); }

// … or at places where, now and then, others may be faster.
inline void sometimes() { if (drawn() % 4 == 0) suspend(); }

inline void aligned(const void* at, size_t bytes) { if (size_t(at) % bytes != 0) fail("an access that is not aligned to its size"); }

// Some of those that have met, a lane or its warp, are held back.
inline void hold(int members)
{
    if (!holds || held < held_end || drawn() % (8 * LANES / members) != 0) return;
    const int lane = current / members * members + drawn() % members, count = drawn() % 2 == 0 ? 1 : WARP;
    held = lane / count * count;
    held_end = held + count;
    if (held <= current && current < held_end) suspend();
}

inline void meet(Rendezvous& rendezvous, int members, const char* what)
{
    if (rendezvous.arrived > 0 && strcmp(rendezvous.what, what) != 0)
        fail("lane " + std::to_string(current) + " is at " + what + " where others are at " + rendezvous.what);
    rendezvous.what = what;
    if (++rendezvous.arrived == members) {
        rendezvous.arrived = 0;
        ++rendezvous.ended;
        ++events;
        hold(members);
        return;
    }
    lanes[current].awaited = &rendezvous;
    lanes[current].number = rendezvous.ended;
    suspend();
}

inline void meet_warp(const char* what) { meet(warps[current / WARP], WARP, what); }
inline void meet_block(const char* what) { meet(blocks[block()], threads, what); }
inline void meet_cluster(const char* what) { meet(cluster, blocks_launched * threads, what); }

// Returns the place in another block's shared memory that `at` is in this block's.
template <class T>
T* remote(T* at, unsigned rank)
{
    const ptrdiff_t offset = reinterpret_cast<unsigned char*>(at) - shared_memory();
    if (offset < 0 || offset + ptrdiff_t(sizeof(T)) > SHARED_BYTES || rank >= BLOCKS_LAUNCHED) fail("a store beyond distributed shared memory");
    return reinterpret_cast<T*>(memory[rank] + offset);
}

// Returns the value that lane `from` of the launch shows, while this lane shows `value`.
template <class T>
T exchange(T value, int from, const char* what)
{
    static_assert(sizeof(T) <= sizeof(Lane::shown));
    memcpy(lanes[current].shown, &value, sizeof(T));
    meet_warp(what);
    memcpy(&value, lanes[from].shown, sizeof(T));
    meet_warp(what);                     // nobody shows the next value before all have seen this one
    return value;
}

// Starts a copy to shared memory that goes on while the lane does something else. A lane sees its own copies
// once it has waited for them, and others' once it has met those lanes after that.
inline void copy(void* to, const void* from, int bytes)
{
    unsigned char* const begin = shared_memory();
    unsigned char* const target = static_cast<unsigned char*>(to);
    if (target < begin || target + bytes > begin + SHARED_BYTES) fail("a copy beyond shared memory");
    if (size_t(to) % bytes != 0 || size_t(from) % bytes != 0) fail("a copy that is not aligned to its size");
    if (drawn() % 100 < late) lanes[current].open.push_back({to, from, bytes});
    else memcpy(to, from, bytes);
}

inline void copies_commit()
{
    lanes[current].groups.push_back({});
    lanes[current].groups.back().swap(lanes[current].open);
}

// Waits for all groups of the lane's copies but the last `pending`.
inline void copies_await(size_t pending)
{
    auto& groups = lanes[current].groups;
    while (groups.size() > pending) {
        for (const Copy& copy : groups.front()) memcpy(copy.to, copy.from, copy.bytes);
        groups.erase(groups.begin());
    }
}

void (*kernel)();

// Ends the lane that runs, as CUDA's `exit` does.
inline void end_lane()
{
    lanes[current].done = true;
    ++events;
    suspend();
}

inline void lane_begins()
{
    kernel();
    end_lane();
}

// Gives each lane of a warp that can go on a turn, in an order drawn at random; returns how many finished.
template <class Enter>
int turn(int warp, const Enter& enter)
{
    int order[WARP], finished = 0;
    std::iota(order, order + WARP, warp * WARP);
    for (int i = WARP - 1; i > 0; --i) std::swap(order[i], order[drawn() % (i + 1)]);
    for (const int number : order) {
        Lane& lane = lanes[number];
        current = number;
        const bool is_held = held <= number && number < held_end;
        if (is_held || lane.done || (lane.awaited && lane.awaited->ended == lane.number)) {
            // What it has stored may arrive all the same.
            if (drawn() % slow == 0) {
                see(number);
                for (int level = 0; level < LEVELS; ++level) arrive_one(level);
            }
            continue;
        }
        lane.awaited = nullptr;
        enter(number / threads, number % threads);
        resume(lane);
        finished += lane.done;
    }
    return finished;
}

// Runs `body` once in every lane; `enter(block, thread)` is called whenever a lane takes its turn.
template <class Enter>
void launch(void (*body)(), const Enter& enter)
{
    kernel = body;
    memset(memory, 0xff, sizeof memory); // not a number, in either precision
    // Not initialised, so that only what is used takes memory; all launches have the same.
    static const std::unique_ptr<unsigned char[]> stacks(new unsigned char[LANES * STACK_BYTES]);
    const int count = blocks_launched * threads;
    for (int i = 0; i < count; ++i) {
        Lane& lane = lanes[i];
        lane.begun = false;
        getcontext(&lane.first);
        lane.first.uc_stack.ss_sp = stacks.get() + i * STACK_BYTES;
        lane.first.uc_stack.ss_size = STACK_BYTES;
        lane.first.uc_link = nullptr;    // no lane returns
        makecontext(&lane.first, lane_begins, 0);
    }
    long idle = 0;
    for (int left = count; left > 0;) {
        // A warp runs for a few turns or many, or until it waits for others: warps must be able to get far ahead.
        const int warp = drawn() % (count / WARP), turns = 1 << drawn() % 12;
        for (int i = 0; i < turns; ++i) {
            const long before = events;
            left -= turn(warp, enter);
            idle = events == before ? idle + 1 : 0;
            if (idle > 0) break;
        }
        if (idle == (held < held_end ? HELD_TURNS : PATIENCE)) {
            // What they wait for may be a store, or else a lane that is held back.
            if (settle(count)) idle = 0;
            else if (held < held_end) held = held_end = idle = 0;
        }
        if (idle > IDLE_TURNS) fail("lanes wait for ever");
    }
    settle(count);
    for (Lane& lane : lanes) {
        const auto is_under_way = [](const std::vector<Copy>& group) { return !group.empty(); };
        if (is_under_way(lane.open) || std::any_of(lane.groups.begin(), lane.groups.end(), is_under_way))
            fail("a lane has ended while its copies are under way");
        lane.groups.clear();
    }
    current = -1;
}

}  // namespace emulated
