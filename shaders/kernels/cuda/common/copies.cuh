// Copies from device memory to shared memory, without a detour through registers where the device can.

template <int BYTES>
__device__ __forceinline__ void copy_async(real* to, const real* from)
{
#if __CUDA_ARCH__ >= 800
    const unsigned address = unsigned(__cvta_generic_to_shared(to));
    if constexpr (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(BYTES) : "memory");
#else
    if constexpr (BYTES == 16) *reinterpret_cast<DeviceVector*>(to) = __ldcg(reinterpret_cast<const DeviceVector*>(from));
    else *to = __ldcg(from);
#endif
}

__device__ __forceinline__ void copies_end()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all but the last `N` groups of copies have arrived.
template <int N>
__device__ __forceinline__ void copies_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// Returns a number that all lanes of a warp have alike; the compiler then keeps it in registers that they
// share.
template <class Number>
__device__ __forceinline__ Number uniform(Number number) { return __shfl_sync(~0u, number, 0); }
