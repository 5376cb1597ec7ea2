// A batch: a block for each member, whose one tile is the member's domain. The fields in `first` are the first
// member's; those of the others follow, without gaps.

static_assert(!EXCHANGES, "members do not wait for each other");

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR)
resident(const __grid_constant__ Buffers first, const Parameters* parameters, unsigned steps)
{
    const long long before = blockIdx.x * ((long long)(EXTENT_S) * EXTENT_Y * PITCH);
    Buffers own = {};
    each<FIELDS>([&](auto f) { own.current[f.value] = first.current[f.value] + before; });
    // A copy, so that they are read once.
    const Parameters given = parameters[blockIdx.x];
    run_tile(own, {own}, given, nullptr, steps);
}
