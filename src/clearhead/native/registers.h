// Registers of float32 as the processor has them, and what both the decoder and the training loops do with them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#if defined(__AVX512F__)
constexpr int W = 16, MR = 12;
#elif defined(__AVX2__)
constexpr int W = 8, MR = 6;
#else
constexpr int W = 4, MR = 8;
#endif
typedef float vf __attribute__((vector_size(W * 4), aligned(4)));
typedef int32_t vi __attribute__((vector_size(W * 4), aligned(4)));

template <class T> static inline T load(const void* p) { T v; std::memcpy(&v, p, sizeof(T)); return v; }
template <class T> static inline void store(void* p, T v) { std::memcpy(p, &v, sizeof(T)); }
static inline vf larger(vf a, vf b) { return a > b ? a : b; }
// v with its numbers moved down by `by`, the lowest ones to the top.
template <int by, int... N> static inline vf moved(vf v, std::integer_sequence<int, N...>) {
#ifdef __clang__
    return __builtin_shufflevector(v, v, ((N + by) % W)...);
#else
    return __builtin_shuffle(v, vi{((N + by) % W)...});
#endif
}
// Over the numbers of a register, by halves: one after the other would take as long as all the products before.
template <int half = W / 2> static inline float sum(vf v) {
    if constexpr (half == 0) return v[0];
    else return sum<half / 2>(v + moved<half>(v, std::make_integer_sequence<int, W>{}));
}
template <int half = W / 2> static inline float top(vf v) {
    if constexpr (half == 0) return v[0];
    else return top<half / 2>(larger(v, moved<half>(v, std::make_integer_sequence<int, W>{})));
}

// exp: 2^n · p(r), |r| ≤ ln 2 / 2, a polynomial of degree 6 (Cephes); relative error below 2e-7.
static inline vf vexp(vf x) {
    const vf low = vf{} - 87.0f;
    x = x < low ? low : x;
    const vf magic = vf{} + 12582912.0f;
    vf n = x * 1.44269504f + magic;
    vi bits = load<vi>(&n);
    n -= magic;
    vf r = x - n * 0.693359375f - n * -2.12194440e-4f;
    vf p = vf{} + 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    vi e = bits << 23;
    vi q = load<vi>(&p) + e;
    return load<vf>(&q);
}

static inline int whole(int n) { return (n + W - 1) / W * W; }

template <int... N> static constexpr vi counted(std::integer_sequence<int, N...>) { return vi{N...}; }
constexpr vi LANES = counted(std::make_integer_sequence<int, W>{});

// The softmax of scale times the first n numbers, in place; the others, up to `room`, become 0. In whole registers: a
// register read back where single numbers were written waits for all of them.
static inline void softmax(float* x, int n, int room, float scale) {
    vf most = vf{} - INFINITY, total = {};
    for (int i = 0; i < n; i += W) {
        const vf v = LANES + i < vi{} + n ? load<vf>(x + i) * scale : vf{} - INFINITY;
        store(x + i, v);
        most = larger(most, v);
    }
    const float high = top(most);
    for (int i = 0; i < n; i += W) {
        const vf v = LANES + i < vi{} + n ? vexp(load<vf>(x + i) - high) : vf{};
        store(x + i, v);
        total += v;
    }
    const float inverse = 1.f / sum(total);
    for (int i = 0; i < n; i += W) store(x + i, load<vf>(x + i) * inverse);
    for (int i = whole(n); i < room; i += W) store(x + i, vf{});
}

// An exception must not cross into Python: what memory could not be had for is false.
template <class Work> static inline bool done(Work work) {
    try {
        work();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}
