// Runs a kernel whose blocks wait for each other, which is in kernel.h: program FOLDER SEED ALL PASSES. Its words go to
// FOLDER/result.

#include "device.h"

#include "kernel.h"

emulated::DeviceVector<unsigned> all_words(2 * emulated::LANES, ~0u), all_counters(FLAG_STRIDE * BLOCKS_LAUNCHED, 0u);
unsigned passes;

void all() { meet_all({all_words.data(), all_counters.data(), passes}); }
void beside() { meet_beside({all_words.data(), all_counters.data(), passes}); }

int main(int, char** words)
{
    emulated::seed(atoi(words[2]));
    passes = atoi(words[4]);
    emulated::launch(atoi(words[3]) ? all : beside, [](int block, int thread) {
        blockIdx.x = block;
        threadIdx.x = thread;
    });
    FILE* const file = fopen((std::string(words[1]) + "/result").c_str(), "wb");
    if (!file || fwrite(all_words.data(), 4, all_words.size(), file) != all_words.size()) emulated::fail("cannot write");
    fclose(file);
}
