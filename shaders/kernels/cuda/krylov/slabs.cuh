// On several devices each has a slab of the rows: OWN blocks, with `Arguments` and memory of their own. All blocks of
// all SLABS are one grid. What others read is stored into their memory too: rows of the exchanged vector, nodes of
// sums. A block then tells all slabs that it has arrived, and waits at its own slab's counter. Where a wait is given
// up, all slabs are told.

constexpr int OWN = BLOCKS / SLABS;                  // blocks of a slab
constexpr int OTHERS = SLABS - 1;
constexpr int GIVEN_UP = 1;                          // the word after a slab's counter: whether a wait was given up
constexpr int OWN_ARRIVED = 16;                      // the word that counts the blocks of the slab alone
constexpr unsigned LOOKS = 1024;                     // turns of a wait from one look at that word to the next

// The number of the block in its slab; a device may have several slabs, one after another.
__device__ __forceinline__ unsigned own_block() { return HERE > 1 ? blockIdx.x % OWN : blockIdx.x; }

// Returns the place of `at`, in memory that a slab gives to the others to store into, in another slab's.
template <class T>
__device__ __forceinline__ T* beyond(const Arguments& a, T* at, int other)
{
    return reinterpret_cast<T*>(reinterpret_cast<char*>(at) + __ldg(a.beyond + other));
}
