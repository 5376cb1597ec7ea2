// Order between kernels of several devices, which see each other's memory.

// Orders what the block has stored into any device's memory before what this thread stores next.
__device__ __forceinline__ void fence_devices() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// Loads a number that blocks of other devices change; what they stored before is then there.
__device__ __forceinline__ unsigned load_devices(const unsigned* p)
{
    unsigned v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
