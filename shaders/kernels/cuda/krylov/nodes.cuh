// Where the nodes of a sum lie, and how a block knows that those of others are there. GRID.

// Puts a value at its place in this slab and in all others'.
template <class T>
__device__ __forceinline__ void put_everywhere(const Arguments& a, T* place, T node)
{
    *place = node;
    #pragma unroll
    for (int other = 0; other < OTHERS; ++other) *beyond(a, place, other) = node;
}

// Nodes behind which blocks arrive. Whoever has waited for all blocks sees the nodes, and all else that was stored before.
struct Counted {
    static constexpr bool IS_BARRIER = true;

    real* nodes;                                     // [K][SLOTS]

    __device__ __forceinline__ void put(const Arguments& a, int k, unsigned slot, real sum) const { put_everywhere(a, nodes + k * SLOTS + slot, sum); }

    // All threads, after one warp has put the block's nodes.
    template <class Team>
    __device__ __forceinline__ void tell(Team& team) const { team.arrive(); }

    template <class Team>
    __device__ __forceinline__ void await_together(const Team& team) const { team.await_together(); }

    // One warp.
    template <class Team>
    __device__ __forceinline__ void await(const Team& team) const
    {
        if (threadIdx.x == 0) team.await();
        __syncwarp();
    }

    // One warp, after it has waited: joins the nodes of each chain. All are loaded before any are added, so that no load waits for
    // another.
    template <class Team>
    __device__ __forceinline__ void join(const Team&, int k, const unsigned (&chains)[WINDOWS], real (&sums)[WINDOWS]) const
    {
        real all[WINDOWS][LINKS];
        #pragma unroll
        for (int n = 0; n < WINDOWS; ++n) {
            const real* const chain = nodes + k * SLOTS + (chains[n] & 0xffffff);
            #pragma unroll
            for (int link = 0; link < LINKS; ++link) all[n][link] = link < int(chains[n] >> 24) ? __ldcg(chain + link * STEP) : nothing();
        }
        #pragma unroll
        for (int n = 0; n < WINDOWS; ++n) {
            sums[n] = nothing();
            #pragma unroll
            for (int link = 0; link < LINKS; ++link) sums[n] += all[n][link];
        }
    }
};

// A node that carries its own tag: words of 64 bits, 32 bits of its value each, and beside them a tag, the number of its sum. Each
// word is stored and loaded as a whole; all words of a node are not. A node that nobody tells has the tag ALWAYS, and no value.
constexpr int WORDS = sizeof(real) / 4;              // words of a node

struct alignas(8 * WORDS) Node {
    unsigned long long word[WORDS];

    __device__ __forceinline__ static Node of(real value, unsigned tag)
    {
        unsigned bits[WORDS];
        memcpy(bits, &value, sizeof bits);
        Node node;
        #pragma unroll
        for (int part = 0; part < WORDS; ++part) node.word[part] = (unsigned long long)(tag) << 32 | bits[part];
        return node;
    }

    __device__ __forceinline__ real value() const
    {
        unsigned bits[WORDS];
        #pragma unroll
        for (int part = 0; part < WORDS; ++part) bits[part] = unsigned(word[part]);
        real value;
        memcpy(&value, bits, sizeof bits);
        return value;
    }

    __device__ __forceinline__ bool has(unsigned tag) const
    {
        bool all = true;
        #pragma unroll
        for (int part = 0; part < WORDS; ++part) all = all && (unsigned(word[part] >> 32) == tag || unsigned(word[part] >> 32) == ALWAYS);
        return all;
    }

    __device__ __forceinline__ void store(Node* to) const
    {
        store_words_devices(to->word, word);
    }

    __device__ __forceinline__ void load(const Node* from)
    {
        load_words_devices(word, from->word);
    }
};

// SLABS: such nodes, of one sum. Neither a fence nor a counter stands between a block and those that read its node; the sum is no
// barrier for what was stored before. But a block tells its node after it has used all that it has loaded before, so whoever has
// the sum may write over that. The nodes are written over by the next such sum, and between the two all blocks meet.
struct Tagged {
    static constexpr bool IS_BARRIER = false;
    static constexpr int NODES = WINDOWS * LINKS, AT_ONCE = NODES < 4 ? NODES : 4;

    Node* nodes;                                     // [SLOTS]
    unsigned tag;

    __device__ __forceinline__ void put(const Arguments& a, int, unsigned slot, real sum) const
    {
        const Node node = Node::of(sum, tag);
        node.store(nodes + slot);
        #pragma unroll
        for (int other = 0; other < OTHERS; ++other) node.store(beyond(a, nodes + slot, other));
    }

    template <class Team>
    __device__ __forceinline__ void tell(Team& team) const { team.ask_ahead_of_product(); }

    // The places of the runs' sums are free once one warp has joined them.
    template <class Team>
    __device__ __forceinline__ void await_together(const Team&) const { __syncthreads(); }

    template <class Team>
    __device__ __forceinline__ void await(const Team&) const {}

    // One warp: joins the nodes of each chain, which it loads until they are those of the sum.
    template <class Team>
    __device__ __forceinline__ void join(const Team& team, int, const unsigned (&chains)[WINDOWS], real (&sums)[WINDOWS]) const
    {
        const long long begun = clock64();
        unsigned turns = 0;
        #pragma unroll
        for (int n = 0; n < WINDOWS; ++n) sums[n] = nothing();
        #pragma unroll
        for (int first = 0; first < NODES; first += AT_ONCE) {
            Node here[AT_ONCE];
            bool all;
            do {
                #pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    const int n = (first + i) / LINKS, link = (first + i) % LINKS;
                    here[i] = Node::of(nothing(), tag);
                    if (first + i < NODES && link < int(chains[n] >> 24)) here[i].load(nodes + (chains[n] & 0xffffff) + link * STEP);
                }
                all = true;
                #pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) all = all && here[i].has(tag);
            } while (!all && !team.gives_up(begun, turns));
            #pragma unroll
            for (int i = 0; i < AT_ONCE; ++i)
                if (first + i < NODES) sums[(first + i) / LINKS] += here[i].value();
        }
        __syncwarp();
        team.count_wait(begun);
    }
};
