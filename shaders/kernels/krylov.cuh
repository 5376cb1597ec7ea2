// The parts that all persistent solvers share: a block's share of the rows, the places of its vectors, and
// how blocks wait for each other, sum and exchange a vector. docs/solvers.md has every wait and why it is
// safe.
//
// A block owns consecutive rows; for elementwise work, a thread owns rows that are THREADS apart. Every
// decision is taken from sums that all threads of all blocks hold with the same bits, so that all go the same
// way.
//
// `State`, `Share` and `Arguments` stand before this text. They are made of the tables in
// shaders/src/state.rs and shaders/src/cuda/arguments.rs, from which the host's are made, too.

constexpr int WARPS = THREADS / 32;
constexpr int REDUCED = 4;                           // the most sums of one reduction
constexpr int DERIVED = 4;                           // the most numbers derived from them
constexpr long long PATIENCE = 1ll << 35;            // the most clocks of a wait: some 20 s
constexpr bool POINTWISE = PRECONDITIONER == NONE || PRECONDITIONER == JACOBI;

template <class T>
__device__ __forceinline__ T* shared_at(unsigned bytes)
{
    extern __shared__ __align__(16) unsigned char shared[];
    return reinterpret_cast<T*>(shared + bytes);
}

__device__ __forceinline__ unsigned load_acquire(const unsigned* p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void add_release(unsigned* p, unsigned v)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Waits for all threads of the cluster. All of them then see what each wrote before, in distributed shared
// memory too.
__device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Stores into the shared memory of another block of the cluster, at the place of `at` in this one's.
template <class T>
__device__ __forceinline__ void store_remote(T* at, unsigned rank, T value)
{
    const unsigned address = unsigned(__cvta_generic_to_shared(at));
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    if constexpr (sizeof(T) == 8) asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(remote), "d"(value) : "memory");
    else asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
}

// Loads from the constant matrix, which caches should not keep where it is larger than the last-level cache.
template <class T>
__device__ __forceinline__ T load_stream(const T* p)
{
    if constexpr (EVICT_FIRST) return __ldcs(p);
    else return __ldcg(p);
}

// Sums K values over a warp. K is folded with the first steps: lane l ends with the sum of value l / (32 /
// P), where P is the power of two not below K.
template <int K>
__device__ __forceinline__ real warp_sum(const real (&v)[K])
{
    const bool upper = threadIdx.x & 16, odd = threadIdx.x & 8;
    real sum;
    int step;
    if constexpr (K == 1) {
        sum = v[0];
        step = 16;
    } else if constexpr (K == 2) {
        sum = upper ? v[1] : v[0];
        sum += __shfl_xor_sync(0xffffffffu, upper ? v[0] : v[1], 16);
        step = 8;
    } else {
        const real last = K == 4 ? v[K - 1] : real(0);
        real low = upper ? v[2] : v[0], high = upper ? last : v[1];
        low += __shfl_xor_sync(0xffffffffu, upper ? v[0] : v[2], 16);
        high += __shfl_xor_sync(0xffffffffu, upper ? v[1] : last, 16);
        sum = odd ? high : low;
        sum += __shfl_xor_sync(0xffffffffu, odd ? low : high, 8);
        step = 4;
    }
    #pragma unroll
    for (; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

// A vector of the method: the block's rows of it, in registers, in shared memory or at home in device memory.
// Row i of the block is the thread's row k.
template <int V>
struct Vector {
    real kept[PLACE[V] == REGISTERS ? ROWS : 1];
    real* home;                                      // of the block's first row

    __device__ __forceinline__ real at(unsigned i) const
    {
        static_assert(PLACE[V] != REGISTERS, "registers belong to one thread");
        if constexpr (PLACE[V] == SHARED) return shared_at<real>(SHARED_AT[V])[i];
        else return home[i];
    }

    __device__ __forceinline__ void put(unsigned i, real value)
    {
        static_assert(PLACE[V] != REGISTERS, "registers belong to one thread");
        if constexpr (PLACE[V] == SHARED) shared_at<real>(SHARED_AT[V])[i] = value;
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
    unsigned turn;                                   // of the exchanged vector
    unsigned sums;                                   // reductions done

    __device__ __forceinline__ Team(const Arguments& arguments)
        : a(arguments), own(arguments.shares[BATCHED ? 0 : blockIdx.x]), barriers(0), turn(0), sums(0) {}

    // In shared memory: [REDUCED][WARPS], [REDUCED], [DERIVED], and of a cluster [2][REDUCED][BLOCKS].
    __device__ __forceinline__ real* scratch() const { return shared_at<real>(SCRATCH_AT); }
    __device__ __forceinline__ real* totals() const { return shared_at<real>(TOTALS_AT); }
    __device__ __forceinline__ double* derived() const { return shared_at<double>(DERIVED_AT); }
    __device__ __forceinline__ real* gathered() const { return shared_at<real>(GATHERED_AT); }
    __device__ __forceinline__ unsigned* lost() const { return shared_at<unsigned>(LOST_AT); }

    // Calls f(k, i) for each of the thread's rows: its k-th, the block's i-th.
    template <class F>
    __device__ __forceinline__ void rows(const F& f) const
    {
        if constexpr (UNROLLED) {
            #pragma unroll
            for (int k = 0; k < ROWS; ++k) {
                const unsigned i = k * THREADS + threadIdx.x;
                if (i < own.rows) f(k, i);
            }
        } else {
            #pragma unroll 1
            for (unsigned i = threadIdx.x; i < own.rows; i += THREADS) f(0, i);
        }
    }

    // Binds a vector to its home; loads it from there where a launch continues with the data that the last
    // one left.
    template <int V>
    __device__ __forceinline__ void bind(Vector<V>& v, bool bring) const
    {
        v.home = a.homes + V * a.stride + own.first;
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
        if constexpr (SPACE == GRID) a.exchanged[(TURNS > 1 ? turn * a.stride : 0) + own.first + i] = value;
        else if constexpr (SPACE == CLUSTER) {
            real* const place = replica() + own.first + i;
            #pragma unroll
            for (int rank = 0; rank < BLOCKS; ++rank) store_remote(place, unsigned(rank), value);
        } else replica()[own.first + i] = value;
    }

    // Returns the whole exchanged vector in this block's shared memory.
    __device__ __forceinline__ real* replica() const { return shared_at<real>(REPLICA_AT) + (TURNS > 1 ? turn * REPLICA_ROWS : 0); }

    // Returns the exchanged vector to read; the next one is published elsewhere, if there are two turns.
    __device__ __forceinline__ const real* exchanged()
    {
        const real* const here = SPACE == GRID ? a.exchanged + (TURNS > 1 ? turn * a.stride : 0) : replica();
        if constexpr (TURNS > 1) turn ^= 1;
        return here;
    }

    // Thread 0, after the block's threads have met: tells that the block has arrived.
    __device__ __forceinline__ void arrive()
    {
        if (threadIdx.x == 0) add_release(a.arrived, 1u);
        ++barriers;
    }

    // One thread: waits until all blocks have arrived.
    __device__ __forceinline__ void await() const
    {
        const long long begun = clock64();
        while (load_acquire(a.arrived) < barriers * unsigned(BLOCKS)) {
            if (clock64() - begun > PATIENCE) {
                a.state->status = LOST;
                *lost() = 1;
                break;
            }
        }
    }

    // All threads, after they have met: ends the kernel where a wait was given up.
    __device__ __forceinline__ void end_if_lost() const
    {
        if (*lost() != 0) asm volatile("exit;");
    }

    // Waits for all blocks; all of them then see what each wrote before.
    __device__ __forceinline__ void meet()
    {
        if constexpr (SPACE == GRID) {
            __syncthreads();
            arrive();
            if (threadIdx.x == 0) await();
            __syncthreads();
            end_if_lost();
        } else if constexpr (SPACE == CLUSTER) cluster_barrier();
        else __syncthreads();
    }

    // Sums v over all threads of all blocks, in a fixed tree: lanes, warps, blocks. Also a barrier.
    template <int K>
    __device__ __forceinline__ void sum(real (&v)[K])
    {
        double nothing[1];
        sum(v, nothing, [](const real (&)[K], double (&)[1]) {});
    }

    // Sums likewise, and derives from the sums what f computes. One warp of each block computes it for all,
    // because quotients and roots in double precision are dear.
    template <int K, int D, class F>
    __device__ __forceinline__ void sum(real (&v)[K], double (&derived)[D], const F& f)
    {
        static_assert(K <= REDUCED && D <= DERIVED, "there is no more room");
        constexpr int HELD = K == 1 ? 32 : K == 2 ? 16 : 8;          // lanes that hold one sum after warp_sum
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const unsigned half = (sums++ & 1) * REDUCED;
        // Warps without rows have nothing to add.
        const int active = own.rows < THREADS ? (own.rows + 31) / 32 : WARPS;
        if (warp < active) {
            const real part = warp_sum<K>(v);
            if (lane % HELD == 0 && lane / HELD < K) scratch()[lane / HELD * WARPS + warp] = part;
        }
        __syncthreads();
        if (warp == 0) {
            real parts[K];
            #pragma unroll
            for (int k = 0; k < K; ++k) parts[k] = lane < active ? scratch()[k * WARPS + lane] : real(0);
            const real part = warp_sum<K>(parts);
            if constexpr (SPACE == GRID) {
                if (lane % HELD == 0 && lane / HELD < K) a.partials[(half + lane / HELD) * BLOCKS + blockIdx.x] = part;
                __syncwarp();
            } else {
                #pragma unroll
                for (int k = 0; k < K; ++k) parts[k] = __shfl_sync(0xffffffffu, part, k * HELD);
                if constexpr (SPACE == CLUSTER) {
                    #pragma unroll
                    for (int k = 0; k < K; ++k)
                        if (lane < BLOCKS) store_remote(gathered() + (half + k) * BLOCKS + blockIdx.x, unsigned(lane), parts[k]);
                } else tell(parts, derived, f);
            }
        }
        if constexpr (SPACE == CLUSTER) cluster_barrier();
        if constexpr (SPACE == GRID) arrive();
        if (SPACE != BLOCK && warp == 0) {
            real parts[K];
            if constexpr (SPACE == CLUSTER) {
                #pragma unroll
                for (int k = 0; k < K; ++k) parts[k] = lane < BLOCKS ? gathered()[(half + k) * BLOCKS + lane] : real(0);
            } else {
                if (lane == 0) await();
                __syncwarp();
                #pragma unroll
                for (int k = 0; k < K; ++k) parts[k] = real(0);
                #pragma unroll
                for (int from = 0; from < BLOCKS; from += 32) {
                    #pragma unroll
                    for (int k = 0; k < K; ++k)
                        if (from + lane < BLOCKS) parts[k] += __ldcg(a.partials + (half + k) * BLOCKS + from + lane);
                }
            }
            const real part = warp_sum<K>(parts);
            #pragma unroll
            for (int k = 0; k < K; ++k) parts[k] = __shfl_sync(0xffffffffu, part, k * HELD);
            tell(parts, derived, f);
        }
        __syncthreads();
        if constexpr (SPACE == GRID) end_if_lost();
        #pragma unroll
        for (int k = 0; k < K; ++k) v[k] = totals()[k];
        #pragma unroll
        for (int d = 0; d < D; ++d) derived[d] = this->derived()[d];
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

// The stopping tests, as the reference has them: every thread runs them on the same numbers.
struct Course {
    const Arguments& a;
    double least, value;
    real stretch, before;
    unsigned length, since;
    int status, quantity;

    __device__ __forceinline__ Course(const Arguments& arguments)
        : a(arguments), least(a.state->least), value(0), stretch(real(a.state->stretch)), before(real(a.state->before)),
          length(a.state->length), since(a.state->since), status(a.state->status), quantity(OF_RESIDUAL) {}

    // Returns whether this is the one thread that writes for all threads that work on the system.
    static __device__ __forceinline__ bool tells() { return (BATCHED || blockIdx.x == 0) && threadIdx.x == 0; }

    __device__ __forceinline__ bool goes_on() const { return status == RUNNING && length < a.until; }

    __device__ __forceinline__ void ends(int how, int what, double with)
    {
        status = how;
        quantity = what;
        value = with;
    }

    // Records the residual of the current iterate; returns whether it is small enough.
    __device__ __forceinline__ bool converged(double residual)
    {
        const unsigned iteration = length++;
        if (tells()) a.history[iteration] = residual;
        if (!is_finite(residual)) ends(NOT_FINITE, OF_RESIDUAL, residual);
        else if (residual <= a.threshold) ends(CONVERGED, OF_RESIDUAL, residual);
        else {
            const bool over = stagnates(iteration, residual);
            if (iteration >= a.most) ends(ITERATIONS, OF_RESIDUAL, residual);
            else if (over) ends(STAGNATION, OF_RESIDUAL, residual);
        }
        return status == CONVERGED;
    }

    // Notes that an iteration has taken alpha rho off the square of the error's A-norm.
    __device__ __forceinline__ void gained(real energy) { stretch += energy; }

    // Returns whether there was no progress for too long.
    __device__ __forceinline__ bool stagnates(unsigned iteration, double residual)
    {
        if constexpr (BY_ENERGY) {
            if (iteration - since < a.patience) return false;
            const real whole = before + stretch;
            // A sum that overflows or underflows says nothing.
            const bool over = is_finite(whole) && stretch < real(LEAST_SHARE) * whole;
            since = iteration;
            stretch = real(0);
            before = whole;
            return over;
        } else {
            if (residual < least) {
                least = residual;
                since = iteration;
            }
            return a.patience != ~0u && iteration - since >= a.patience;
        }
    }

    // Lowers the last entry of the history to the true residual, which can meet the threshold before the
    // recurred one does.
    __device__ __forceinline__ void lower(double residual) const
    {
        if (tells() && residual < a.history[length - 1]) a.history[length - 1] = residual;
    }

    // Returns whether the true residual, given by its square, belies a recurred residual that is small
    // enough. The run then goes on from a new start at x, if an iteration is left and the last start was of
    // use.
    __device__ __forceinline__ bool lost(double true_square)
    {
        const double residual = sqrt(true_square);
        if (status != CONVERGED || !(residual > a.near) || !is_finite(residual)) return false;
        if (tells()) a.history[length - 1] = residual;
        if (length > a.most) ends(ITERATIONS, OF_RESIDUAL, residual);
        else if (residual > 0.5 * least) ends(STAGNATION, OF_TRUE_RESIDUAL, residual);
        else status = RUNNING;
        least = residual;
        return status == RUNNING;
    }

    // Returns whether a quantity is positive; the run ends where it is not.
    __device__ __forceinline__ bool positive(int what, real with)
    {
        if (!is_finite(with)) ends(NOT_FINITE, what, with);
        else if (!(with > real(0))) ends(NOT_POSITIVE, what, with);
        return status == RUNNING;
    }

    // Returns whether a quantity is finite and not 0; the run ends where it is not.
    __device__ __forceinline__ bool nonzero(int what, real with)
    {
        if (!is_finite(with)) ends(NOT_FINITE, what, with);
        else if (with == real(0)) ends(VANISHED, what, with);
        return status == RUNNING;
    }

    __device__ __forceinline__ void leave(const double (&scalars)[SCALARS], double true_square) const
    {
        if (!tells()) return;
        State& s = *a.state;
        s.least = least;
        s.value = value;
        s.true_square = true_square;
        s.stretch = stretch;
        s.before = before;
        s.length = length;
        s.since = since;
        s.quantity = quantity;
        s.status = status;
        for (int n = 0; n < SCALARS; ++n) s.scalars[n] = scalars[n];
    }

    template <class T>
    static __device__ __forceinline__ bool is_finite(T x) { return x - x == T(0); }
};
