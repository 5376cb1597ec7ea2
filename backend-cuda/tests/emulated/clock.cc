// Runs a kernel of a clock, which is in kernel.h: program FOLDER STRETCH ROWS EXACT.
//
// FOLDER/values holds the clock's values, EXACT are the bits of what the last reduction made. Prints the bits of that value as it
// was noted, of all values, of the scalars in both types, and of the rows, as numbers of 64 bits.

#include "device.h"

#include "kernel.h"

int main(int, char** words)
{
    FILE* file = fopen((std::string(words[1]) + "/values").c_str(), "rb");
    if (!file) return 1;
    const auto number = [&](int i) { return strtoull(words[i], nullptr, 10); };
    std::vector<double> values(VALUES), exact(SCALARS, std::bit_cast<double>(number(4)));
    if (fread(values.data(), sizeof(double), VALUES, file) != VALUES) return 1;
    std::vector<real> rounded(SCALARS), table(number(3));
    double reduced = 0;
    STRETCHES[number(2)](Clock{values.data(), table.data(), exact.data(), rounded.data(), &reduced});
    const auto print = [](double value) { printf("%llu ", std::bit_cast<unsigned long long>(value)); };
    print(reduced);
    for (const double value : values) print(value);
    for (const double value : exact) print(value);
    for (const real value : rounded) print(value);
    for (const real value : table) print(value);
}
