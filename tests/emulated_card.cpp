// Runs kernels.cu on the processor: a block is 256 fibres that take turns, and a barrier is where
// each lets the next one go on. Nothing runs at the same time, so races between threads are not
// found here; wrong indices, wrong sums and missing barriers are.

#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

struct Index {
    unsigned x;
};
static Index threadIdx, blockIdx, blockDim = {256}, gridDim;
static ucontext_t scheduler, fibres[256];
static std::vector<char> stacks(256 * 65536);
static bool finished[256];
static std::function<void()> body;

static void __syncthreads() {
    unsigned self = threadIdx.x;
    swapcontext(&fibres[self], &scheduler);
    threadIdx.x = self;
}

static void enter() {
    body();
    finished[threadIdx.x] = true;
    swapcontext(&fibres[threadIdx.x], &scheduler);
}

static void launch(int blocks, std::function<void()> kernel) {
    body = kernel;
    gridDim.x = blocks;
    for (int block = 0; block < blocks; block++) {
        blockIdx.x = block;
        for (int lane = 0; lane < 256; lane++) {
            finished[lane] = false;
            getcontext(&fibres[lane]);
            fibres[lane].uc_stack.ss_sp = stacks.data() + 65536 * lane;
            fibres[lane].uc_stack.ss_size = 65536;
            fibres[lane].uc_link = nullptr;
            makecontext(&fibres[lane], enter, 0);
        }
        for (bool waiting = true; waiting;) {
            waiting = false;
            for (int lane = 0; lane < 256; lane++) {
                if (finished[lane]) continue;
                threadIdx.x = lane;
                swapcontext(&scheduler, &fibres[lane]);
                waiting = waiting || !finished[lane];
            }
        }
    }
}

static double __longlong_as_double(long long bits) {
    double x;
    std::memcpy(&x, &bits, 8);
    return x;
}
static long long __double_as_longlong(double x) {
    long long bits;
    std::memcpy(&bits, &x, 8);
    return bits;
}
template <class T> static void atomicMax(T* at, T x) { if (x > *at) *at = x; }
template <class T> static void atomicMin(T* at, T x) { if (x < *at) *at = x; }
static void atomicOr(int* at, int x) { *at |= x; }

static double exchanged[256];
static double __shfl_down_sync(unsigned, double mine, int distance, int width) {
    unsigned self = threadIdx.x;
    exchanged[self] = mine;
    __syncthreads();
    double theirs = exchanged[self % width + distance < (unsigned)width ? self + distance : self];
    __syncthreads();
    return theirs;
}

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
using std::exp;
using std::fabs;
using std::log;
#define floor floor_  // a name of the kernels that <cmath> has too
#define inline
#include "kernels.cu"

extern "C" {
void emulate_reset_double(int blocks, Slot* s, int n, int g, double* w, double one, Result* r) {
    launch(blocks, [=] { reset_double(s, n, g, w, one, r); });
}
void emulate_reset_float(int blocks, Slot* s, int n, int g, float* w, double one, Result* r) {
    launch(blocks, [=] { reset_float(s, n, g, w, one, r); });
}
#define SURVEY(name)                                                                              \
    void emulate_##name(int blocks, const int* t, const i64* g, int p, const Call* c, Slot* s,    \
                        Result* r) {                                                              \
        launch(blocks, [=] { name(t, g, p, c, s, r); });                                          \
    }
SURVEY(survey_double)
SURVEY(survey_float)
#define RUN(name, Number)                                                                         \
    void emulate_##name(int blocks, const int* t, const i64* o, const i64* l, const Call* c,      \
                        Slot* s, Number* w, Result* r) {                                          \
        launch(blocks, [=] { name(t, o, l, c, s, w, r); });                                       \
    }
RUN(ordinary_double, double)
RUN(ordinary_float, float)
RUN(logarithms_double, double)
RUN(peaks_double, double)
void emulate_summarise(int blocks, const i64* f, int n, int g, int s, double tiny, const Slot* k,
                       Result* r) {
    launch(blocks, [=] { summarise(f, n, g, s, tiny, k, r); });
}
void emulate_summarise_logarithms(int blocks, const i64* roots, int n, const double* w,
                                  Result* r) {
    launch(blocks, [=] { summarise_logarithms(roots, n, w, r); });
}
#define VECTOR(name, Number)                                                                      \
    void emulate_mix_##name(int blocks, const Number* a, const Number* b, double x, Number* o,    \
                            i64 n) {                                                              \
        launch(blocks, [=] { mix_##name(a, b, x, o, n); });                                       \
    }                                                                                             \
    void emulate_descend_##name(int blocks, const Number* a, const Number* b, double x,           \
                                Number* o, i64 n) {                                               \
        launch(blocks, [=] { descend_##name(a, b, x, o, n); });                                   \
    }                                                                                             \
    void emulate_dot_##name(int blocks, const Number* a, const Number* b, double* p, i64 n) {     \
        launch(blocks, [=] { dot_##name(a, b, p, n); });                                          \
    }                                                                                             \
    void emulate_quadratic_##name(int blocks, const Number* a, const Number* b, const Number* c,  \
                                  Number* o, double* p, i64 n) {                                  \
        launch(blocks, [=] { quadratic_##name(a, b, c, o, p, n); });                              \
    }                                                                                             \
    void emulate_find_largest_##name(int blocks, const Number* a, double* p, i64 n) {             \
        launch(blocks, [=] { find_largest_##name(a, p, n); });                                    \
    }                                                                                             \
    void emulate_distance_##name(int blocks, const Number* a, const Number* b, double* p,         \
                                 i64 n) {                                                         \
        launch(blocks, [=] { distance_##name(a, b, p, n); });                                     \
    }                                                                                             \
    void emulate_take_logarithms_##name(int blocks, const Number* a, double x, Number* o,         \
                                        i64 n) {                                                  \
        launch(blocks, [=] { take_logarithms_##name(a, x, o, n); });                              \
    }                                                                                             \
    void emulate_rescale_towards_##name(int blocks, const Number* a, const Number* b,             \
                                        const Number* c, double x, double y, Number* o, i64 n) {  \
        launch(blocks, [=] { rescale_towards_##name(a, b, c, x, y, o, n); });                     \
    }                                                                                             \
    void emulate_direct_away_##name(int blocks, const Number* a, const Number* b, Number* o,      \
                                    i64 n) {                                                      \
        launch(blocks, [=] { direct_away_##name(a, b, o, n); });                                  \
    }
VECTOR(double, double)
VECTOR(float, float)
void emulate_draw(int blocks, int* codes, i64 n, u64 first, const i64* known, const i64* strides,
                  int n_known, const i64* added, int n_added, const int* decoded,
                  const double* share, const int* alias, i64 n_cells, u64 key, u64 phase,
                  u64 n_phases) {
    launch(blocks, [=] {
        draw(codes, n, first, known, strides, n_known, added, n_added, decoded, share, alias,
             n_cells, key, phase, n_phases);
    });
}
}
