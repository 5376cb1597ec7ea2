// Copies from device memory to shared memory, without a detour through registers where the device can.

template <int BYTES>
__device__ __forceinline__ void copy_async(real* to, const real* from)
{
#if __CUDA_ARCH__ >= 800
    copy_to_shared<BYTES>(to, from);
#else
    if constexpr (BYTES == 16) *reinterpret_cast<DeviceVector*>(to) = __ldcg(reinterpret_cast<const DeviceVector*>(from));
    else *to = __ldcg(from);
#endif
}

// Does so where it is asked for.
template <int BYTES>
__device__ __forceinline__ void copy_async_if(bool asked, real* to, const real* from)
{
#if __CUDA_ARCH__ >= 800
    copy_to_shared_if<BYTES>(asked, to, from);
#else
    if (asked) copy_async<BYTES>(to, from);
#endif
}

__device__ __forceinline__ void copies_end()
{
#if __CUDA_ARCH__ >= 800
    copies_commit();
#endif
}

// Waits until all but the last `N` groups of copies have arrived.
template <int N>
__device__ __forceinline__ void copies_wait()
{
#if __CUDA_ARCH__ >= 800
    copies_await<N>();
#endif
}

// Returns a number that all lanes of a warp have alike; the compiler then keeps it in registers that they
// share.
template <class Number>
__device__ __forceinline__ Number uniform(Number number) { return __shfl_sync(~0u, number, 0); }
