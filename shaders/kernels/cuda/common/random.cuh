
// Random numbers of cells: Philox 4x32 with ten rounds of a cell's indices and the step by the seed and the stream, as
// core/src/expr/draw.rs has it.

__device__ __forceinline__ unsigned word(real whole) { return static_cast<unsigned>(static_cast<int>(whole)); }

__device__ __forceinline__ real drawn(real z, real y, real x, real seed, real step, real turn, unsigned stream, unsigned part)
{
    unsigned a = word(x), b = word(y), c = word(z), d = word(step);
    unsigned first = word(seed), second = stream | word(turn) << 16;
    #pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned long long left = 0xd2511f53ull * a, right = 0xcd9e8d57ull * c;
        a = static_cast<unsigned>(right >> 32) ^ b ^ first;
        b = static_cast<unsigned>(right);
        c = static_cast<unsigned>(left >> 32) ^ d ^ second;
        d = static_cast<unsigned>(left);
        first += 0x9e3779b9u;
        second += 0xbb67ae85u;
    }
    if constexpr (sizeof(real) == 4) return static_cast<real>((part == 0 ? a : b) >> 8) * static_cast<real>(5.9604644775390625e-8);
    const unsigned high = part == 0 ? a : c, low = part == 0 ? b : d;
    return (static_cast<real>(high >> 5) * static_cast<real>(67108864.0) + static_cast<real>(low >> 6)) * static_cast<real>(1.1102230246251565e-16);
}
