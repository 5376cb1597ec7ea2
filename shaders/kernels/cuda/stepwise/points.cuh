// Several points of a thread together: the views of all, and their stage.

template <class S>
struct Views {
    View<S> at[POINTS];

    template <int F, int DS, int DY, int DX>
    __device__ __forceinline__ Points wide() const { return each_point([&](int k) { return at[k].template wide<F, DS, DY, DX>(); }); }
    template <int F>
    __device__ __forceinline__ Points narrow() const { return each_point([&](int k) { return at[k].template narrow<F>(); }); }
    template <int FIRST>
    __device__ __forceinline__ Points component(int number) const { return each_point([&](int k) { return at[k].template component<FIRST>(number); }); }
    // Views beyond the domain's end are of the last cell, which then gets its value again.
    template <int FIRST>
    __device__ __forceinline__ void store(int number, const Points& value) const
    {
        #pragma unroll
        for (int k = 0; k < POINTS; ++k) at[k].template store<FIRST>(number, value.at[k]);
    }
    template <int I>
    __device__ __forceinline__ real parameter() const { return at[0].template parameter<I>(); }
    template <int AXIS>
    __device__ __forceinline__ Points coordinate() const { return each_point([&](int k) { return at[k].template coordinate<AXIS>(); }); }
};

// Computes the cells at x0 + cx, x0 + cx + THREADS_X, … of a row. Beyond the domain's end the last cell is computed
// instead, and not stored.
template <class S>
__device__ __forceinline__ void stage_points(const Buffers& buffers, const Parameters& parameters, const real* row, Offset s, Offset y, Offset x0, int cx)
{
    const auto x_of = [&](int k) { return x0 + cx + k * THREADS_X; };
    const auto view = [&](int k) {
        const Offset x = x_of(k) < EXTENT_X ? x_of(k) : EXTENT_X - 1;
        return View<S>{buffers, parameters, row + (x - x0), s, y, x};
    };
    //@views
    Points value[S::VALUES];
    S::compute(views, value);
    #pragma unroll
    for (int k = 0; k < POINTS; ++k) {
        const Offset x = x_of(k);
        if (x >= EXTENT_X) continue;
        real own[S::VALUES];
        #pragma unroll
        for (int o = 0; o < S::WRITES; ++o) own[o] = value[o].at[k];
        if (HAS_FIXED && (held_s(s) || held_y(y) || held_x(x))) S::keep(views.at[k], own);
        #pragma unroll
        for (int o = 0; o < S::WRITES; ++o) of_field(buffers.next, S::writes(o))[s * STRIDE_S + y * STRIDE_Y + x] = own[o];
    }
}
