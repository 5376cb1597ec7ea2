// The turns of loops in a step: whether a loop has another one.
//
// The generated text below has a struct `Loop…` for each loop that ends by a condition.

// Launches do nothing more until the loop is left.
constexpr unsigned long long LOOP_OVER = 4;

template <class L>
__device__ __forceinline__ void begin_turn(const Arguments& arguments)
{
    Progress& progress = *arguments.progress;
    if (progress.stopped) return;
    if (L::is_over(arguments)) progress.stopped = LOOP_OVER;
    else ++progress.turns;
}

__device__ __forceinline__ void leave_loop(const Arguments& arguments)
{
    Progress& progress = *arguments.progress;
    progress.stopped &= ~LOOP_OVER;
    progress.turns = 0;
}
