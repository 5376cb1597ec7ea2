// The parts that all persistent solvers share: a block's share of the rows, the places of its vectors, and
// how blocks wait for each other, sum and exchange a vector. docs/internals/kernels/krylov.md has every wait
// and why it is safe.
//
// A block owns consecutive rows; for elementwise work, a warp owns runs of RUN times 32 consecutive rows,
// WARPS runs apart, and a lane one of each 32. Every decision is taken from sums that all threads of all
// blocks hold with the same bits, so that all go the same way.
//
// Sums are those of the tree (tree.cuh) over all rows. A run is a block of the tree, and so is a unit, whose
// multiples all shares begin at. In a block or a cluster, all blocks get the sums of all runs. On the grid the
// blocks of the tree that a share has whole are its nodes: a block's part of a sum. All blocks read all nodes,
// and join them in the one order that there is. To that end rows are cut into windows, blocks of the tree of
// which no two shares begin inside the same. The nodes of a window are a chain: one of the smallest, then the
// one beside it, then the one beside both, and so on.
//
// `State`, `Share` and `Arguments` stand before this text. They are made of the tables in
// shaders/src/state.rs and shaders/src/cuda/arguments.rs, from which the host's are made, too.

constexpr int WARPS = THREADS / WARP;
constexpr unsigned JOINS = 32;                       // a node's joins and slot in one number
constexpr int AT_ONCE = UNROLLED ? RUN : 1;          // rows that a loop's body has side by side
constexpr int REDUCED = 4;                           // the most sums of one reduction
constexpr int DERIVED = 4;                           // the most numbers derived from them
constexpr long long DEADLINE = 1ll << 35;            // the most clocks of a wait: some 20 s
constexpr bool POINTWISE = PRECONDITIONER == NONE || PRECONDITIONER == JACOBI;

template <class T>
__device__ __forceinline__ T* shared_at(unsigned bytes)
{
    DYNAMIC_SHARED;
    return reinterpret_cast<T*>(shared + bytes);
}

// Loads from the constant matrix, which caches should not keep where it is larger than the last-level cache.
template <class T>
__device__ __forceinline__ T load_stream(const T* p)
{
    if constexpr (EVICT_FIRST) return __ldcs(p);
    else return __ldcg(p);
}

// A vector of the method: the block's rows of it, in registers, in shared memory or at home in device memory.
// Row i of the block is the thread's row k.
//
// OF_BLOCKS: the direction P has rows of others beside the block's own, which begin at `before`.
template <int V>
struct Vector {
    static constexpr bool WIDE = RECOMPUTED == OF_BLOCKS && V == P;

    real kept[PLACE[V] == REGISTERS ? ROWS : 1];
    real* home;                                      // of the block's first row
    unsigned before;                                 // WIDE

    __device__ __forceinline__ real* shared() const { return shared_at<real>(SHARED_AT[V]) + (WIDE ? before : 0); }

    __device__ __forceinline__ real at(unsigned i) const
    {
        static_assert(PLACE[V] != REGISTERS, "registers belong to one thread");
        if constexpr (PLACE[V] == SHARED) return shared()[i];
        else return home[i];
    }

    __device__ __forceinline__ void put(unsigned i, real value)
    {
        static_assert(PLACE[V] != REGISTERS, "registers belong to one thread");
        if constexpr (PLACE[V] == SHARED) shared()[i] = value;
        else home[i] = value;
    }

    __device__ __forceinline__ real get(int k, unsigned i) const
    {
        if constexpr (PLACE[V] == REGISTERS) return kept[k];
        else return at(i);
    }

    __device__ __forceinline__ void set(int k, unsigned i, real value)
    {
        if constexpr (PLACE[V] == REGISTERS) kept[k] = value;
        else put(i, value);
    }
};

// One block at work.
struct Team {
    const Arguments& a;
    const Share own;
    unsigned barriers;                               // GRID: barriers passed in this launch
    unsigned own_barriers;                           // SLABS: those of the slab's blocks alone
    unsigned turn;                                   // of the exchanged vector
    unsigned sums;                                   // reductions done
    unsigned tagged;                                 // SLABS: and of those in this launch whose nodes are tagged
    Stream ahead;                                    // AHEAD

    __device__ __forceinline__ Team(const Arguments& arguments)
        : a(arguments), own(arguments.shares[BATCHED ? 0 : own_block()]), barriers(0), own_barriers(0), turn(0), sums(0), tagged(0) {}

    // In shared memory: [REDUCED][RUNS], in a cluster of two reductions by turns; [REDUCED]; [DERIVED].
    __device__ __forceinline__ real* scratch() const { return shared_at<real>(SCRATCH_AT) + (SPACE == CLUSTER ? turn_of_sums() * RUNS : 0); }
    __device__ __forceinline__ real* totals() const { return shared_at<real>(TOTALS_AT); }
    __device__ __forceinline__ double* derived() const { return shared_at<double>(DERIVED_AT); }
    __device__ __forceinline__ unsigned* lost() const { return shared_at<unsigned>(LOST_AT); }

    // The first of the numbers of the sums of this reduction, among those of two by turns.
    __device__ __forceinline__ unsigned turn_of_sums() const { return (sums & 1) * REDUCED; }

    // Calls f(turn, run) for each of the warp's runs of rows.
    template <class F>
    __device__ __forceinline__ void runs(const F& f) const
    {
        const unsigned warp = threadIdx.x / WARP, count = (own.rows + RUN * WARP - 1) / (RUN * WARP);
        if constexpr (UNROLLED) {
            #pragma unroll
            for (int turn = 0; turn < ROWS / RUN; ++turn)
                if (turn * WARPS + warp < count) f(turn, turn * WARPS + warp);
        } else {
            #pragma unroll 1
            for (unsigned run = warp; run < count; run += WARPS) f(0, run);
        }
    }

    // Calls f(k, i) for each of the thread's rows: its k-th, the block's i-th.
    template <class F>
    __device__ __forceinline__ void rows(const F& f) const
    {
        runs([&](int turn, unsigned run) { rows_of(turn, run, f); });
    }

    // Calls f(k, i) for each of the thread's rows in a run.
    template <class F>
    __device__ __forceinline__ void rows_of(int turn, unsigned run, const F& f) const
    {
        #pragma unroll AT_ONCE
        for (int n = 0; n < RUN; ++n) {
            const unsigned i = (run * RUN + n) * WARP + threadIdx.x % WARP;
            if (i < own.rows) f(UNROLLED ? turn * RUN + n : 0, i);
        }
    }

    // Returns whether the thread owns a row of the block.
    __device__ __forceinline__ bool owns(unsigned i) const
    {
        return i / (RUN * WARP) % WARPS == threadIdx.x / WARP && i % WARP == threadIdx.x % WARP;
    }

    // Joins the terms of K sums over each run; f(k, i, terms) gives those of a row. The runs' sums are then in
    // `to`, [K][RUNS], once the block has met, or the cluster.
    template <int K, class F>
    __device__ __forceinline__ void leave_terms(real* to, const F& f) const
    {
        leave_terms<K>(to, f, [](int, unsigned) {});
    }

    // Joins them likewise; make(k, i) is called for all of the thread's rows in a run before their terms.
    template <int K, class F, class G>
    __device__ __forceinline__ void leave_terms(real* to, const F& f, const G& make) const
    {
        runs([&](int turn, unsigned run) {
            rows_of(turn, run, make);
            // All terms come first, so that the loads of all rows are under way together.
            real terms[RUN][K];
            #pragma unroll
            for (int n = 0; n < RUN; ++n) {
                const unsigned i = (run * RUN + n) * WARP + threadIdx.x % WARP;
                #pragma unroll
                for (int k = 0; k < K; ++k) terms[n][k] = nothing();
                if (i < own.rows) f(UNROLLED ? turn * RUN + n : 0, i, terms[n]);
            }
            leave_run<K>(to, run, join_rows<SUM>(terms));
        });
    }

    // One warp: puts the K sums of a run, which lanes k * RUN have, where those who join them find them.
    template <int K>
    __device__ __forceinline__ void leave_run(real* to, unsigned run, real sum) const
    {
        const unsigned lane = threadIdx.x % WARP;
        if constexpr (SPACE == CLUSTER) {
            // A lane stores one of the sums into one of the blocks.
            real* const place = to + place_of_run(own.first / (RUN * WARP) + run);
            #pragma unroll
            for (int first = 0; first < K * BLOCKS; first += WARP) {
                const unsigned k = (first + lane) / BLOCKS, rank = (first + lane) % BLOCKS;
                const real value = K == 1 ? sum : __shfl_sync(0xffffffffu, sum, k * RUN);
                if (k < K) store_remote(place + k * RUNS, rank, value);
            }
        } else if (lane % RUN == 0 && lane / RUN < K) to[lane / RUN * RUNS + (SPACE == BLOCK ? place_of_run(run) : run)] = sum;
    }

    // Where the sum of a run stands among those of all runs: lanes that read theirs side by side find them
    // side by side.
    static __device__ __forceinline__ unsigned place_of_run(unsigned run) { return run % EACH * JOINING + run / EACH; }

    // One warp, BLOCK or CLUSTER: joins the sums of all runs, [K][RUNS]. All lanes end with the sums.
    template <int K>
    __device__ __forceinline__ void join_all_runs(const real* from, real (&sums)[K]) const
    {
        constexpr unsigned ALL = (REPLICA_ROWS + RUN * WARP - 1) / (RUN * WARP);
        const unsigned lane = threadIdx.x % JOINING;
        #pragma unroll
        for (int k = 0; k < K; ++k)
            sums[k] = join_loaded<SUM, EACH>([&](int n) { return lane * EACH + n < ALL ? from[k * RUNS + n * JOINING + lane] : nothing(); });
        join_lanes<SUM, JOINING>(sums);
    }

    // Binds a vector to its home; loads it from there where a launch continues with the data that the last
    // one left.
    template <int V>
    __device__ __forceinline__ void bind(Vector<V>& v, bool bring) const
    {
        v.home = a.homes + V * a.stride + own.first;
        if constexpr (Vector<V>::WIDE) v.before = own.first - own.base;
        if constexpr (PLACE[V] != DEVICE)
            if (bring) rows([&](int k, unsigned i) { v.set(k, i, v.home[i]); });
    }

    template <int V>
    __device__ __forceinline__ void leave(Vector<V>& v) const
    {
        if constexpr (PLACE[V] != DEVICE) rows([&](int k, unsigned i) { v.home[i] = v.get(k, i); });
    }

    // Gives a row's value of the exchanged vector to all blocks; they see it after the next exchange or
    // reduction.
    __device__ __forceinline__ void publish(unsigned i, real value)
    {
        if constexpr (SPACE == GRID) {
            real* const place = a.exchanged + (TURNS > 1 ? turn * a.turn : 0) + own.first + i;
            *place = value;
            give(place, i, value);
        } else if constexpr (SPACE == CLUSTER) {
            real* const place = replica() + own.first + i;
            #pragma unroll
            for (int rank = 0; rank < BLOCKS; ++rank) store_remote(place, unsigned(rank), value);
        } else replica()[own.first + i] = value;
    }

    // SLABS: stores a row's value at a place of the other slabs that read it.
    __device__ __forceinline__ void give(real* place, unsigned i, real value) const
    {
        #pragma unroll
        for (int other = 0; other < OTHERS; ++other) {
            const unsigned* const given = a.given + (own_block() * OTHERS + other) * 2;
            if (i - __ldg(given) < __ldg(given + 1)) *beyond(a, place, other) = value;
        }
    }

    // Gives a row's value likewise, where the block's own threads read it elsewhere.
    __device__ __forceinline__ void publish_beyond(unsigned i, real value)
    {
        if (i < own.read_before || i >= own.read_from) publish(i, value);
    }

    // Returns the whole exchanged vector in this block's shared memory.
    __device__ __forceinline__ real* replica() const { return shared_at<real>(REPLICA_AT) + (TURNS > 1 ? turn * REPLICA_ROWS : 0); }

    // Returns the exchanged vector to read; the next one is published elsewhere, if there are two turns.
    __device__ __forceinline__ const real* exchanged()
    {
        const real* const here = SPACE == GRID ? a.exchanged + (TURNS > 1 ? turn * a.turn : 0) : replica();
        if constexpr (TURNS > 1) turn ^= 1;
        return here;
    }

    // Thread 0, after the block's threads have met: tells that the block has arrived.
    __device__ __forceinline__ void arrive()
    {
        if (threadIdx.x == 0) {
            if constexpr (SLABS > 1) {
                fence_devices();
                #pragma unroll
                for (int other = 0; other < OTHERS; ++other) add_devices(beyond(a, a.arrived, other), 1u);
                add_devices(a.arrived, 1u);
            } else add_release(a.arrived, 1u);
        }
        ask_ahead_of_product();
        ++barriers;
    }

    // While the block waits: asks for what the next product streams, behind the arrival, which is not to wait for that.
    __device__ __forceinline__ void ask_ahead_of_product()
    {
        if constexpr (AHEAD > 0) {
            __syncthreads();
            ahead.ask();
        }
    }

    // Returns the arrivals that the slab was told of.
    __device__ __forceinline__ unsigned arrivals() const { return SLABS > 1 ? load_devices(a.arrived) : load_acquire(a.arrived); }

    // Ends all blocks' waits: this slab's, and by their words all others'.
    __device__ __forceinline__ void abort_peers() const
    {
        a.state->status = LOST;
        *lost() = 1;
        if constexpr (SLABS > 1) {
            add_devices(a.arrived + GIVEN_UP, 1u);
            for (int other = 0; other < OTHERS; ++other) add_devices(beyond(a, a.arrived, other) + GIVEN_UP, 1u);
        }
    }

    // One thread: waits until all blocks have arrived.
    __device__ __forceinline__ void await() const
    {
        await([&]() { return arrivals() >= barriers * unsigned(BLOCKS); });
    }

    // One thread: waits until `is_there()`.
    template <class F>
    __device__ __forceinline__ void await(const F& is_there) const
    {
        const long long begun = clock64();
        unsigned turns = 0;
        while (!is_there() && !gives_up(begun, turns)) {}
        count_wait(begun);
    }

    // One thread, in a wait since `begun`: whether it gives up, because it has waited for too long or another has.
    __device__ __forceinline__ bool gives_up(long long begun, unsigned& turns) const
    {
        const bool is_told = SLABS > 1 && ++turns % LOOKS == 0 && load_devices(a.arrived + GIVEN_UP) != 0;
        if (!is_told && clock64() - begun <= DEADLINE) return false;
        abort_peers();
        return true;
    }

    // SLABS: counts the clocks of a wait that is over, of one thread for all.
    __device__ __forceinline__ void count_wait(long long begun) const
    {
        if constexpr (SLABS > 1)
            if (own_block() == 0 && threadIdx.x == 0) atomicAdd(a.clocks, (unsigned long long)(clock64() - begun));
    }

    // Returns the places of the next sum's nodes.
    __device__ __forceinline__ Counted counted() const { return {a.partials + turn_of_sums() * SLOTS}; }

    // Returns those of a sum that need be no barrier for what was stored before.
    __device__ __forceinline__ auto alone()
    {
        if constexpr (SLABS > 1) return Tagged{reinterpret_cast<Node*>(a.tagged), unsigned(a.tags) + ++tagged};
        else return counted();
    }

    // All threads, after they have met: ends the kernel where a wait was given up.
    __device__ __forceinline__ void end_if_lost() const
    {
        if (*lost() != 0) end_thread();
    }

    // All threads: wait until all blocks have arrived.
    __device__ __forceinline__ void await_together() const
    {
        if (threadIdx.x == 0) await();
        __syncthreads();
        end_if_lost();
    }

    // Waits for all blocks; all of them then see what each wrote before.
    __device__ __forceinline__ void meet()
    {
        if constexpr (SPACE == GRID) {
            __syncthreads();
            arrive();
            await_together();
        } else if constexpr (SPACE == CLUSTER) cluster_barrier();
        else __syncthreads();
    }

    // SLABS: waits for all blocks of the slab alone; all of them then see what each wrote into its memory before.
    __device__ __forceinline__ void meet_own()
    {
        __syncthreads();
        if (threadIdx.x == 0) add_release(a.arrived + OWN_ARRIVED, 1u);
        ask_ahead_of_product();
        ++own_barriers;
        if (threadIdx.x == 0) await([&]() { return load_acquire(a.arrived + OWN_ARRIVED) >= own_barriers * unsigned(OWN); });
        __syncthreads();
        end_if_lost();
    }

    // Loads which lanes the lane joins in a pass, and the slot of its node. Loaded before the block meets, it
    // is there when it is wanted.
    static __device__ __forceinline__ unsigned node_of(const Arguments& a, int pass)
    {
        return __ldg(a.nodes + (own_block() * PASSES + pass) * WARP + threadIdx.x % WARP);
    }

    // One warp, GRID: joins the sums of runs, [K][RUNS], to the block's nodes. A lane has EACH runs beside each
    // other, and shares a node (`node` of the first pass) with the lanes beside it. One of them puts it at its
    // slot.
    template <int K, class Nodes>
    static __device__ __forceinline__ void join_runs(const Arguments& a, unsigned first_row, unsigned rows, const real* from, unsigned node, const Nodes& to)
    {
        const unsigned lane = threadIdx.x % WARP, count = (rows + RUN * WARP - 1) / (RUN * WARP);
        // Of all rows, the runs before the block's, and the first lane's worth of runs that has any of them.
        const unsigned before = first_row / (RUN * WARP), first = before / EACH;
        #pragma unroll 1
        for (int pass = 0; pass < PASSES; ++pass) {
            // Blocks of the tree stay together: in several passes, a pass begins with the first lane.
            const unsigned place = PASSES > 1 ? (first / WARP + pass) * WARP + lane : first + (lane - first) % WARP;
            const unsigned begin = place * EACH - before;
            const unsigned told = pass == 0 ? node : node_of(a, pass), joins = told % JOINS, slot = told / JOINS;
            real sums[K];
            #pragma unroll
            for (int k = 0; k < K; ++k)
                sums[k] = join_loaded<SUM, EACH>([&](int n) { return begin + n < count ? from[k * RUNS + begin + n] : nothing(); });
            #pragma unroll
            for (int step = 1; step < JOINING; step *= 2) {
                #pragma unroll
                for (int k = 0; k < K; ++k) {
                    const real other = __shfl_xor_sync(0xffffffffu, sums[k], step);
                    if (joins & step) sums[k] += other;
                }
            }
            if (slot < SLOTS) {
                #pragma unroll
                for (int k = 0; k < K; ++k) to.put(a, k, slot, sums[k]);
            }
        }
    }

    // Joins the runs of one sum likewise: a call, where the loops around it need the registers.
    static __device__ __noinline__ void call_join_runs(const Arguments& a, unsigned first_row, unsigned rows, const real* from, unsigned node, real* to)
    {
        join_runs<1>(a, first_row, rows, from, node, Counted{to});
    }

    // One warp, GRID: joins the nodes of the windows of a group, of which a lane has WINDOWS beside each other.
    // The first WINDOW_LANES lanes end with the group's sums.
    template <int K, class Nodes>
    __device__ __forceinline__ void join_windows(const unsigned (&chains)[WINDOWS], const Nodes& from, real (&sums)[K]) const
    {
        #pragma unroll
        for (int k = 0; k < K; ++k) {
            real parts[WINDOWS];
            from.join(*this, k, chains, parts);
            join_all<SUM, WINDOWS, 1>(parts);
            sums[k] = parts[0];
        }
        join_lanes<SUM, WINDOW_LANES>(sums);
    }

    // Loads where the chains of a group's windows begin, and how long they are.
    __device__ __forceinline__ void chains_of(unsigned group, unsigned (&chains)[WINDOWS]) const
    {
        #pragma unroll
        for (int n = 0; n < WINDOWS; ++n) chains[n] = __ldg(a.chains + (group * WINDOWS + n) * WARP + threadIdx.x % WARP);
    }

    // Sums the terms that f(k, i, terms) gives for a row over all rows, in the order of the tree, with the same
    // bits in all blocks. Also a barrier of all blocks.
    template <int K, class F>
    __device__ __forceinline__ void sum(real (&v)[K], const F& f)
    {
        double none[1];
        sum(v, none, f, [](const real (&)[K], double (&)[1]) {});
    }

    // Sums likewise, and derives from the sums what `derive` computes.
    template <int K, int D, class F, class G>
    __device__ __forceinline__ void sum(real (&v)[K], double (&derived)[D], const F& f, const G& derive)
    {
        sum(v, derived, f, derive, counted());
    }

    // Sums likewise, by nodes of a kind: whether it is a barrier too follows from that.
    template <int K, int D, class F, class G, class Nodes>
    __device__ __forceinline__ void sum(real (&v)[K], double (&derived)[D], const F& f, const G& derive, const Nodes& nodes)
    {
        leave_terms<K>(scratch(), f);
        join(v, derived, derive, nodes);
    }

    // Joins the runs' sums in `scratch` to sums over all rows. One warp of each block computes for all what is
    // derived from them, because quotients and roots in double precision are dear.
    template <int K, int D, class G, class Nodes>
    __device__ __forceinline__ void join(real (&v)[K], double (&derived)[D], const G& derive, const Nodes& nodes)
    {
        static_assert(K <= REDUCED && D <= DERIVED, "there is no more room");
        if constexpr (SPACE == GRID) join_grid<K>(derived, derive, nodes);
        else {
            const real* const runs = scratch();
            if constexpr (SPACE == CLUSTER) cluster_barrier();
            else __syncthreads();
            if (threadIdx.x < WARP) {
                real all[K];
                join_all_runs<K>(runs, all);
                tell(all, derived, derive);
            }
        }
        if constexpr (Nodes::IS_BARRIER) ++sums;
        __syncthreads();
        if constexpr (SPACE == GRID) end_if_lost();
        #pragma unroll
        for (int k = 0; k < K; ++k) v[k] = totals()[k];
        #pragma unroll
        for (int d = 0; d < D; ++d) derived[d] = this->derived()[d];
    }

    // GRID: joins the runs' sums in `scratch` to sums over all rows, and tells the block.
    template <int K, int D, class G, class Nodes>
    __device__ __forceinline__ void join_grid(double (&derived)[D], const G& derive, const Nodes& nodes)
    {
        const unsigned warp = threadIdx.x / WARP;
        const unsigned node = warp == 0 ? node_of(a, 0) : 0;
        __syncthreads();
        if (warp == 0) {
            join_runs<K>(a, own.first, own.rows, scratch(), node, nodes);
            __syncwarp();
        }
        nodes.tell(*this);
        unsigned chains[WINDOWS];
        if constexpr (GROUPS == 1) {
            if (warp == 0) {
                real all[K];
                chains_of(0, chains);
                nodes.await(*this);
                join_windows<K>(chains, nodes, all);
                tell(all, derived, derive);
            }
        } else {
            // Several warps load the nodes; their sums take the places of the runs'.
            if (warp < GROUPS) chains_of(warp, chains);
            nodes.await_together(*this);
            #pragma unroll 1
            for (unsigned group = warp; group < GROUPS; group += WARPS) {
                real all[K];
                if (group > warp) chains_of(group, chains);
                join_windows<K>(chains, nodes, all);
                #pragma unroll
                for (int k = 0; k < K; ++k)
                    if (threadIdx.x % WARP == 0) scratch()[k * RUNS + group] = all[k];
            }
            __syncthreads();
            if (warp == 0) {
                real all[K];
                #pragma unroll
                for (int k = 0; k < K; ++k) all[k] = threadIdx.x < GROUPS ? scratch()[k * RUNS + threadIdx.x] : nothing();
                join_lanes<SUM, WARP>(all);
                tell(all, derived, derive);
            }
        }
    }

    // One warp: leaves the sums, and the numbers that f derives from them, to the block.
    template <int K, int D, class F>
    __device__ __forceinline__ void tell(const real (&sums)[K], double (&made)[D], const F& f) const
    {
        f(sums, made);
        if (threadIdx.x != 0) return;
        #pragma unroll
        for (int k = 0; k < K; ++k) totals()[k] = sums[k];
        #pragma unroll
        for (int d = 0; d < D; ++d) derived()[d] = made[d];
    }
};
