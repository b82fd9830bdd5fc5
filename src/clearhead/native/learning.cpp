// What stands between the matrix products of a training step, each in one pass over the memory.
//
// Tokens are rows: those of all sequences one after the other, without padding between them, and room at the end
// filled with zeros so that the products have few shapes. bfloat16 where a product reads or wrote it, float32 elsewhere.
// Each row, or each head of a sequence, is computed by one thread in one order, so results do not depend on neighbours;
// sums over rows are taken by each thread over its run of them, then over the threads in order.
//
// Knows pointers and sizes. Refuses to know layers and gradients' chains. Bound by learning.py, which has the equations;
// tests/parity/test_learning.py ties it to the bricks.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <omp.h>
#include <utility>
#include <vector>
#include "registers.h"

namespace {

typedef uint16_t half;  // bfloat16: the upper half of a float32
typedef uint32_t vu __attribute__((vector_size(W * 4), aligned(4)));
typedef half vh __attribute__((vector_size(W * 2), aligned(2)));
typedef uint8_t vb __attribute__((vector_size(W), aligned(1)));

static inline vf widened(const half* p) {
    const vu bits = __builtin_convertvector(load<vh>(p), vu) << 16;
    return load<vf>(&bits);
}
static inline float widened1(half x) {
    const uint32_t bits = uint32_t(x) << 16;
    return load<float>(&bits);
}
// To the nearest, ties to even; what is not a number stays so.
static inline vh rounded(vf x) {
    const vu bits = load<vu>(&x), up = bits + 0x7fffu + ((bits >> 16) & 1u);
    const vu kept = x == x ? up : vu{} + 0x7fc00000u;
    return __builtin_convertvector(kept >> 16, vh);
}
static inline half rounded1(float x) {
    const uint32_t bits = load<uint32_t>(&x);
    return x == x ? half((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16) : half(0x7fc0);
}

// The rows of one thread of a parallel region.
struct Run {
    int first, last;
    explicit Run(int n) {
        const int64_t me = omp_get_thread_num(), threads = omp_get_num_threads();
        first = int(n * me / threads), last = int(n * (me + 1) / threads);
    }
};

// ---------------------------------------------------------------------------------------------- dropout

static inline uint64_t mixed(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
}

// Counted draws, as nn/dropout.py makes them: a byte for each number of a sample, dropped below `dropped`.
struct Dropout {
    const int64_t* places;   // of each sample in the global batch
    const int32_t *sample, *at;  // of each row: which sample, which position in it
    int64_t key;
    int32_t dropped;
    float scale;

    // The bytes of a row `width` wide, a multiple of eight.
    void draw(int row, int width, uint8_t* out) const {
        const uint64_t own = mixed(uint64_t(places[sample[row]]) + uint64_t(key));
        const uint64_t first = uint64_t(at[row]) * uint64_t(width / 8);
        for (int i = 0; i < width / 8; i++) {
            const uint64_t word = mixed(own + (first + uint64_t(i)) * 0x9E3779B97F4A7C15u);
            std::memcpy(out + 8 * i, &word, 8);
        }
    }
    vf apply(vf x, const uint8_t* bytes) const {
        const vi drawn = __builtin_convertvector(load<vb>(bytes), vi);
        return x * (drawn >= vi{} + dropped ? vf{} + scale : vf{});  // what is not finite is not lost
    }
};

// ---------------------------------------------------------------------------------------------- the stream

// s = x + dropout(part + bias), y = norm(s), h = y rounded for the next product. Where nothing is to be added or
// normalised its pointer is null, and so is that of what nobody wants.
struct Join {
    int32_t rows, room, d, rms;
    const float* x;
    const half* part;
    const float* bias;
    Dropout dropout;
    const float *gamma, *beta;
    float eps;
    float *s, *y;
    half* h;
};

// The way back: gradients of s, y and h (null: none) to those of x, part, bias, γ and β.
struct JoinBack {
    const float *s, *to_s, *to_y;
    const half* to_h;
    float* to_x;
    half* to_part;
    float *to_bias, *to_gamma, *to_beta;
};

struct Moments {
    float mean, inverse;
    Moments(const float* s, int d, float eps, bool rms) {
        vf total = {}, square = {};
        if (!rms) for (int i = 0; i < d; i += W) total += load<vf>(s + i);
        mean = rms ? 0.f : sum(total) / float(d);
        for (int i = 0; i < d; i += W) {
            const vf off = load<vf>(s + i) - mean;
            square += off * off;
        }
        inverse = 1.f / std::sqrt(sum(square) / float(d) + eps);
    }
};

static void join_row(const Join& j, int row, float* s, uint8_t* bytes) {
    const size_t at = size_t(row) * j.d;
    if (j.part && j.dropout.dropped) j.dropout.draw(row, j.d, bytes);
    for (int i = 0; i < j.d; i += W) {
        vf v = load<vf>(j.x + at + i);
        if (j.part) {
            vf part = widened(j.part + at + i);
            if (j.bias) part += load<vf>(j.bias + i);
            v += j.dropout.dropped ? j.dropout.apply(part, bytes + i) : part;
        }
        store(s + i, v);
    }
    if (j.s) std::memcpy(j.s + at, s, sizeof(float) * j.d);
    if (j.gamma) {
        const Moments m(s, j.d, j.eps, j.rms);
        for (int i = 0; i < j.d; i += W) {
            vf v = (load<vf>(s + i) - m.mean) * m.inverse * load<vf>(j.gamma + i);
            if (j.beta) v += load<vf>(j.beta + i);
            store(s + i, v);
        }
    }
    if (j.y) std::memcpy(j.y + at, s, sizeof(float) * j.d);
    if (j.h) for (int i = 0; i < j.d; i += W) store(j.h + at + i, rounded(load<vf>(s + i)));
}

// `sums`: this thread's gradients of γ, β and bias.
static void join_row_back(const Join& j, const JoinBack& b, int row, float* back, uint8_t* bytes, float* sums) {
    const size_t at = size_t(row) * j.d;
    for (int i = 0; i < j.d; i += W) {
        vf g = {};
        if (b.to_y) g += load<vf>(b.to_y + at + i);
        if (b.to_h) g += widened(b.to_h + at + i);
        store(back + i, g);
    }
    if (j.gamma) {
        const Moments m(b.s + at, j.d, j.eps, j.rms);
        vf first = {}, second = {};
        for (int i = 0; i < j.d; i += W) {
            const vf g = load<vf>(back + i), off = (load<vf>(b.s + at + i) - m.mean) * m.inverse;
            store(sums + i, load<vf>(sums + i) + g * off);
            if (j.beta) store(sums + j.d + i, load<vf>(sums + j.d + i) + g);
            const vf u = g * load<vf>(j.gamma + i);
            store(back + i, u);
            first += u;
            second += u * off;
        }
        const float mean = j.rms ? 0.f : sum(first) / float(j.d), slope = sum(second) / float(j.d);
        for (int i = 0; i < j.d; i += W) {
            const vf off = (load<vf>(b.s + at + i) - m.mean) * m.inverse;
            store(back + i, (load<vf>(back + i) - mean - off * slope) * m.inverse);
        }
    }
    if (b.to_part && j.dropout.dropped) j.dropout.draw(row, j.d, bytes);
    for (int i = 0; i < j.d; i += W) {
        vf g = load<vf>(back + i);
        if (b.to_s) g += load<vf>(b.to_s + at + i);
        if (b.to_x) store(b.to_x + at + i, g);
        if (!b.to_part) continue;
        if (j.dropout.dropped) g = j.dropout.apply(g, bytes + i);
        store(b.to_part + at + i, rounded(g));
        if (j.bias) store(sums + 2 * j.d + i, load<vf>(sums + 2 * j.d + i) + g);
    }
}

// out = Σ over threads, in order.
static void gathered(const std::vector<float>& sums, size_t stride, int threads, size_t from, int n, float* out) {
    for (int i = 0; i < n; i++) {
        float total = 0.f;
        for (int t = 0; t < threads; t++) total += sums[size_t(t) * stride + from + i];
        out[i] = total;
    }
}

template <class T> static void blank(T* x, int rows, int room, int width) {
    if (x) std::memset(x + size_t(rows) * width, 0, sizeof(T) * size_t(room - rows) * width);
}

// ---------------------------------------------------------------------------------------------- attention

// C[m, n] (+)= Σ_k A[m·am + k·ak] B[k, n], n whole registers; R rows and V registers at a time.
template <int R, int V>
static void tile(const float* a, int am, int ak, const float* b, int ldb, int k, float* c, int ldc, bool add) {
    vf acc[R][V] = {};
    for (int i = 0; i < k; i++, b += ldb, a += ak) {
        vf w[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) w[v] = load<vf>(b + v * W);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++)
#pragma GCC unroll 2
            for (int v = 0; v < V; v++) acc[r][v] += w[v] * a[size_t(r) * am];
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) {
            float* to = c + size_t(r) * ldc + v * W;
            store(to, add ? load<vf>(to) + acc[r][v] : acc[r][v]);
        }
}
template <int R, int V> struct Tiles {
    static void run(int rows, const float* a, int am, int ak, const float* b, int ldb, int k, float* c, int ldc, bool add) {
        if (rows == R) tile<R, V>(a, am, ak, b, ldb, k, c, ldc, add);
        else Tiles<R - 1, V>::run(rows, a, am, ak, b, ldb, k, c, ldc, add);
    }
};
template <int V> struct Tiles<0, V> {
    static void run(int, const float*, int, int, const float*, int, int, float*, int, bool) {}
};
static void product(int m, int n, int k, const float* a, int am, int ak, const float* b, int ldb, float* c, int ldc,
                    bool add) {
    for (int j = 0; j < n; j += 2 * W)
        for (int i = 0, some; i < m; i += some) {
            const int left = m - i;
            some = left > MR && left < 2 * MR ? (left + 1) / 2 : std::min(MR, left);
            const float* from = a + size_t(i) * am;
            float* to = c + size_t(i) * ldc + j;
            if (n - j >= 2 * W) Tiles<MR, 2>::run(some, from, am, ak, b + j, ldb, k, to, ldc, add);
            else Tiles<MR, 1>::run(some, from, am, ak, b + j, ldb, k, to, ldc, add);
        }
}

// W registers turned over their diagonal: log₂ W times, the first half's numbers between those of the second.
template <int... I> static inline vf between(vf a, vf b, bool upper, std::integer_sequence<int, I...>) {
#ifdef __clang__
    return upper ? __builtin_shufflevector(a, b, (W / 2 + I / 2 + I % 2 * W)...)
                 : __builtin_shufflevector(a, b, (I / 2 + I % 2 * W)...);
#else
    return upper ? __builtin_shuffle(a, b, vi{(W / 2 + I / 2 + I % 2 * W)...})
                 : __builtin_shuffle(a, b, vi{(I / 2 + I % 2 * W)...});
#endif
}
static inline void transpose(vf* v) {
    constexpr auto all = std::make_integer_sequence<int, W>{};
    for (int width = 1; width < W; width *= 2) {
        vf next[W];
#pragma GCC unroll 16
        for (int i = 0; i < W / 2; i++) {
            next[2 * i] = between(v[i], v[i + W / 2], false, all);
            next[2 * i + 1] = between(v[i], v[i + W / 2], true, all);
        }
        for (int i = 0; i < W; i++) v[i] = next[i];
    }
}
// to[c, r] = from[r, c]; both have room for whole blocks of W × W.
static void turned_over(const float* from, int ldf, int rows, int columns, float* to, int ldt) {
    for (int r = 0; r < rows; r += W)
        for (int c = 0; c < columns; c += W) {
            vf v[W];
            for (int i = 0; i < W; i++) v[i] = load<vf>(from + size_t(r + i) * ldf + c);
            transpose(v);
            for (int i = 0; i < W; i++) store(to + size_t(c + i) * ldt + r, v[i]);
        }
}

// Where the queries, keys or values of all rows lie, and their gradients: so many numbers a row.
struct Side {
    const half* x;
    half* to;
    int32_t stride, to_stride;
};

struct Attention {
    int32_t sequences, heads, groups, h, u, causal, longest_query, longest_key;
    const int32_t *query_start, *key_start;   // of each sequence, and the end of the last
    Side query, key, value;
    const float *query_bias, *key_bias, *value_bias;
    const float *sine, *cosine;               // position · h/2; null where nothing turns
    float scale;
    half* mixed;                              // row · heads · u
    const half* to_mixed;
    float *to_query_bias, *to_key_bias, *to_value_bias;
    int biases() const { return heads * h + groups * (h + u); }
};

// One sequence's numbers of one head, in float32: rows and room for whole blocks, zeros there.
static void take(const half* x, int stride, const float* bias, int rows, int width, float* out, int ld) {
    for (int r = 0; r < rows; r++) {
        const half* from = x + size_t(r) * stride;
        float* to = out + size_t(r) * ld;
        int c = 0;
        for (; c + W <= width; c += W) store(to + c, bias ? widened(from + c) + load<vf>(bias + c) : widened(from + c));
        for (; c < width; c++) to[c] = widened1(from[c]) + (bias ? bias[c] : 0.f);
        for (; c < ld; c++) to[c] = 0.f;
    }
    std::memset(out + size_t(rows) * ld, 0, sizeof(float) * size_t(whole(rows) - rows) * ld);
}
// Rounded, to where it belongs; each column's sum is added to `sums`, if wanted.
static void give(const float* x, int ld, int rows, int width, half* out, int stride, float* sums = nullptr) {
    for (int c = 0; sums && c < width; c++) {
        float total = 0.f;
        for (int r = 0; r < rows; r++) total += x[size_t(r) * ld + c];
        sums[c] += total;
    }
    for (int r = 0; r < rows; r++) {
        const float* from = x + size_t(r) * ld;
        half* to = out + size_t(r) * stride;
        int c = 0;
        for (; c + W <= width; c += W) store(to + c, rounded(load<vf>(from + c)));
        for (; c < width; c++) to[c] = rounded1(from[c]);
    }
}
// Channels (2i, 2i+1) turned by their position's angle, or back.
static void turn(const Attention& t, float* x, int ld, int rows, float direction) {
    if (!t.sine) return;
    for (int r = 0; r < rows; r++) {
        const float *s = t.sine + size_t(r) * (t.h / 2), *c = t.cosine + size_t(r) * (t.h / 2);
        float* row = x + size_t(r) * ld;
        for (int i = 0; i < t.h / 2; i++) {
            const float even = row[2 * i], odd = row[2 * i + 1];
            row[2 * i] = even * c[i] - odd * (direction * s[i]);
            row[2 * i + 1] = even * (direction * s[i]) + odd * c[i];
        }
    }
}

// What one head of one sequence needs, and the same pieces for every thread.
struct Desk {
    int h, u, queries, keys;
    float *query, *key, *value, *turned, *pattern, *mixed, *to_query, *to_key, *to_value, *to_pattern;

    static size_t size(const Attention& t) {
        const size_t h = whole(t.h), u = whole(t.u), q = whole(t.longest_query), k = whole(t.longest_key);
        return 2 * q * h + 3 * q * u + 2 * k * h + 2 * k * u + std::max(h, u) * k + 2 * q * k + W;
    }
    Desk(const Attention& t, float* at) : h(whole(t.h)), u(whole(t.u)) {
        queries = whole(t.longest_query), keys = whole(t.longest_key);
        auto piece = [&](size_t n) { float* p = at; at += n; return p; };
        query = piece(size_t(queries) * h), to_query = piece(size_t(queries) * h);
        mixed = piece(size_t(queries) * u);
        key = piece(size_t(keys) * h), to_key = piece(size_t(keys) * h);
        value = piece(size_t(keys) * u), to_value = piece(size_t(keys) * u);
        turned = piece(size_t(std::max(h, u)) * keys);
        pattern = piece(size_t(queries) * keys), to_pattern = piece(size_t(queries) * keys);
    }
};

// The rows of one sequence on both sides.
struct Span {
    int query, queries, key, keys;
    Span(const Attention& t, int s)
        : query(t.query_start[s]), queries(t.query_start[s + 1] - query), key(t.key_start[s]),
          keys(t.key_start[s + 1] - key) {}
};

static void take_read(const Attention& t, const Desk& d, const Span& s, int group) {
    const float *key_bias = t.key_bias ? t.key_bias + group * t.h : nullptr;
    const float *value_bias = t.value_bias ? t.value_bias + group * t.u : nullptr;
    take(t.key.x + size_t(s.key) * t.key.stride + group * t.h, t.key.stride, key_bias, s.keys, t.h, d.key, d.h);
    turn(t, d.key, d.h, s.keys, 1.f);
    take(t.value.x + size_t(s.key) * t.value.stride + group * t.u, t.value.stride, value_bias, s.keys, t.u, d.value, d.u);
}

// Queries of one head, and the pattern: softmax(scale · q kᵀ), `turned` being kᵀ.
static void compare(const Attention& t, const Desk& d, const Span& s, int head) {
    const int room = whole(s.keys);
    const float* bias = t.query_bias ? t.query_bias + head * t.h : nullptr;
    take(t.query.x + size_t(s.query) * t.query.stride + head * t.h, t.query.stride, bias, s.queries, t.h, d.query, d.h);
    turn(t, d.query, d.h, s.queries, 1.f);
    product(s.queries, room, t.h, d.query, d.h, 1, d.turned, room, d.pattern, room, false);
    for (int i = 0; i < s.queries; i++)
        softmax(d.pattern + size_t(i) * room, t.causal ? std::min(i + 1, s.keys) : s.keys, room, t.scale);
}

static void attend(const Attention& t, const Desk& d, int sequence, int group, float*) {
    const Span s(t, sequence);
    const int each = t.heads / t.groups, wide = t.heads * t.u, room = whole(s.keys);
    if (s.keys) {
        take_read(t, d, s, group);
        turned_over(d.key, d.h, s.keys, d.h, d.turned, room);
    }
    for (int head = group * each; head < (group + 1) * each; head++) {
        if (s.keys) {
            compare(t, d, s, head);
            product(s.queries, d.u, s.keys, d.pattern, room, 1, d.value, d.u, d.mixed, d.u, false);
        } else std::memset(d.mixed, 0, sizeof(float) * size_t(s.queries) * d.u);
        give(d.mixed, d.u, s.queries, t.u, t.mixed + size_t(s.query) * wide + head * t.u, wide);
    }
}

// ∂v = pᵀ ∂m, ∂p = ∂m vᵀ, ∂s = p (∂p − Σ p ∂p), ∂q = scale · ∂s k, ∂k = scale · ∂sᵀ q
// `sums`: this thread's gradients of the biases.
static void attend_back(const Attention& t, const Desk& d, int sequence, int group, float* sums) {
    const Span s(t, sequence);
    const int each = t.heads / t.groups, wide = t.heads * t.u, room = whole(s.keys);
    if (s.keys) take_read(t, d, s, group);
    for (int head = group * each; head < (group + 1) * each; head++) {
        const bool more = head != group * each;
        std::memset(d.to_query, 0, sizeof(float) * size_t(s.queries) * d.h);
        if (s.keys && s.queries) {
            turned_over(d.key, d.h, s.keys, d.h, d.turned, room);
            compare(t, d, s, head);
            take(t.to_mixed + size_t(s.query) * wide + head * t.u, wide, nullptr, s.queries, t.u, d.mixed, d.u);
            product(s.keys, d.u, s.queries, d.pattern, 1, room, d.mixed, d.u, d.to_value, d.u, more);
            turned_over(d.value, d.u, s.keys, d.u, d.turned, room);
            product(s.queries, room, t.u, d.mixed, d.u, 1, d.turned, room, d.to_pattern, room, false);
            for (int i = 0; i < s.queries; i++) {
                const float* p = d.pattern + size_t(i) * room;
                float* g = d.to_pattern + size_t(i) * room;
                vf total = {};
                for (int j = 0; j < room; j += W) total += load<vf>(p + j) * load<vf>(g + j);
                const float mean = sum(total);
                for (int j = 0; j < room; j += W) store(g + j, load<vf>(p + j) * (load<vf>(g + j) - mean) * t.scale);
            }
            product(s.queries, d.h, s.keys, d.to_pattern, room, 1, d.key, d.h, d.to_query, d.h, false);
            product(s.keys, d.h, s.queries, d.to_pattern, 1, room, d.query, d.h, d.to_key, d.h, more);
            turn(t, d.to_query, d.h, s.queries, -1.f);
        } else if (!more) {
            std::memset(d.to_key, 0, sizeof(float) * size_t(s.keys) * d.h);
            std::memset(d.to_value, 0, sizeof(float) * size_t(s.keys) * d.u);
        }
        give(d.to_query, d.h, s.queries, t.h, t.query.to + size_t(s.query) * t.query.to_stride + head * t.h,
             t.query.to_stride, t.to_query_bias ? sums + head * t.h : nullptr);
    }
    turn(t, d.to_key, d.h, s.keys, -1.f);
    float* key_sums = sums + t.heads * t.h;
    give(d.to_key, d.h, s.keys, t.h, t.key.to + size_t(s.key) * t.key.to_stride + group * t.h, t.key.to_stride,
         t.to_key_bias ? key_sums + group * t.h : nullptr);
    give(d.to_value, d.u, s.keys, t.u, t.value.to + size_t(s.key) * t.value.to_stride + group * t.u,
         t.value.to_stride, t.to_value_bias ? key_sums + t.groups * t.h + group * t.u : nullptr);
}

template <class Work> static bool each_head(const Attention& t, int threads, Work work) {
    return done([&] {
        const size_t size = Desk::size(t), biases = t.biases();
        std::vector<float> memory(size * threads), sums(biases * threads);
#pragma omp parallel num_threads(threads)
        {
            const size_t me = omp_get_thread_num();
            const Desk desk(t, memory.data() + size * me);
            const Run run(t.sequences * t.groups);
            for (int i = run.first; i < run.last; i++) work(t, desk, i / t.groups, i % t.groups, &sums[biases * me]);
        }
        const int keys = t.heads * t.h, values = keys + t.groups * t.h;
        if (t.to_query_bias) gathered(sums, biases, threads, 0, keys, t.to_query_bias);
        if (t.to_key_bias) gathered(sums, biases, threads, keys, t.groups * t.h, t.to_key_bias);
        if (t.to_value_bias) gathered(sums, biases, threads, values, t.groups * t.u, t.to_value_bias);
    });
}

// ---------------------------------------------------------------------------------------------- the loss

// e = exp(x − largest), in float32; gives back log Σ exp x.
static float exponentials(const half* x, int n, float* e) {
    vf most = vf{} - INFINITY, total = {};
    int i = 0;
    for (; i + W <= n; i += W) most = larger(most, widened(x + i));
    float high = top(most), rest = 0.f;
    for (int j = i; j < n; j++) high = std::max(high, widened1(x[j]));
    for (i = 0; i + W <= n; i += W) {
        const vf v = vexp(widened(x + i) - high);
        store(e + i, v);
        total += v;
    }
    for (; i < n; i++) rest += e[i] = std::exp(widened1(x[i]) - high);
    const float all = sum(total) + rest, inverse = 1.f / all;
    for (i = 0; i + W <= n; i += W) store(e + i, load<vf>(e + i) * inverse);
    for (; i < n; i++) e[i] *= inverse;
    return high + std::log(all);
}

static inline vf at(const float* x, int i, vf) { return load<vf>(x + i); }
static inline float at(const float* x, int i, float) { return x[i]; }
static inline vf at(const half* x, int i, vf) { return widened(x + i); }
static inline float at(const half* x, int i, float) { return widened1(x[i]); }

// Σ f over a row.
template <class Numbers> static float row_sum(int n, Numbers numbers) {
    vf total = {};
    int i = 0;
    for (; i + W <= n; i += W) total += numbers(i, vf{});
    float s = sum(total);
    for (; i < n; i++) s += numbers(i, 0.f);
    return s;
}

// A row of logits becomes p − kept · e_y; gives back its normaliser. `known` is the target's logit before rounding: a
// normaliser of rounded logits alone would make the loss of a sure model negative.
static float surprise(half* x, int n, int64_t target, float known, float kept, float* p) {
    const float rounded_ones = exponentials(x, n, p);
    const float normaliser = rounded_ones + p[target] * (known - widened1(x[target]));
    p[target] -= kept;
    int i = 0;
    for (; i + W <= n; i += W) store(x + i, rounded(load<vf>(p + i)));
    for (; i < n; i++) x[i] = rounded1(p[i]);
    return normaliser;
}

// Two rows of logits, a and b, of the same target: ½ (p − kept · e_y) and weight · ∂(KL(p‖q) + KL(q‖p)) of each, with
// ∂KL(p‖q)/∂a = p (r − KL(p‖q)), ∂KL(q‖p)/∂a = p − q, r = log p − log q. Gives back the two divergences' sum.
static float disagree(half* a, half* b, int n, int64_t target, float kept, float weight, float* p, float* q,
                      float known_a, float known_b, float* first, float* second) {
    *first = exponentials(a, n, p), *second = exponentials(b, n, q);
    const float shift = *second - *first;
    auto r = [=](int i, auto kind) { return at(a, i, kind) - at(b, i, kind) + shift; };
    const float there = row_sum(n, [=](int i, auto kind) { return at(p, i, kind) * r(i, kind); });
    const float back = -row_sum(n, [=](int i, auto kind) { return at(q, i, kind) * r(i, kind); });
    const half a_target = a[target], b_target = b[target];
    const float r_target = widened1(a_target) - widened1(b_target) + shift;
    for (int i = 0; i < n; i += W) {  // both at once: each needs the other's logits
        const int some = std::min(W, n - i);
        vf pa = {}, qa = {}, ra = {};
        if (some == W) pa = load<vf>(p + i), qa = load<vf>(q + i), ra = r(i, vf{});
        else for (int j = 0; j < some; j++) pa[j] = p[i + j], qa[j] = q[i + j], ra[j] = r(i + j, 0.f);
        const vf off = pa - qa;
        const vf to_a = pa * 0.5f + (pa * (ra - there) + off) * weight;
        const vf to_b = qa * 0.5f - (qa * (ra + back) + off) * weight;
        const vh half_a = rounded(to_a), half_b = rounded(to_b);
        if (some == W) store(a + i, half_a), store(b + i, half_b);
        else for (int j = 0; j < some; j++) a[i + j] = half_a[j], b[i + j] = half_b[j];
    }
    const float pt = p[target], qt = q[target], off = pt - qt;
    *first += pt * (known_a - widened1(a_target)), *second += qt * (known_b - widened1(b_target));
    a[target] = rounded1(0.5f * (pt - kept) + (pt * (r_target - there) + off) * weight);
    b[target] = rounded1(0.5f * (qt - kept) - (qt * (r_target + back) + off) * weight);
    return there + back;
}

}  // namespace

// ---------------------------------------------------------------------------------------------- what Python calls

extern "C" {

bool clearhead_join(const Join* j, int threads) {
    return done([&] {
        std::vector<float> memory(size_t(j->d) * threads);
        std::vector<uint8_t> bytes(size_t(j->d) * threads);
#pragma omp parallel num_threads(threads)
        {
            const size_t mine = size_t(j->d) * omp_get_thread_num();
            const Run run(j->rows);
            for (int r = run.first; r < run.last; r++) join_row(*j, r, &memory[mine], &bytes[mine]);
        }
        blank(j->s, j->rows, j->room, j->d);
        blank(j->y, j->rows, j->room, j->d);
        blank(j->h, j->rows, j->room, j->d);
    });
}

bool clearhead_join_back(const Join* j, const JoinBack* b, int threads) {
    return done([&] {
        const size_t d = j->d;
        std::vector<float> memory(d * threads), sums(3 * d * threads);
        std::vector<uint8_t> bytes(d * threads);
#pragma omp parallel num_threads(threads)
        {
            const size_t me = omp_get_thread_num();
            const Run run(j->rows);
            for (int r = run.first; r < run.last; r++)
                join_row_back(*j, *b, r, &memory[me * d], &bytes[me * d], &sums[3 * d * me]);
        }
        if (b->to_gamma) gathered(sums, 3 * d, threads, 0, j->d, b->to_gamma);
        if (b->to_beta) gathered(sums, 3 * d, threads, d, j->d, b->to_beta);
        if (b->to_bias) gathered(sums, 3 * d, threads, 2 * d, j->d, b->to_bias);
        blank(b->to_x, j->rows, j->room, j->d);
        blank(b->to_part, j->rows, j->room, j->d);
    });
}

// out = dropout(x), both float32: of embeddings, and of their gradients.
bool clearhead_drop(const Dropout* dropout, const float* x, float* out, int rows, int room, int d, int threads) {
    return done([&] {
        std::vector<uint8_t> bytes(size_t(d) * threads);
#pragma omp parallel num_threads(threads)
        {
            uint8_t* mine = &bytes[size_t(d) * omp_get_thread_num()];
            const Run run(rows);
            for (int r = run.first; r < run.last; r++) {
                const size_t at = size_t(r) * d;
                dropout->draw(r, d, mine);
                for (int i = 0; i < d; i += W) store(out + at + i, dropout->apply(load<vf>(x + at + i), mine + i));
            }
        }
        blank(out, rows, room, d);
    });
}

bool clearhead_attend(const Attention* t, int threads) { return each_head(*t, threads, attend); }
bool clearhead_attend_back(const Attention* t, int threads) { return each_head(*t, threads, attend_back); }

// u becomes h = max(u + β, 0), or its square; the way back needs what came of it alone.
bool clearhead_activate(half* x, const float* bias, int rows, int room, int width, int squared, int threads) {
#pragma omp parallel num_threads(threads)
    {
        const Run run(rows);
        for (int r = run.first; r < run.last; r++)
            for (int c = 0; c < width; c += W) {
                half* at = x + size_t(r) * width + c;
                vf v = bias ? widened(at) + load<vf>(bias + c) : widened(at);
                v = v < vf{} ? vf{} : v;  // what is not a number stays so
                store(at, rounded(squared ? v * v : v));
            }
    }
    blank(x, rows, room, width);
    return true;
}

// The gradients of u, in place of that of h, and of β: u is what h > 0 came from, or √h.
bool clearhead_activate_back(const half* h, half* to, float* to_bias, int rows, int room, int width, int squared,
                             int threads) {
    return done([&] {
        std::vector<float> sums(size_t(width) * threads);
#pragma omp parallel num_threads(threads)
        {
            float* mine = &sums[size_t(width) * omp_get_thread_num()];
            const Run run(rows);
            for (int r = run.first; r < run.last; r++)
                for (int c = 0; c < width; c += W) {
                    const size_t at = size_t(r) * width + c;
                    const vf v = widened(h + at);
                    vf g = widened(to + at);
                    if (squared) for (int k = 0; k < W; k++) g[k] *= 2.f * std::sqrt(v[k]);
                    g = v > vf{} ? g : vf{};
                    store(to + at, rounded(g));
                    store(mine + c, load<vf>(mine + c) + g);
                }
        }
        if (to_bias) gathered(sums, width, threads, 0, width, to_bias);
        blank(to, rows, room, width);
    });
}

// Rows of logits become the gradient of their loss, p − kept · e_y.
bool clearhead_surprise(half* x, const int64_t* targets, const float* known, float* normalisers, int rows, int vocab,
                        float kept, int threads) {
    return done([&] {
        std::vector<float> memory(size_t(vocab) * threads);
#pragma omp parallel num_threads(threads)
        {
            float* p = &memory[size_t(vocab) * omp_get_thread_num()];
            const Run run(rows);
            for (int r = run.first; r < run.last; r++)
                normalisers[r] = surprise(x + size_t(r) * vocab, vocab, targets[r], known[r], kept, p);
        }
    });
}

// The same for R-Drop: `rows` rows, then their second passes.
bool clearhead_disagree(half* x, const int64_t* targets, const float* known, float* normalisers, float* divergences,
                        int rows, int vocab, float kept, float weight, int threads) {
    return done([&] {
        std::vector<float> memory(2 * size_t(vocab) * threads);
#pragma omp parallel num_threads(threads)
        {
            float *p = &memory[2 * size_t(vocab) * omp_get_thread_num()], *q = p + vocab;
            const Run run(rows);
            for (int r = run.first; r < run.last; r++) {
                half *a = x + size_t(r) * vocab, *b = x + size_t(r + rows) * vocab;
                divergences[r] = disagree(a, b, vocab, targets[r], kept, weight, p, q, known[r], known[rows + r],
                                          normalisers + r, normalisers + rows + r);
            }
        }
    });
}
}
