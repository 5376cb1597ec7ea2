// Device memory, and the stores to it that others do not see yet.
//
// A store stays in a buffer of its lane until it reaches the memory: at random, when the buffer is full, or because the lane
// releases what it has stored. Stores of one lane to different words reach the memory in any order. Until then the store is
// seen by its lane alone; after `__syncwarp` by the lanes of the warp, after `__syncthreads` by those of the block, after a
// release of the device's scope by those of the device. A release of a wider scope takes along what is in these buffers,
// as CUDA's model of memory does.
//
// Lanes run one at a time, so a buffer needs no loads that look it up: while a lane runs, the stores that it sees are in the
// memory, and each buffer has what the memory holds without them. When another lane runs, the two change places.
//
// The compiler calls `__asan_store…` before each store (-fsanitize=kernel-address); calls for the device's memory are noted
// here. What acts on the memory itself is in functions that are UNNOTED.
#pragma once

#include "standard.h"

#define UNNOTED __attribute__((no_sanitize("kernel-address")))

#ifndef DEVICES_LAUNCHED
#define DEVICES_LAUNCHED 1
#endif

namespace emulated {

constexpr int WARP = 32, LANES = BLOCKS_LAUNCHED * THREADS_LAUNCHED;
constexpr int DEVICES = DEVICES_LAUNCHED, BLOCKS_OF_DEVICE = BLOCKS_LAUNCHED / DEVICES;

[[noreturn]] inline void fail(const std::string& why)
{
    fprintf(stderr, "%s\n", why.c_str());
    exit(1);
}

std::mt19937 drawn;                      // the same numbers everywhere
int threads = THREADS_LAUNCHED;          // of a block of this launch, which may have fewer than were compiled for
int blocks_launched = BLOCKS_LAUNCHED;   // of this launch, likewise
int current = -1;                        // the lane that runs, or -1

inline int block() { return current / threads; }

// All of the device's memory, which is never given back.
constexpr size_t DEVICE_BYTES = size_t(1) << 32;
unsigned char* const device_memory = static_cast<unsigned char*>(mmap(nullptr, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
size_t device_used = 0;

template <class T>
struct DeviceMemory {
    typedef T value_type;

    T* allocate(size_t count)
    {
        const size_t first = device_used;
        device_used += (count * sizeof(T) + 255) / 256 * 256;
        if (device_memory == MAP_FAILED || device_used > DEVICE_BYTES) fail("no device memory is left");
        return reinterpret_cast<T*>(device_memory + first);
    }
    void deallocate(T*, size_t) {}
    bool operator==(const DeviceMemory&) const { return true; }
};

template <class T>
using DeviceVector = std::vector<T, DeviceMemory<T>>;

// An array with guards around it that nobody may write; what nobody has written is not a number, in either precision.
struct Array {
    static constexpr size_t GUARD = size_t(1) << 15;
    DeviceVector<unsigned char> bytes;

    explicit Array(size_t length);
    unsigned char* first() { return bytes.data() + GUARD; }
    size_t length() const { return bytes.size() - 2 * GUARD; }

    void check() const
    {
        for (size_t i = 0; i < GUARD; ++i)
            if (bytes[i] != 0xff || bytes[bytes.size() - 1 - i] != 0xff) fail("written beyond an array");
    }
};

std::vector<std::pair<const unsigned char*, const unsigned char*>> arrays; // where each begins and ends

inline Array::Array(size_t length) : bytes(length + 2 * GUARD, 0xff) { arrays.emplace_back(first(), first() + length); }

// What is prefetched must be of an array.
inline void prefetched(const void* from)
{
    const auto* const place = static_cast<const unsigned char*>(from);
    if (std::none_of(arrays.begin(), arrays.end(), [&](const auto& array) { return array.first <= place && place < array.second; })) fail("prefetched beyond all arrays");
}

// Who sees a store that has not reached the memory: its lane, the warp, the block, the device.
enum Level { OF_LANE, OF_WARP, OF_BLOCK, OF_DEVICE, LEVELS };

constexpr int MOST[LEVELS] = {8, 16, 32, 32}; // stores of a buffer
unsigned slow = 16;                      // of so many pauses of a lane, one at which a store that others see too reaches the memory

// A store to bytes of a word of 64 bits.
struct Store {
    unsigned long long* word;
    unsigned long long mask;
    unsigned long long other;            // while the store is in the memory, what is there without it; else what it stores
};

struct Stores {
    int count = 0;
    Store all[32];

    UNNOTED Store* begin() { return all; }
    UNNOTED Store* end() { return all + count; }
    UNNOTED void remove(Store* store) { *store = all[--count]; }
};

Stores of_lanes[LANES], of_warps[LANES / WARP + 1], of_blocks[BLOCKS_LAUNCHED], of_devices[DEVICES];
Stores* seen[LEVELS];                    // those that are in the memory

UNNOTED inline void exchange_with_memory(Store& store)
{
    const unsigned long long there = *store.word;
    *store.word = (there & ~store.mask) | (store.other & store.mask);
    store.other = there;
}

// Puts into the memory what a lane sees, and takes away what it does not see.
UNNOTED inline void see(int lane)
{
    const int block = lane / threads;
    Stores* const own[LEVELS] = {of_lanes + lane, of_warps + lane / WARP, of_blocks + block, of_devices + block / BLOCKS_OF_DEVICE};
    int level = LEVELS - 1;
    while (level >= 0 && seen[level] == own[level]) --level;
    for (int l = 0; l <= level; ++l)
        if (seen[l])
            for (Store& store : *seen[l]) exchange_with_memory(store);
    for (; level >= 0; --level) {
        seen[level] = own[level];
        for (Store& store : *own[level]) exchange_with_memory(store);
    }
}

UNNOTED inline Store* find(Stores& stores, const unsigned long long* word)
{
    for (Store& store : stores)
        if (store.word == word) return &store;
    return nullptr;
}

// Bytes of a word are in the memory for all: older stores to them, which more see, are of the past.
UNNOTED inline void forget(int from, const unsigned long long* word, unsigned long long mask)
{
    for (int level = from; level < LEVELS; ++level)
        if (Store* const store = find(*seen[level], word)) {
            store->mask &= ~mask;
            if (store->mask != 0) continue;
            seen[level]->remove(store);
        }
}

// A store of those that the lane sees, drawn at random, reaches the memory.
UNNOTED inline void arrive_one(int level)
{
    Stores& stores = *seen[level];
    if (stores.count == 0) return;
    Store* const store = stores.all + drawn() % stores.count;
    const Store arrived = *store;
    stores.remove(store);
    forget(level + 1, arrived.word, arrived.mask);
}

// Adds a store that is in the memory to those of a level.
UNNOTED inline void add(int level, const Store& added)
{
    if (Store* const store = find(*seen[level], added.word)) {
        store->other = (store->other & store->mask) | (added.other & ~store->mask);
        store->mask |= added.mask;
        return;
    }
    Stores& stores = *seen[level];
    if (stores.count == MOST[level]) arrive_one(level);
    stores.all[stores.count++] = added;
}

void suspend();

// The running lane is about to store bytes; now and then others get ahead of it first.
UNNOTED inline void note(size_t at, size_t bytes)
{
    if (at - size_t(device_memory) >= DEVICE_BYTES || current < 0) return;
    if (drawn() % 64 == 0) suspend();
    for (size_t word = at / 8 * 8; word < at + bytes; word += 8) {
        const size_t first = word < at ? at - word : 0, end = at + bytes < word + 8 ? at + bytes - word : 8;
        const unsigned long long mask = ~0ull >> 8 * (8 - (end - first)) << 8 * first;
        auto* const place = reinterpret_cast<unsigned long long*>(word);
        add(OF_LANE, {place, mask, *place});
    }
}

// Shows what the running lane sees to all of its warp, block or device.
UNNOTED inline void publish(int to)
{
    if (current < 0) return;
    for (int level = to - 1; level >= 0; --level) {
        Stores& from = *seen[level];
        for (const Store& store : from) add(to, store);
        from.count = 0;
    }
}

// Releases what the running lane sees: to its device, or to all devices.
UNNOTED inline void release(bool devices)
{
    if (current < 0) return;
    if (!devices && DEVICES > 1) return publish(OF_DEVICE);
    for (Stores* const stores : seen) stores->count = 0;
}

// Returns the place itself, for what acts on the memory: an older store of the lane to it arrives before.
template <class T>
UNNOTED T* in_memory(T* at)
{
    const size_t word = size_t(at) / 8 * 8, first = size_t(at) - word;
    const unsigned long long mask = ~0ull >> 8 * (8 - sizeof(T)) << 8 * first;
    if (current >= 0) forget(OF_LANE, reinterpret_cast<unsigned long long*>(word), mask);
    return at;
}

template <class T>
UNNOTED T add_in_memory(T* to, T value)
{
    to = in_memory(to);
    const T before = *to;
    *to += value;
    return before;
}

// At one pause of so many, a store that the lane sees reaches the memory. What the lane alone sees is likelier to, and what many
// see less likely, so that what others wait for overtakes what was stored before.
UNNOTED inline void seep(unsigned pauses)
{
    const unsigned draw = drawn();
    if (seen[OF_LANE]->count > 0 && draw % 8 == 0) return arrive_one(OF_LANE);
    if (draw % pauses != 0) return;
    const unsigned lanes[LEVELS] = {1, WARP, unsigned(threads), unsigned(threads * BLOCKS_OF_DEVICE)};
    for (int level = OF_WARP; level < LEVELS; ++level)
        if (seen[level]->count > 0 && drawn() % lanes[level] == 0) return arrive_one(level);
}

// All stores reach the memory; returns whether there were any.
UNNOTED inline bool settle(int lanes)
{
    bool any = false;
    for (int lane = 0; lane < lanes; ++lane) {
        see(lane);
        for (Stores* const stores : seen) {
            any = any || stores->count > 0;
            stores->count = 0;
        }
    }
    for (Stores*& stores : seen) stores = nullptr;
    return any;
}

inline void* copy_bytes(void* to, const void* from, size_t bytes)
{
    note(size_t(to), bytes);
    return memcpy(to, from, bytes);
}

}  // namespace emulated

extern "C" {
UNNOTED void __asan_store1_noabort(size_t at) { emulated::note(at, 1); }
UNNOTED void __asan_store2_noabort(size_t at) { emulated::note(at, 2); }
UNNOTED void __asan_store4_noabort(size_t at) { emulated::note(at, 4); }
UNNOTED void __asan_store8_noabort(size_t at) { emulated::note(at, 8); }
UNNOTED void __asan_store16_noabort(size_t at) { emulated::note(at, 16); }
UNNOTED void __asan_storeN_noabort(size_t at, size_t bytes) { emulated::note(at, bytes); }
UNNOTED void __asan_handle_no_return() {}
UNNOTED void __asan_before_dynamic_init(const char*) {}
UNNOTED void __asan_after_dynamic_init() {}
}
