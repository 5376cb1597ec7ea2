// One domain: a block for each tile.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR)
resident(const __grid_constant__ Buffers buffers, const __grid_constant__ ExchangeBuffer exchange_buffer, const __grid_constant__ Parameters parameters, unsigned* counters, unsigned steps)
{
    run_tile(buffers, exchange_buffer, parameters, counters, steps);
}
