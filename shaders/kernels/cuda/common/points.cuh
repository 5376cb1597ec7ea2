// Values of several points of a thread, for formulas whose loops go over all of them together: what is the same for every
// point, as the entry of a table, is a `real`, and read once.

struct Points {
    real at[POINTS];

    __device__ __forceinline__ Points() {}
    __device__ __forceinline__ Points(real same)
    {
        #pragma unroll
        for (int k = 0; k < POINTS; ++k) at[k] = same;
    }
};

// Whether something holds at each point.
struct Holds { bool at[POINTS]; };

// Makes what there is of each point k: values, or whether something holds.
template <class Made = Points, class F>
__device__ __forceinline__ Made each_point(const F& f)
{
    Made made;
    #pragma unroll
    for (int k = 0; k < POINTS; ++k) made.at[k] = f(k);
    return made;
}

__device__ __forceinline__ Points operator+(const Points& a, const Points& b) { return each_point([&](int k) { return a.at[k] + b.at[k]; }); }
__device__ __forceinline__ Points operator-(const Points& a, const Points& b) { return each_point([&](int k) { return a.at[k] - b.at[k]; }); }
__device__ __forceinline__ Points operator*(const Points& a, const Points& b) { return each_point([&](int k) { return a.at[k] * b.at[k]; }); }
__device__ __forceinline__ Points operator/(const Points& a, const Points& b) { return each_point([&](int k) { return a.at[k] / b.at[k]; }); }
__device__ __forceinline__ Points operator-(const Points& a) { return each_point([&](int k) { return -a.at[k]; }); }
__device__ __forceinline__ Holds operator<(const Points& a, const Points& b) { return each_point<Holds>([&](int k) { return a.at[k] < b.at[k]; }); }
__device__ __forceinline__ Holds operator>(const Points& a, const Points& b) { return each_point<Holds>([&](int k) { return a.at[k] > b.at[k]; }); }
__device__ __forceinline__ Holds operator<=(const Points& a, const Points& b) { return each_point<Holds>([&](int k) { return a.at[k] <= b.at[k]; }); }
__device__ __forceinline__ Holds operator>=(const Points& a, const Points& b) { return each_point<Holds>([&](int k) { return a.at[k] >= b.at[k]; }); }
__device__ __forceinline__ Holds operator==(const Points& a, const Points& b) { return each_point<Holds>([&](int k) { return a.at[k] == b.at[k]; }); }
__device__ __forceinline__ Holds operator!=(const Points& a, const Points& b) { return each_point<Holds>([&](int k) { return a.at[k] != b.at[k]; }); }
__device__ __forceinline__ Points fma(const Points& a, const Points& b, const Points& c) { return each_point([&](int k) { return fma(a.at[k], b.at[k], c.at[k]); }); }
__device__ __forceinline__ Points fabs(const Points& a) { return each_point([&](int k) { return fabs(a.at[k]); }); }
__device__ __forceinline__ Points sqrt(const Points& a) { return each_point([&](int k) { return sqrt(a.at[k]); }); }
__device__ __forceinline__ Points floor(const Points& a) { return each_point([&](int k) { return floor(a.at[k]); }); }

__device__ __forceinline__ real choose(bool condition, real yes, real no) { return condition ? yes : no; }
__device__ __forceinline__ Points choose(bool condition, const Points& yes, const Points& no) { return each_point([&](int k) { return condition ? yes.at[k] : no.at[k]; }); }
__device__ __forceinline__ Points choose(const Holds& condition, const Points& yes, const Points& no) { return each_point([&](int k) { return condition.at[k] ? yes.at[k] : no.at[k]; }); }
