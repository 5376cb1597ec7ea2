// Runs the kernels of elementary functions, which are in kernel.h: program FOLDER.
//
// FOLDER/x and FOLDER/y hold the arguments; the values of each function go to a file of its name.

#include "device.h"

#include "kernel.h"

static std::vector<real> read(const std::string& name)
{
    std::vector<real> values;
    FILE* file = fopen(name.c_str(), "rb");
    for (real value; file && fread(&value, sizeof value, 1, file) == 1;) values.push_back(value);
    return values;
}

int main(int, char** words)
{
    const std::string folder = std::string(words[1]) + "/";
    const std::vector<real> x = read(folder + "x"), y = read(folder + "y");
    if (x.empty() || x.size() != y.size()) return 1;
    const auto run = [&](const char* name, void (*kernel)(Each)) {
        std::vector<real> values(x.size());
        const Each each = {x.data(), y.data(), values.data(), x.size(), 1};
        for (size_t i = 0; i < x.size(); ++i) {
            blockIdx.x = i / 256;
            threadIdx.x = i % 256;
            kernel(each);
        }
        FILE* file = fopen((folder + name).c_str(), "wb");
        if (!file || fwrite(values.data(), sizeof(real), values.size(), file) != values.size()) exit(1);
        fclose(file);
    };
#define RUN(name) run(#name, [](Each each) { formula_of_##name(each); });
    FUNCTIONS(RUN)
}
