// The Transformer's decoding in one pass of the processor: the same equations as models/seq2seq.py, for speed alone.
//
// What makes it fast: weights stand in panels as wide as the registers; a step is one parallel region; an attention
// reads only the words in its own past (a list of slots, so that beam search copies nothing); the scores of a whole
// vocabulary are reduced to their normaliser and the few largest while they are still in the cache.
//
// float32, or int8 with a scale per row of the input and per output. Knows pointers and sizes. Refuses to know
// searches, words and files. Built and bound by build.py and engine.py; tests/parity/test_native.py ties it to torch.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <omp.h>
#include <sched.h>
#include <utility>
#include <vector>
#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif
#include "registers.h"

constexpr int NV = 2, PANEL = NV * W, CHUNK = 4 * MR, ABREAST = 4;

// The sums of as many registers as each has numbers, side by side: in the order of `sum`, in a third of its moves.
template <int half, int... I> static inline vf folded(vf a, vf b, std::integer_sequence<int, I...>) {
#ifdef __clang__
#define PICK(offset) __builtin_shufflevector(a, b, (offset + I / (W / 2) * W + I % (W / 2) / half * 2 * half + I % half)...)
#else
#define PICK(offset) __builtin_shuffle(a, b, vi{(offset + I / (W / 2) * W + I % (W / 2) / half * 2 * half + I % half)...})
#endif
    return PICK(0) + PICK(half);
#undef PICK
}
template <int N> static inline vf sums(const vf* v) {
    vf next[N / 2];
#pragma GCC unroll 16
    for (int i = 0; i < N / 2; i++)
        next[i] = folded<N / 2>(v[2 * i], v[2 * i + 1], std::make_integer_sequence<int, W>{});
    return sums<N / 2>(next);
}
template <> inline vf sums<1>(const vf* v) { return v[0]; }

// Σ f(x): in this order wherever x lies, so that a row's numbers are its own.
template <class F> static inline float total(const float* x, int n, F f) {
    vf acc = {};
    int i = 0;
    for (; i + W <= n; i += W) acc += f(load<vf>(x + i));
    float s = sum(acc);
    for (; i < n; i++) s += f(x[i]);
    return s;
}

// Where the threads of a parallel region meet. OpenMP's own barrier never gives way while it waits: with another program
// on one of the cores, threads that should take turns there wait out each other's whole slice, and a step takes a
// hundred times as long. Here a thread that has waited for a few microseconds lets others go first.
struct Meeting {
    alignas(64) std::atomic<int> arrived{0};
    alignas(64) std::atomic<int> turn{0};

    void wait() {
        const int now = turn.load(std::memory_order_relaxed);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == omp_get_num_threads()) {
            arrived.store(0, std::memory_order_relaxed);
            turn.store(now + 1, std::memory_order_release);
            return;
        }
        for (int waited = 0; turn.load(std::memory_order_acquire) == now; waited++) {
            if (waited > PATIENCE) sched_yield();
#ifdef __x86_64__
            else __builtin_ia32_pause();
#endif
        }
    }
    static constexpr int PATIENCE = 200;
};

// work(0) … work(n − 1), each thread of the region its run of them; then all meet.
template <class Work> static inline void share(Meeting& team, int n, Work work) {
    const int me = omp_get_thread_num(), threads = omp_get_num_threads();
    for (int i = int(int64_t(n) * me / threads), end = int(int64_t(n) * (me + 1) / threads); i < end; i++) work(i);
    team.wait();
}

enum Activation { NONE, RELU, GELU, RELU2 };

// ---------------------------------------------------------------------------------------------- linear maps

struct Map {
    int inputs = 0, outputs = 0, quads = 0;
    bool whole = false;                 // int8
    std::vector<float> weight;          // panel · input · PANEL
    std::vector<int8_t> numbers;        // panel · quad · PANEL · 4
    std::vector<float> scale, bias;     // per output, filled up to the panel
    std::vector<int32_t> offset;        // 128 · Σ numbers: the inputs are stored as number + 128
    int panels() const { return (outputs + PANEL - 1) / PANEL; }

    void size(const float* b, int in, int out) {
        inputs = in, outputs = out, quads = (in + 3) / 4;
        bias.assign(panels() * PANEL, 0.f);
        if (b) std::copy(b, b + out, bias.begin());
    }
    void pack(const float* w) {
        weight.assign(size_t(panels()) * inputs * PANEL, 0.f);
        for (int o = 0; o < outputs; o++)
            for (int i = 0; i < inputs; i++)
                weight[(size_t(o / PANEL) * inputs + i) * PANEL + o % PANEL] = w[size_t(o) * inputs + i];
    }
    // Whole numbers and what one of them stands for, as nn/packed.py rounds them.
    void pack(const int8_t* w, const float* s) {
        whole = true;
        scale.assign(panels() * PANEL, 0.f);
        std::copy(s, s + outputs, scale.begin());
        offset.assign(panels() * PANEL, 0);
        numbers.assign(size_t(panels()) * quads * PANEL * 4, 0);
        for (int o = 0; o < outputs; o++)
            for (int i = 0; i < inputs; i++) {
                const int8_t q = w[size_t(o) * inputs + i];
                offset[o] += 128 * q;
                numbers[((size_t(o / PANEL) * quads + i / 4) * PANEL + o % PANEL) * 4 + i % 4] = q;
            }
    }
};

// Rows ready to be multiplied: float32 as they are, or number + 128 with a scale.
struct Rows {
    const float* x = nullptr;
    int stride = 0;
    const uint8_t* numbers = nullptr;
    const float* scale = nullptr;
    int width = 0;                      // bytes a row of numbers
};

static void to_whole(const float* x, int n, uint8_t* out, float* scale) {
    vf high = vf{} + 1e-30f;
    int k = 0;
    for (; k + W <= n; k += W) {
        const vf v = load<vf>(x + k);
        high = larger(high, larger(v, -v));
    }
    float most = top(high);
    for (; k < n; k++) most = std::max(most, std::fabs(x[k]));
    const float s = most * (1.f / 127.f);
    *scale = s;
    for (int i = 0; i < n; i++) out[i] = uint8_t(int(std::nearbyint(x[i] / s)) + 128);
    for (int i = n; i < (n + 3) / 4 * 4; i++) out[i] = 128;
}

// Unrolled by order: left to itself the compiler keeps the sums in memory, at half the speed.
template <int R> static void tile(const float* a, int stride, const float* b, int n, float* out) {
    vf acc[R][NV] = {};
    for (int k = 0; k < n; k++, b += PANEL) {
        vf w[NV];
        for (int v = 0; v < NV; v++) w[v] = load<vf>(b + v * W);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++)
            for (int v = 0; v < NV; v++) acc[r][v] += w[v] * a[size_t(r) * stride + k];
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int v = 0; v < NV; v++) store(out + r * PANEL + v * W, acc[r][v]);
}

#ifdef __AVX512VNNI__
template <int R> static void whole_tile(const uint8_t* a, int stride, const int8_t* b, int quads, int32_t* out) {
    __m512i acc[R][NV];
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < NV; v++) acc[r][v] = _mm512_setzero_si512();
    for (int k = 0; k < quads; k++, b += PANEL * 4) {
        __m512i w[NV];
        for (int v = 0; v < NV; v++) w[v] = _mm512_loadu_si512(b + v * 64);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            __m512i x = _mm512_set1_epi32(load<int32_t>(a + size_t(r) * stride + 4 * k));
#pragma GCC unroll 2
            for (int v = 0; v < NV; v++) acc[r][v] = _mm512_dpbusd_epi32(acc[r][v], x, w[v]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < NV; v++) _mm512_storeu_si512(out + r * PANEL + v * W, acc[r][v]);
}
#else  // never reached: without these instructions Python asks for float32 alone (clearhead_fast_whole)
template <int R> static void whole_tile(const uint8_t*, int, const int8_t*, int, int32_t*) {}
#endif

// One row alone would wait for each sum to be ready for the next product: several panels abreast fill the time.
template <int P> static void row_tile(const float* a, const float* b, int n, float* out) {
    vf acc[P][NV] = {};
    for (int k = 0; k < n; k++)
#pragma GCC unroll 4
        for (int p = 0; p < P; p++)
            for (int v = 0; v < NV; v++) acc[p][v] += load<vf>(b + (size_t(p) * n + k) * PANEL + v * W) * a[k];
#pragma GCC unroll 4
    for (int p = 0; p < P; p++)
        for (int v = 0; v < NV; v++) store(out + p * PANEL + v * W, acc[p][v]);
}

#ifdef __AVX512VNNI__
template <int P> static void whole_row_tile(const uint8_t* a, const int8_t* b, int quads, int32_t* out) {
    __m512i acc[P][NV];
#pragma GCC unroll 4
    for (int p = 0; p < P; p++)
        for (int v = 0; v < NV; v++) acc[p][v] = _mm512_setzero_si512();
    for (int k = 0; k < quads; k++) {
        const __m512i x = _mm512_set1_epi32(load<int32_t>(a + 4 * k));
#pragma GCC unroll 4
        for (int p = 0; p < P; p++)
            for (int v = 0; v < NV; v++) {
                const __m512i w = _mm512_loadu_si512(b + ((size_t(p) * quads + k) * PANEL + v * W) * 4);
                acc[p][v] = _mm512_dpbusd_epi32(acc[p][v], x, w);
            }
    }
#pragma GCC unroll 4
    for (int p = 0; p < P; p++)
        for (int v = 0; v < NV; v++) _mm512_storeu_si512(out + p * PANEL + v * W, acc[p][v]);
}
#else
template <int P> static void whole_row_tile(const uint8_t*, const int8_t*, int, int32_t*) {}
#endif

template <int R> struct Tiles {
    static void plain(int rows, const float* a, int s, const float* b, int n, float* out) {
        if (rows == R) tile<R>(a, s, b, n, out);
        else Tiles<R - 1>::plain(rows, a, s, b, n, out);
    }
    static void whole(int rows, const uint8_t* a, int s, const int8_t* b, int n, int32_t* out) {
        if (rows == R) whole_tile<R>(a, s, b, n, out);
        else Tiles<R - 1>::whole(rows, a, s, b, n, out);
    }
};
template <> struct Tiles<0> {
    static void plain(int, const float*, int, const float*, int, float*) {}
    static void whole(int, const uint8_t*, int, const int8_t*, int, int32_t*) {}
};

static inline float activated(float y, Activation f) {
    switch (f) {
        case RELU: return std::max(y, 0.f);
        case GELU: return 0.5f * y * (1.f + std::erf(y * 0.70710678f));
        case RELU2: { float u = std::max(y, 0.f); return u * u; }
        default: return y;
    }
}

// What becomes of a product: to (+)= f(y + β).
static inline void deliver(const float* y, const float* bias, float* to, int n, Activation f, bool add) {
    if (add) for (int c = 0; c < n; c++) to[c] += y[c] + bias[c];
    else if (f == NONE) for (int c = 0; c < n; c++) to[c] = y[c] + bias[c];
    else if (f == RELU) for (int c = 0; c < n; c++) to[c] = std::max(y[c] + bias[c], 0.f);
    else for (int c = 0; c < n; c++) to[c] = activated(y[c] + bias[c], f);
}

// The products of whole numbers, and what they stand for.
static inline void unscale(const Map& m, int panel, const int32_t* whole, float scale, float* y, int n) {
    const float* t = m.scale.data() + panel * PANEL;
    const int32_t* o = m.offset.data() + panel * PANEL;
    for (int c = 0; c < n; c++) y[c] = float(whole[c] - o[c]) * scale * t[c];
}

// P panels of one row.
template <int P> static void multiply_row(const Map& m, const Rows& in, int panel, float* out, Activation f, bool add) {
    const int first = panel * PANEL, width = std::min(P * PANEL, m.outputs - first);
    float y[P * PANEL];
    if (m.whole) {
        int32_t whole[P * PANEL];
        whole_row_tile<P>(in.numbers, m.numbers.data() + size_t(panel) * m.quads * PANEL * 4, m.quads, whole);
        unscale(m, panel, whole, in.scale[0], y, P * PANEL);
    } else row_tile<P>(in.x, m.weight.data() + size_t(panel) * m.inputs * PANEL, m.inputs, y);
    deliver(y, m.bias.data() + first, out + first, width, f, add);
}

// A panel of the rows first … last.
static void multiply_rows(const Map& m, const Rows& in, int panel, int first, int last, float* out, int stride,
                          Activation f, bool add) {
    const int width = std::min(PANEL, m.outputs - panel * PANEL);
    float y[MR * PANEL];
    for (int r0 = first, n; r0 < last; r0 += n) {
        const int left = last - r0;
        n = left > MR && left < 2 * MR ? (left + 1) / 2 : std::min(MR, left);  // no few rows at the end: they are slow
        if (m.whole) {
            int32_t whole[MR * PANEL];
            const int8_t* b = m.numbers.data() + size_t(panel) * m.quads * PANEL * 4;
            Tiles<MR>::whole(n, in.numbers + size_t(r0) * in.width, in.width, b, m.quads, whole);
            for (int r = 0; r < n; r++) unscale(m, panel, whole + r * PANEL, in.scale[r0 + r], y + r * PANEL, PANEL);
        } else {
            const float* b = m.weight.data() + size_t(panel) * m.inputs * PANEL;
            Tiles<MR>::plain(n, in.x + size_t(r0) * in.stride, in.stride, b, m.inputs, y);
        }
        for (int r = 0; r < n; r++)
            deliver(y + r * PANEL, m.bias.data() + panel * PANEL, out + size_t(r0 + r) * stride + panel * PANEL, width,
                    f, add);
    }
}

// out (+)= f(x Wᵀ + β) for `rows` rows. Called by all threads of a parallel region.
static void multiply(Meeting& team, const Map& m, const Rows& in, int rows, float* out, int stride, Activation f,
                     bool add) {
    const int panels = m.panels();
    if (rows == 1) {
        const int each = panels >= ABREAST * omp_get_num_threads() ? ABREAST : 1;
        return share(team, (panels + each - 1) / each, [&](int task) {
            const int first = task * each;
            if (each == ABREAST && first + ABREAST <= panels) return multiply_row<ABREAST>(m, in, first, out, f, add);
            for (int panel = first; panel < std::min(panels, first + each); panel++)
                multiply_row<1>(m, in, panel, out, f, add);
        });
    }
    const int chunks = (rows + CHUNK - 1) / CHUNK;
    share(team, panels * chunks, [&](int task) {
        const int first = task % chunks * CHUNK;
        multiply_rows(m, in, task / chunks, first, std::min(rows, first + CHUNK), out, stride, f, add);
    });
}

// ---------------------------------------------------------------------------------------------- bricks

struct Norm {
    std::vector<float> weight, bias;
    float eps = 1e-5f;
    bool rms = false;

    void apply(const float* x, float* out, int n) const {
        const float mean = rms ? 0.f : total(x, n, [](auto v) { return v; }) / n;
        const float square = total(x, n, [=](auto v) { return (v - mean) * (v - mean); }) / n;
        const float inverse = 1.f / std::sqrt(square + eps);
        for (int i = 0; i < n; i++) out[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
    }
};

struct Layer {
    Norm norms[3];                      // self, (cross), feed-forward
    Map own, own_out, query, read, across_out, up, down;
};

// What a word begins as: its row and, where positions are added, its place's. Both are Python's.
struct Table {
    const float *words, *places;
};

struct Model {
    int d, heads, groups, h, u, ff, vocab;
    float scale, embedding_scale;
    bool pre, whole, rotary;
    Activation f;
    Table source, target;
    std::vector<float> sine, cosine;                         // max_len · h/2
    std::vector<Layer> encoder, decoder;
    Norm encoder_norm, decoder_norm;
    Map output;
    int wide() const { return heads * h + groups * (h + u); }

    // Rotary positions: pair i at place p turns by p / 10000^(2i/h).
    void waves(int longest) {
        const int half = h / 2;
        sine.resize(size_t(longest) * half), cosine.resize(size_t(longest) * half);
        for (int at = 0; at < longest; at++)
            for (int i = 0; i < half; i++) {
                const double angle = at / std::pow(10000.0, 2.0 * i / h);
                sine[size_t(at) * half + i] = float(std::sin(angle));
                cosine[size_t(at) * half + i] = float(std::cos(angle));
            }
    }
};

static float dot(const float* a, const float* b, int n) {
    vf acc = {};
    int i = 0;
    for (; i + W <= n; i += W) acc += load<vf>(a + i) * load<vf>(b + i);
    float s = sum(acc);
    for (; i < n; i++) s += a[i] * b[i];
    return s;
}

static void add_scaled(float* to, const float* x, float s, int n) {
    int i = 0;
    for (; i + W <= n; i += W) store(to + i, load<vf>(to + i) + load<vf>(x + i) * s);
    for (; i < n; i++) to[i] += x[i] * s;
}

// scores = q · key(i) · scale of n words, heads of V registers; scores has room for whole registers.
template <int V, class Key>
static inline void compare(const float* q, Key key, int n, float scale, float* scores) {
    vf query[V], products[W];
    for (int v = 0; v < V; v++) query[v] = load<vf>(q + v * W);
    for (int i = 0; i < n; i += W) {
        const int some = std::min(W, n - i);
        for (int j = 0; j < some; j++) {
            const float* k = key(i + j);
            vf acc = query[0] * load<vf>(k);
            for (int v = 1; v < V; v++) acc += query[v] * load<vf>(k + v * W);
            products[j] = acc;
        }
        for (int j = some; j < W; j++) products[j] = vf{};
        store(scores + i, sums<W>(products) * scale);
    }
}

// out = Σ weight · value(i), values of V registers.
template <int V, class Value> static inline void mix(const float* weights, Value value, int n, float* out) {
    vf acc[V] = {};
    for (int i = 0; i < n; i++)
        for (int v = 0; v < V; v++) acc[v] += load<vf>(value(i) + v * W) * weights[i];
    for (int v = 0; v < V; v++) store(out + v * W, acc[v]);
}

// One query head reads n words, whose keys and values are key(i) and value(i).
template <class Key, class Value>
static void attend(const Model& m, const float* q, Key key, Value value, int n, float* out, float* scores) {
    if (m.h == 2 * W) compare<2>(q, key, n, m.scale, scores);
    else if (m.h == 4 * W) compare<4>(q, key, n, m.scale, scores);
    else if (m.h == W) compare<1>(q, key, n, m.scale, scores);
    else for (int i = 0; i < n; i++) scores[i] = dot(q, key(i), m.h) * m.scale;
    softmax(scores, n, n, 1.f);
    if (m.u == 2 * W) return mix<2>(scores, value, n, out);
    if (m.u == 4 * W) return mix<4>(scores, value, n, out);
    if (m.u == W) return mix<1>(scores, value, n, out);
    std::fill(out, out + m.u, 0.f);
    for (int i = 0; i < n; i++) add_scaled(out, value(i), scores[i], m.u);
}

static void turn(const Model& m, float* x, int heads, int at) {
    const float *s = m.sine.data() + size_t(at) * (m.h / 2), *c = m.cosine.data() + size_t(at) * (m.h / 2);
    for (int head = 0; head < heads; head++, x += m.h)
        for (int i = 0; i < m.h / 2; i++) {
            const float even = x[2 * i], odd = x[2 * i + 1];
            x[2 * i] = even * c[i] - odd * s[i];
            x[2 * i + 1] = even * s[i] + odd * c[i];
        }
}

// Room for n numbers, whatever they are.
template <class T> struct Room {
    std::unique_ptr<T[]> held;
    void size(size_t n) { held.reset(new T[n]); }
    T* data() const { return held.get(); }
    T& operator[](size_t i) const { return held[i]; }
};

// What a pass through layers needs besides the stream x: for `most` rows, of which `rows` are in use.
struct Desk {
    const int most, d, longest;
    int rows;
    const bool whole;
    Room<float> x, h, wide, mixed, hidden, scale, scores;
    Room<uint8_t> numbers;
    Meeting team;

    // All memory is taken here: within a parallel region nothing may fail. An attention reads at most `words`.
    Desk(const Model& m, int rows, int words, int threads)
        : most(rows), d(m.d), longest((words + W - 1) / W * W), rows(rows), whole(m.whole) {
        const int mix = m.heads * m.u, widest = std::max({m.d, mix, m.ff});
        const size_t n = rows;
        x.size(n * d), h.size(n * d), wide.size(n * std::max(m.wide(), m.heads * m.h));
        mixed.size(n * mix), hidden.size(n * m.ff), scores.size(size_t(longest) * threads);
        if (whole) scale.size(n), numbers.size(n * ((widest + 3) / 4 * 4));
    }
    bool holds(int rows, int words) const { return rows <= most && words <= longest; }
    float* own_scores() { return &scores[size_t(longest) * omp_get_thread_num()]; }

    // Rows of `from`, n numbers each, ready to be multiplied; all threads, each its rows.
    Rows ready(const float* from, int n) {
        Rows r;
        r.x = from, r.stride = n, r.numbers = numbers.data(), r.scale = scale.data(), r.width = (n + 3) / 4 * 4;
        return r;
    }
    void round(const float* from, int n, int row) {
        if (whole) to_whole(from + size_t(row) * n, n, numbers.data() + size_t(row) * ((n + 3) / 4 * 4), &scale[row]);
    }
    // Before a part: the stream normalised (pre-norm), or as it is.
    const float* enter(const Model& m, const Norm& norm) {
        const float* from = m.pre ? h.data() : x.data();
        share(team, rows, [&](int r) {
            if (m.pre) norm.apply(&x[size_t(r) * d], &h[size_t(r) * d], d);
            round(from, d, r);
        });
        return from;
    }
    // After a part was added: normalised (post-norm).
    void leave(const Model& m, const Norm& norm) {
        if (m.pre) return;
        share(team, rows, [&](int r) { norm.apply(&x[size_t(r) * d], &x[size_t(r) * d], d); });
    }
    void round_all(const float* from, int n) {
        if (!whole) return;
        share(team, rows, [&](int r) { round(from, n, r); });
    }
    void feed(const Model& m, const Layer& layer, const Norm& norm) {
        const float* from = enter(m, norm);
        multiply(team, layer.up, ready(from, d), rows, hidden.data(), m.ff, m.f, false);
        round_all(hidden.data(), m.ff);
        multiply(team, layer.down, ready(hidden.data(), m.ff), rows, x.data(), d, NONE, true);
        leave(m, norm);
    }
};

// ---------------------------------------------------------------------------------------------- a batch of sources

// What a greedy choice needs to know, and where its results go.
struct Choice {
    const int32_t* limits;
    const int64_t* never;
    int32_t n_never, most;
    int64_t eos;
    int64_t* written;
    int32_t* lengths;
    double* sums;
    uint8_t* ended;
};

struct State {
    const Model& m;
    const int threads;
    std::vector<int> start;                              // of each source's words among all of them
    std::vector<std::vector<float>> memory;              // per layer: word · groups · (h + u)
    std::vector<std::vector<float>> past;                // per layer: slot · groups · (h + u)
    std::vector<std::vector<int>> paths;                 // per row: the slots of its words
    std::vector<int> sources, unused;
    std::vector<char> used;
    std::vector<float> logits;
    std::unique_ptr<Desk> kept;
    int length = 0;

    State(const Model& m, int threads) : m(m), threads(threads) {}
    int pair() const { return m.groups * (m.h + m.u); }
    int longest_source() const {
        int most = 0;
        for (size_t s = 0; s + 1 < start.size(); s++) most = std::max(most, start[s + 1] - start[s]);
        return most;
    }

    void encode(const int64_t* ids, const int* lengths, int n) {
        start.assign(1, 0);
        for (int i = 0; i < n; i++) start.push_back(start.back() + lengths[i]);
        const int words = start.back(), d = m.d;
        std::vector<int> source(words), at(words);
        for (int s = 0; s < n; s++)
            for (int i = start[s]; i < start[s + 1]; i++) source[i] = s, at[i] = i - start[s];
        Desk desk(m, words, *std::max_element(lengths, lengths + n), threads);
        for (auto& layer : m.decoder) (void)layer, memory.emplace_back(size_t(words) * pair());
        past.resize(m.decoder.size());
        Meeting& team = desk.team;
#pragma omp parallel num_threads(threads)
        {
            float* scores = desk.own_scores();
            share(team, words, [&](int r) { embed(m.source, ids[r], at[r], &desk.x[size_t(r) * d]); });
            for (const Layer& layer : m.encoder) {
                const float* from = desk.enter(m, layer.norms[0]);
                const int wide = m.wide();
                multiply(team, layer.own, desk.ready(from, d), words, desk.wide.data(), wide, NONE, false);
                if (m.rotary) {
                    share(team, words, [&](int r) { turn(m, &desk.wide[size_t(r) * wide], m.heads + m.groups, at[r]); });
                }
                const int wide_keys = m.heads * m.h, wide_values = wide_keys + m.groups * m.h, each = m.heads / m.groups;
                share(team, words, [&](int r) {
                    const float* first = &desk.wide[size_t(start[source[r]]) * wide];
                    const int count = start[source[r] + 1] - start[source[r]], mixed = m.heads * m.u;
                    for (int head = 0; head < m.heads; head++) {
                        const float *keys = first + wide_keys + head / each * m.h, *values = first + wide_values + head / each * m.u;
                        attend(m, &desk.wide[size_t(r) * wide + head * m.h],
                               [=](int i) { return keys + size_t(i) * wide; },
                               [=](int i) { return values + size_t(i) * wide; }, count,
                               &desk.mixed[size_t(r) * mixed + head * m.u], scores);
                    }
                    desk.round(desk.mixed.data(), mixed, r);
                });
                const int mix = m.heads * m.u;
                multiply(team, layer.own_out, desk.ready(desk.mixed.data(), mix), words, desk.x.data(), d, NONE, true);
                desk.leave(m, layer.norms[0]);
                desk.feed(m, layer, layer.norms[2]);
            }
            if (m.pre) {
                share(team, words, [&](int r) { m.encoder_norm.apply(&desk.x[size_t(r) * d], &desk.x[size_t(r) * d], d); });
            }
            desk.round_all(desk.x.data(), d);
            for (size_t l = 0; l < m.decoder.size(); l++)
                multiply(team, m.decoder[l].read, desk.ready(desk.x.data(), d), words, memory[l].data(), pair(), NONE, false);
        }
    }

    void embed(const Table& table, int64_t id, int at, float* x) const {
        const float* row = table.words + size_t(id) * m.d;
        const float* order = table.places ? table.places + size_t(at) * m.d : nullptr;
        for (int i = 0; i < m.d; i++) x[i] = row[i] * m.embedding_scale + (order ? order[i] : 0.f);
    }

    // Row r continues row parents[r] of the step before; slots nobody's past holds any more are free again.
    void branch(const int64_t* parents, const int64_t* from, int rows) {
        std::vector<std::vector<int>> next(rows);
        if (length) {
            std::fill(used.begin(), used.end(), 0);
            for (int r = 0; r < rows; r++) {
                next[r].reserve(length + 16);
                next[r] = paths[parents[r]];
                for (int slot : next[r]) used[slot] = 1;
            }
            unused.clear();
            for (int slot = int(used.size()) - 1; slot >= 0; slot--) if (!used[slot]) unused.push_back(slot);
        }
        sources.assign(from, from + rows);
        while (int(unused.size()) < rows) {
            const int before = int(used.size()), more = std::max(rows, before / 2);
            used.resize(before + more, 0);
            for (int slot = before + more - 1; slot >= before; slot--) unused.insert(unused.begin(), slot);
            for (auto& layer : past) layer.resize(size_t(before + more) * pair());
        }
        for (int r = 0; r < rows; r++) {
            next[r].push_back(unused.back());
            unused.pop_back();
        }
        paths.swap(next);
    }

    void step(const int64_t* tokens, int rows) {
        const int d = m.d, mix = m.heads * m.u, wide = m.wide(), at = length, keys = m.groups * m.h;
        const int each = m.heads / m.groups;
        const int words = std::max(at + 1, longest_source());
        if (!kept || !kept->holds(rows, words)) kept = std::make_unique<Desk>(m, rows, words + words / 2, threads);
        Desk& desk = *kept;
        desk.rows = rows;
        logits.resize(size_t(rows) * m.vocab);
        Meeting& team = desk.team;
#pragma omp parallel num_threads(threads)
        {
            float* scores = desk.own_scores();
            share(team, rows, [&](int r) { embed(m.target, tokens[r], at, &desk.x[size_t(r) * d]); });
            for (size_t l = 0; l < m.decoder.size(); l++) {
                const Layer& layer = m.decoder[l];
                const float* from = desk.enter(m, layer.norms[0]);
                multiply(team, layer.own, desk.ready(from, d), rows, desk.wide.data(), wide, NONE, false);
                share(team, rows * m.groups, [&](int task) {
                    const int r = task / m.groups, group = task % m.groups;
                    float *own = &desk.wide[size_t(r) * wide], *query = own + group * each * m.h;
                    float *key = own + m.heads * m.h + group * m.h, *value = own + m.heads * m.h + keys + group * m.u;
                    if (m.rotary) turn(m, query, each, at), turn(m, key, 1, at);
                    const int* path = paths[r].data();
                    float *past_keys = past[l].data() + group * m.h, *past_values = past[l].data() + keys + group * m.u;
                    std::copy(key, key + m.h, past_keys + size_t(path[at]) * pair());
                    std::copy(value, value + m.u, past_values + size_t(path[at]) * pair());
                    for (int i = 0; i < each; i++)
                        attend(m, query + i * m.h, [=](int i) { return past_keys + size_t(path[i]) * pair(); },
                               [=](int i) { return past_values + size_t(path[i]) * pair(); }, at + 1,
                               &desk.mixed[size_t(r) * mix + (group * each + i) * m.u], scores);
                });
                desk.round_all(desk.mixed.data(), mix);
                multiply(team, layer.own_out, desk.ready(desk.mixed.data(), mix), rows, desk.x.data(), d, NONE, true);
                desk.leave(m, layer.norms[0]);
                from = desk.enter(m, layer.norms[1]);
                multiply(team, layer.query, desk.ready(from, d), rows, desk.wide.data(), m.heads * m.h, NONE, false);
                share(team, rows * m.groups, [&](int task) {
                    const int r = task / m.groups, group = task % m.groups, s = sources[r];
                    const float* first = memory[l].data() + size_t(start[s]) * pair() + group * m.h;
                    const float* last = first - group * m.h + keys + group * m.u;
                    for (int head = group * each; head < (group + 1) * each; head++)
                        attend(m, &desk.wide[(size_t(r) * m.heads + head) * m.h],
                               [=](int i) { return first + size_t(i) * pair(); },
                               [=](int i) { return last + size_t(i) * pair(); }, start[s + 1] - start[s],
                               &desk.mixed[size_t(r) * mix + head * m.u], scores);
                });
                desk.round_all(desk.mixed.data(), mix);
                multiply(team, layer.across_out, desk.ready(desk.mixed.data(), mix), rows, desk.x.data(), d, NONE, true);
                desk.leave(m, layer.norms[1]);
                desk.feed(m, layer, layer.norms[2]);
            }
            share(team, rows, [&](int r) {
                float* x = &desk.x[size_t(r) * d];
                if (m.pre) m.decoder_norm.apply(x, x, d);
                desk.round(desk.x.data(), d, r);
            });
            multiply(team, m.output, desk.ready(desk.x.data(), d), rows, logits.data(), m.vocab, NONE, false);
        }
        length++;
    }

    // Of each row: log Σ exp, and the k largest that may be written, largest first.
    void best(int rows, int k, const int64_t* never, int n_never, float* values, int64_t* ids, float* normalisers) const {
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int r = 0; r < rows; r++) {
            const float* x = &logits[size_t(r) * m.vocab];
            const float most = choose(x, k, never, n_never, values + size_t(r) * k, ids + size_t(r) * k);
            vf total = {};
            float rest = 0;
            int i = 0;
            for (; i + W <= m.vocab; i += W) total += vexp(load<vf>(x + i) - most);
            for (; i < m.vocab; i++) rest += std::exp(x[i] - most);
            normalisers[r] = most + std::log(sum(total) + rest);
        }
    }

    // The likeliest word each time, `steps` times at most. `live`: the sources still being written, `last`: what each of
    // them wrote last; of every source: what is written (`limit` at most), how much, its log-probability, has it ended.
    int greedy(int rows, int64_t* live, int64_t* last, const Choice& c, int steps) {
        std::vector<int64_t> parents(rows), id(rows);
        std::vector<float> value(rows), normaliser(rows);
        for (int r = 0; r < rows; r++) parents[r] = r;
        for (; rows && steps; steps--) {
            branch(parents.data(), live, rows);
            step(last, rows);
            best(rows, 1, c.never, c.n_never, value.data(), id.data(), normaliser.data());
            int staying = 0;
            for (int r = 0; r < rows; r++) {
                const int64_t source = live[r];
                c.sums[source] += double(value[r] - normaliser[r]);
                if (id[r] == c.eos) {
                    c.ended[source] = 1;
                    continue;
                }
                c.written[source * c.most + c.lengths[source]++] = id[r];
                if (c.lengths[source] >= c.limits[source]) continue;
                parents[staying] = r, live[staying] = source, last[staying++] = id[r];
            }
            rows = staying;
        }
        // Between two calls rows stay where they are: the next one begins from these.
        rest(parents.data(), rows);
        return rows;
    }

    // Row r is from now on what row rows[r] was.
    void rest(const int64_t* rows, int n) {
        std::vector<std::vector<int>> next(n);
        for (int r = 0; r < n; r++) next[r] = paths[rows[r]];
        paths.swap(next);
    }

    // The k largest that may be written, largest first; gives back the largest of all. Most blocks hold none of them.
    float choose(const float* x, int k, const int64_t* never, int n_never, float* values, int64_t* ids) const {
        int held = 0, i = 0;
        float least = -INFINITY, most = x[0];
        auto offer = [&](int id) {
            const float value = x[id];
            most = std::max(most, value);
            if (held == k && !(value > least)) return;
            for (int j = 0; j < n_never; j++) if (never[j] == id) return;
            int at = held < k ? held++ : k - 1;
            for (; at && values[at - 1] < value; at--) values[at] = values[at - 1], ids[at] = ids[at - 1];
            values[at] = value, ids[at] = id;
            if (held == k) least = values[k - 1];
        };
        for (constexpr int BLOCK = 4 * W; i + BLOCK <= m.vocab; i += BLOCK) {
            vf high = load<vf>(x + i);
            for (int j = W; j < BLOCK; j += W) high = larger(high, load<vf>(x + i + j));
            if (held < k || top(high) > least)
                for (int j = 0; j < BLOCK; j++) offer(i + j);
        }
        for (; i < m.vocab; i++) offer(i);
        for (; held < k; held++) values[held] = -INFINITY, ids[held] = 0;
        return most;
    }
};

// ---------------------------------------------------------------------------------------------- what Python calls

// Null where there was no memory for it.
template <class T, class Work> static T* made(Work work) {
    T* found = nullptr;
    done([&] { found = work().release(); });
    return found;
}

extern "C" {

int clearhead_fast_whole() {
#ifdef __AVX512VNNI__
    return 1;
#else
    return 0;
#endif
}

struct Sizes {
    int32_t d, heads, groups, h, u, ff, vocab, max_len, encoder_layers, decoder_layers, pre, whole, rotary, f;
    float scale, embedding_scale;
};

Model* clearhead_model(const Sizes* s, const float* source_words, const float* source_places,
                       const float* target_words, const float* target_places) {
    return made<Model>([&] {
        auto m = std::make_unique<Model>();
        m->d = s->d, m->heads = s->heads, m->groups = s->groups, m->h = s->h, m->u = s->u, m->ff = s->ff;
        m->vocab = s->vocab, m->scale = s->scale, m->embedding_scale = s->embedding_scale;
        m->pre = s->pre, m->whole = s->whole, m->rotary = s->rotary, m->f = Activation(s->f);
        m->source = {source_words, source_places}, m->target = {target_words, target_places};
        m->encoder.resize(s->encoder_layers), m->decoder.resize(s->decoder_layers);
        if (m->rotary) m->waves(s->max_len);
        return m;
    });
}

// which: 0 own, 1 own_out, 2 query, 3 read, 4 across_out, 5 up, 6 down of a layer; layer -1: the output.
// Weights as float32, or as whole numbers with a scale for each output.
bool clearhead_map(Model* m, int decoder, int layer, int which, const float* w, const int8_t* numbers,
                   const float* scale, const float* b, int in, int out) {
    return done([&] {
        Map* map = &m->output;
        if (layer >= 0) {
            Layer& l = (decoder ? m->decoder : m->encoder)[layer];
            Map* maps[] = {&l.own, &l.own_out, &l.query, &l.read, &l.across_out, &l.up, &l.down};
            map = maps[which];
        }
        map->size(b, in, out);
        if (numbers) map->pack(numbers, scale);
        else map->pack(w);
    });
}

bool clearhead_norm(Model* m, int decoder, int layer, int which, const float* w, const float* b, float eps, int rms) {
    return done([&] {
        Norm& n = layer < 0 ? (decoder ? m->decoder_norm : m->encoder_norm)
                            : (decoder ? m->decoder : m->encoder)[layer].norms[which];
        n.weight.assign(w, w + m->d);
        n.bias.assign(m->d, 0.f);
        if (b) n.bias.assign(b, b + m->d);
        n.eps = eps, n.rms = rms;
    });
}

void clearhead_forget_model(Model* m) { delete m; }

State* clearhead_start(Model* m, const int64_t* ids, const int32_t* lengths, int n, int threads) {
    return made<State>([&] {
        auto s = std::make_unique<State>(*m, threads);
        s->encode(ids, lengths, n);
        return s;
    });
}

bool clearhead_step(State* s, const int64_t* tokens, const int64_t* sources, const int64_t* parents, int rows) {
    return done([&] {
        s->branch(parents, sources, rows);
        s->step(tokens, rows);
    });
}

// How many sources are still being written; -1 when there was no memory for it.
int clearhead_greedy(State* s, int rows, int64_t* live, int64_t* last, const Choice* choice, int steps) {
    int left = -1;
    done([&] { left = s->greedy(rows, live, last, *choice, steps); });
    return left;
}

void clearhead_best(const State* s, int rows, int k, const int64_t* never, int n_never, float* values, int64_t* ids,
                    float* normalisers) {
    s->best(rows, k, never, n_never, values, ids, normalisers);
}

void clearhead_logits(const State* s, float* out) { std::copy(s->logits.begin(), s->logits.end(), out); }

void clearhead_forget_state(State* s) { delete s; }
}
