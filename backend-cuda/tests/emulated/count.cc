// Runs the kernels that count, which are in kernel.h: program FOLDER KERNEL ROWS WIDTH PITCH SPANS BLOCKS THREADS.
//
// FOLDER/values holds the values with the space between their rows. Prints the count.

#include "device.h"

#include "kernel.h"

int main(int, char** words)
{
    FILE* file = fopen((std::string(words[1]) + "/values").c_str(), "rb");
    if (!file) return 1;
    std::vector<unsigned char> bytes;
    for (int byte; (byte = fgetc(file)) != EOF;) bytes.push_back(byte);
    const auto number = [&](int i) { return strtoull(words[i], nullptr, 10); };
    unsigned long long count = 0;
    const Values values = {bytes.data(), &count, number(3), number(4), number(5), number(6), number(7)};
    std::vector<unsigned> lanes(number(7) * number(8));
    std::iota(lanes.begin(), lanes.end(), 0u);
    std::shuffle(lanes.begin(), lanes.end(), std::mt19937(1));
    for (const unsigned lane : lanes) {
        blockIdx.x = lane / number(8);
        threadIdx.x = lane % number(8);
        switch (number(2)) {
            case 0: count_f32(values); break;
            case 1: count_f64(values); break;
            case 2: count_f16(values); break;
            default: count_bf16(values);
        }
    }
    printf("%llu", count);
}
