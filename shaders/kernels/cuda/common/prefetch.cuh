// Asks for a value of device memory, which a later turn will read, to come into the last-level cache.
template <class T>
__device__ __forceinline__ void prefetch(const T* from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}
