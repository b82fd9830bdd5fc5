// Registers of float32 as the processor has them, and what both the decoder and the training loops do with them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

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
// Over the numbers of a register, by halves: one after the other would take as long as all the products before.
static inline float sum(vf v) {
    for (int half = W / 2; half; half /= 2)
        for (int i = 0; i < half; i++) v[i] += v[i + half];
    return v[0];
}
static inline float top(vf v) {
    for (int half = W / 2; half; half /= 2)
        for (int i = 0; i < half; i++) v[i] = std::max(v[i], v[i + half]);
    return v[0];
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
