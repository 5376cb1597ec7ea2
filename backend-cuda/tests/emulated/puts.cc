// Ranks that store planes into each other's memory, by the kernel in kernel.h: program FOLDER SEED RING ROUNDS. All ranks are one
// launch, so that any may be ahead of any other; before each exchange a rank makes its planes anew from those that it has
// got. The values that all have in the end are compared with those of one loop over all ranks.

#include "device.h"

#include "kernel.h"

// Of each rank an own value and one from each side, in pieces of several lengths, one of them of no whole vectors.
constexpr int RANKS = DEVICES_LAUNCHED, OWN_BLOCKS = BLOCKS_LAUNCHED / RANKS, FIELDS = 3;
constexpr int WORDS[FIELDS] = {200, 7, 64}, MOST = 256;

struct Rank {
    alignas(16) unsigned own[2][FIELDS][MOST], halo[2][FIELDS][MOST]; // at the low side and the high one
    Post posts[RANKS];
    unsigned stored[WAYS];
};
emulated::DeviceVector<Rank> ranks(RANKS);
unsigned word, ring, rounds, begun[RANKS]; // the launches that have begun

// Threads that have ended their launches, and those whose stores others see.
unsigned ended[RANKS], settled[RANKS];

int beside(int rank, int side)
{
    const int other = side == 0 ? rank - 1 : rank + 1;
    return ring ? (other + RANKS) % RANKS : other >= 0 && other < RANKS ? other : -1;
}

unsigned made(int rank, unsigned round, int side, int field, int at, unsigned low, unsigned high)
{
    return (((rank * 31 + round) * 31 + side) * 31 + field) * 31 + at + 3 * low + 5 * high;
}

// Makes a rank's planes for a round from what it has got in the one before.
template <class Wait>
void make(Rank& rank, int number, unsigned round, const Wait& wait)
{
    for (int field = 0; field < FIELDS; ++field)
        for (int at = 0; at < WORDS[field]; ++at) {
            const unsigned low = rank.halo[0][field][at], high = rank.halo[1][field][at];
            wait();
            for (int side = 0; side < 2; ++side) rank.own[side][field][at] = made(number, round, side, field, at, low, high);
        }
}

// What goes to and comes from a neighbour: first what lies at the sender's low side, as in a ring of two.
Exchange exchange(int number, unsigned round)
{
    Exchange e = {};
    e.round = round;
    e.deadline = ~0ull;
    e.word = &word;
    for (int other = 0; other < RANKS; ++other) {
        Way way = {};
        for (int side = 0; side < 2; ++side)
            for (int field = 0; field < FIELDS && beside(number, side) == other; ++field) {
                way.sent[way.sends] = (unsigned long long)ranks[number].own[side][field];
                way.bytes[way.sends++] = WORDS[field] * sizeof(unsigned);
            }
        for (int side = 1; side >= 0; --side)
            for (int field = 0; field < FIELDS && beside(number, side) == other; ++field) way.places[way.receives++] = (unsigned long long)ranks[number].halo[side][field];
        if (way.sends == 0) continue;
        way.own = &ranks[number].posts[other];
        way.theirs = &ranks[other].posts[number];
        way.stored = &ranks[number].stored[e.count];
        e.ways[e.count++] = way;
    }
    return e;
}

void run()
{
    const int number = emulated::block() / OWN_BLOCKS, block = emulated::block() % OWN_BLOCKS;
    Rank& rank = ranks[number];
    for (unsigned round = 1; round <= rounds; ++round) {
        if (block == 0 && threadIdx.x == 0) {
            make(rank, number, round, emulated::sometimes);
            emulated::release(true);
            begun[number] = round;
        }
        while (begun[number] < round) emulated::pause();
        blockIdx.x = block;
        const Exchange e = exchange(number, round);
        stores(e);
        // The next launch begins when this one has ended, and sees what it has stored.
        const auto all = [&](unsigned& count) {
            ++count;
            while (count < round * OWN_BLOCKS * THREADS_LAUNCHED) emulated::pause();
        };
        all(ended[number]);
        emulated::release(true);
        all(settled[number]);
    }
}

int main(int, char** words)
{
    emulated::seed(atoi(words[2]));
    ring = atoi(words[3]);
    rounds = atoi(words[4]);
    gridDim.x = OWN_BLOCKS;
    emulated::launch(run, [](int block, int thread) {
        blockIdx.x = block % OWN_BLOCKS;
        threadIdx.x = thread;
    });
    const emulated::DeviceVector<Rank> found = ranks;
    for (Rank& rank : ranks) memset(rank.halo, 0, sizeof rank.halo);
    for (unsigned round = 1; round <= rounds; ++round) {
        for (int number = 0; number < RANKS; ++number) make(ranks[number], number, round, [] {});
        for (int number = 0; number < RANKS; ++number)
            for (int side = 0; side < 2; ++side)
                if (beside(number, side) >= 0) memcpy(ranks[number].halo[side], ranks[beside(number, side)].own[1 - side], sizeof ranks[number].halo[side]);
    }
    for (int number = 0; number < RANKS; ++number)
        for (int side = 0; side < 2; ++side)
            for (int field = 0; field < FIELDS; ++field)
                for (int at = 0; at < MOST; ++at) {
                    const unsigned right = at < WORDS[field] ? ranks[number].halo[side][field][at] : 0;
                    if (found[number].halo[side][field][at] != right) emulated::fail("planes are not those of the neighbour");
                }
    if (word != 0) emulated::fail("a wait was given up");
}
