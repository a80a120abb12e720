// Message passing on a card. Operations, loops and tiles are integers (opcodes.py, levels.py); this
// file is the same for every plan. `Number` is how tables are stored; all arithmetic is in double
// precision. The numbers of columns, kinds and outcomes are those of opcodes.py.

typedef long long i64;
typedef unsigned long long u64;

#define KIND 0
#define LEFT 1
#define RIGHT 4
#define TOP 7
#define RESULT_AT 10
#define RESULT_SLOT 11
#define FIRST_LOOP 12
#define N_KEPT 13
#define N_SUMMED 14
#define KEPT_CELLS 15
#define SUMMED_CELLS 16
#define KEPT_LANES 17
#define SUM_LANES 18
#define SUMS_ARE_FAST 19
#define SPLITS 20
#define REPEATS 21
#define N_COLUMNS 22

#define LANES 256
#define BATCH 4

enum { STORE, CONTRACT, ABSORB };
enum { WORK, STORED, GIVEN, ONE, ROOT };
enum { ORDINARY, LOGARITHMS, PEAKS };
enum { DONE, NEEDS_LOGARITHMS, IMPOSSIBLE, INVALID };

// What a call brings. It lies in the card's memory, so that a captured graph serves every call.
struct Call {
    const void* potentials;
    void* out;
    double total;
};

// What is known of each slot: its largest and smallest entry, and the smallest that is not zero.
// For a given table: its largest potential, and the smallest that is finite, as ordered keys.
struct Slot {
    u64 high, low, floor;
};

struct Result {
    double log_partition;
    i64 outcome;
};

#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

// An integer for each number, in the same order.
__device__ inline u64 order_key(double x) {
    i64 bits = __double_as_longlong(x);
    return (u64)bits ^ (bits < 0 ? 0xffffffffffffffffULL : 0x8000000000000000ULL);
}

__device__ inline double from_key(u64 key) {
    u64 bits = key ^ ((key >> 63) ? 0x8000000000000000ULL : 0xffffffffffffffffULL);
    return __longlong_as_double((i64)bits);
}

template <class Number>
__device__ void start_over(Slot* slots, int n_slots, int n_given, Number* work, double one,
                           Result* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n_slots) {
        slots[i].high = 0;
        slots[i].low = slots[i].floor = i < n_given ? 0xffffffffffffffffULL
                                                    : (u64)__double_as_longlong(INFINITE);
    }
    if (i == 0) {
        work[0] = (Number)one;
        result->log_partition = 0.0;
        result->outcome = DONE;
    }
}

extern "C" __global__ void reset_double(Slot* slots, int n_slots, int n_given, double* work,
                                        double one, Result* result) {
    start_over<double>(slots, n_slots, n_given, work, one, result);
}

extern "C" __global__ void reset_float(Slot* slots, int n_slots, int n_given, float* work,
                                       double one, Result* result) {
    start_over<float>(slots, n_slots, n_given, work, one, result);
}

// The largest and the smallest finite potential of every given table; a tile is a table and a part.
template <class Number>
__device__ void survey(const int* tiles, const i64* given, int part, const Call* call, Slot* slots,
                       Result* result) {
    __shared__ u64 high, floor;
    __shared__ int invalid;
    if (threadIdx.x == 0) {
        high = 0;
        floor = 0xffffffffffffffffULL;
        invalid = 0;
    }
    __syncthreads();
    int table = tiles[2 * blockIdx.x];
    i64 start = (i64)tiles[2 * blockIdx.x + 1] * part;
    i64 stop = given[2 * table + 1] < start + part ? given[2 * table + 1] : start + part;
    const Number* potentials = (const Number*)call->potentials + given[2 * table];
    double largest = -INFINITE, smallest = INFINITE;
    int nonsense = 0;
    for (i64 i = start + threadIdx.x; i < stop; i += LANES) {
        double x = (double)potentials[i];
        if (!(x < INFINITE)) nonsense = 1;
        if (x > largest) largest = x;
        if (x > -INFINITE && x < smallest) smallest = x;
    }
    if (nonsense) atomicOr(&invalid, 1);
    atomicMax(&high, order_key(largest));
    atomicMin(&floor, order_key(smallest));
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMax(&slots[table].high, high);
        atomicMin(&slots[table].floor, floor);
        if (invalid) atomicMax((u64*)&result->outcome, (u64)INVALID);
    }
}

extern "C" __global__ void survey_double(const int* tiles, const i64* given, int part,
                                         const Call* call, Slot* slots, Result* result) {
    survey<double>(tiles, given, part, call, slots, result);
}

extern "C" __global__ void survey_float(const int* tiles, const i64* given, int part,
                                        const Call* call, Slot* slots, Result* result) {
    survey<float>(tiles, given, part, call, slots, result);
}

// A table that is read: where it begins, what its numbers are multiplied by (or, of potentials, what
// is taken off before they are exponentiated), or what is added to its logarithms.
template <class Number>
struct Operand {
    const Number* at;
    double factor;
    bool given;
};

// The first cell of the workspace is the number one, or its logarithm.
template <int RING, class Number>
__device__ Operand<Number> open(const i64* operand, const Call* call, const Slot* slots,
                                const Number* work) {
    i64 at = operand[0], read = operand[1], scale = operand[2];
    const Number* potentials = (const Number*)call->potentials;
    Operand<Number> table = {work, RING == ORDINARY ? 1.0 : 0.0, false};
    if (read == WORK) table.at = work + at;
    if (read == GIVEN || read == STORED) table.at = potentials + at;
    if (RING != ORDINARY) {
        if (read == ROOT) table.factor = -(double)work[at];
        return table;
    }
    if (read == STORED) table.at = (const Number*)call->out + at;
    if (read == GIVEN) {
        table.given = true;
        table.factor = from_key(slots[scale].high);
    } else if (scale >= 0) {
        table.factor = 1.0 / __longlong_as_double((i64)slots[scale].high);
    }
    return table;
}

template <int RING, class Number>
__device__ inline double interpret(const Operand<Number>& table, double raw) {
    if (RING != ORDINARY) return raw + table.factor;
    return table.given ? exp(raw - table.factor) : raw * table.factor;
}

// A sum of ordinary numbers, of logarithms (relative to the largest one), or a largest one.
template <int RING>
struct Sum {
    double peak, mass;

    __device__ inline void clear() {
        peak = -INFINITE;
        mass = 0.0;
    }
    __device__ inline void add(double x) {
        if (RING == ORDINARY) {
            mass += x;
        } else if (RING == PEAKS) {
            if (x > peak) peak = x;
        } else if (x > peak) {
            mass = mass * exp(peak - x) + 1.0;
            peak = x;
        } else if (x > -INFINITE) {
            mass += exp(x - peak);
        }
    }
    __device__ inline void join(double other_peak, double other_mass) {
        if (RING == ORDINARY) {
            mass += other_mass;
        } else if (RING == PEAKS) {
            if (other_peak > peak) peak = other_peak;
        } else if (other_peak > peak) {
            mass = (peak == -INFINITE ? 0.0 : mass * exp(peak - other_peak)) + other_mass;
            peak = other_peak;
        } else if (other_peak > -INFINITE) {
            mass += other_mass * exp(other_peak - peak);
        }
    }
    __device__ inline double value() const {
        if (RING == ORDINARY) return mass;
        if (RING == PEAKS || peak == -INFINITE) return peak;
        return peak + log(mass);
    }
};

// The offsets of one cell of nested loops in three tables; the last loop is the fastest.
struct Offsets {
    unsigned a, b, c;
};

__device__ inline Offsets locate(unsigned index, const i64* loops, int n_loops) {
    Offsets at = {0, 0, 0};
#pragma unroll 1
    for (int row = n_loops - 1; row >= 0; row--) {
        const i64* loop = loops + 4 * row;
        unsigned extent = (unsigned)loop[0];
        unsigned next = row ? index / extent : 0;
        unsigned tick = index - next * extent;
        at.a += tick * (unsigned)loop[1];
        at.b += tick * (unsigned)loop[2];
        at.c += tick * (unsigned)loop[3];
        index = next;
    }
    return at;
}

// What the lanes of a block do of an operation.
struct Tile {
    const i64* row;
    const i64* kept_loops;
    const i64* sum_loops;
    int n_kept, n_summed, kept_lanes, sum_lanes, sum_lane, splits, split, repeats;
    unsigned kept, kept_cells, begin, end;
    bool fast;
};

__device__ inline Tile find_tile(const int* tiles, const i64* operations, const i64* loops) {
    Tile t;
    int number = tiles[2 * blockIdx.x + 1], lane = threadIdx.x;
    t.row = operations + (i64)N_COLUMNS * tiles[2 * blockIdx.x];
    t.n_kept = (int)t.row[N_KEPT];
    t.n_summed = (int)t.row[N_SUMMED];
    t.kept_loops = loops + 4 * t.row[FIRST_LOOP];
    t.sum_loops = t.kept_loops + 4 * t.n_kept;
    t.kept_lanes = (int)t.row[KEPT_LANES];
    t.sum_lanes = (int)t.row[SUM_LANES];
    t.splits = (int)t.row[SPLITS];
    t.repeats = (int)t.row[REPEATS];
    t.fast = t.row[SUMS_ARE_FAST] != 0;
    t.kept_cells = (unsigned)t.row[KEPT_CELLS];
    int kept_lane = t.fast ? lane / t.sum_lanes : lane % t.kept_lanes;
    t.sum_lane = t.fast ? lane % t.sum_lanes : lane / t.kept_lanes;
    t.split = number % t.splits;
    t.kept = (unsigned)(number / t.splits) * t.repeats * t.kept_lanes + kept_lane;
    unsigned summed = (unsigned)t.row[SUMMED_CELLS];
    unsigned part = (summed + t.splits - 1) / t.splits;
    t.begin = t.split * part < summed ? t.split * part : summed;
    t.end = t.begin + part < summed ? t.begin + part : summed;
    return t;
}

// Join the sums that several lanes share, in the first of them. All lanes of a block come here.
template <int RING>
__device__ inline void join_lanes(Sum<RING>& sum, const Tile& t) {
    __shared__ double peaks[LANES], masses[LANES];
    // Neighbouring lanes of a warp need no barrier.
    if (t.fast && t.sum_lanes <= 32) {
        for (int half = t.sum_lanes / 2; half > 0; half /= 2) {
            double peak = __shfl_down_sync(0xffffffffu, sum.peak, half, t.sum_lanes);
            double mass = __shfl_down_sync(0xffffffffu, sum.mass, half, t.sum_lanes);
            if (t.sum_lane < half) sum.join(peak, mass);
        }
    } else if (t.sum_lanes > 1) {
        int lane = threadIdx.x, stride = t.fast ? 1 : t.kept_lanes;
        __syncthreads();
        peaks[lane] = sum.peak;
        masses[lane] = sum.mass;
        for (int half = t.sum_lanes / 2; half > 0; half /= 2) {
            __syncthreads();
            if (t.sum_lane < half) {
                sum.join(peaks[lane + half * stride], masses[lane + half * stride]);
                peaks[lane] = sum.peak;
                masses[lane] = sum.mass;
            }
        }
    }
}

// A part of a sum has a cell of its own; a whole one goes where its axes say.
__device__ inline i64 find_cell(const Tile& t, unsigned kept, unsigned offset) {
    return t.row[RESULT_AT] + (t.splits > 1 ? (i64)t.split * t.kept_cells + kept : (i64)offset);
}

// Multiply two tables, and sum the product onto the axes of the result.
template <int RING, class Number>
__device__ void contract(const Tile& t, const Call* call, Slot* slots, Number* work) {
    __shared__ u64 high, low, floor;
    if (threadIdx.x == 0) {
        high = 0;
        low = floor = (u64)__double_as_longlong(INFINITE);
    }
    Operand<Number> left = open<RING, Number>(t.row + LEFT, call, slots, work);
    Operand<Number> right = open<RING, Number>(t.row + RIGHT, call, slots, work);
    bool single = t.n_summed == 1;
    unsigned p = single ? (unsigned)t.sum_loops[1] : 0, q = single ? (unsigned)t.sum_loops[2] : 0;
    u64 highest = 0, lowest = (u64)__double_as_longlong(INFINITE), least = lowest;
    unsigned kept = t.kept;
    for (int repeat = 0; repeat < t.repeats; repeat++, kept += t.kept_lanes) {
        Sum<RING> sum;
        sum.clear();
        Offsets at = {0, 0, 0};
        if (kept < t.kept_cells) {
            at = locate(kept, t.kept_loops, t.n_kept);
            unsigned s = t.begin + t.sum_lane;
            // Several terms at a time: their numbers are then on their way together.
            for (; single && s < t.end; s += BATCH * t.sum_lanes) {
                double x[BATCH], y[BATCH];
#pragma unroll
                for (int k = 0; k < BATCH; k++) {
                    unsigned term = s + k * t.sum_lanes;
                    bool inside = term < t.end;
                    x[k] = inside ? (double)left.at[at.a + term * p] : 0.0;
                    y[k] = inside ? (double)right.at[at.b + term * q] : 0.0;
                }
#pragma unroll
                for (int k = 0; k < BATCH; k++) {
                    double u = interpret<RING>(left, x[k]), v = interpret<RING>(right, y[k]);
                    if (s + k * t.sum_lanes < t.end) sum.add(RING == ORDINARY ? u * v : u + v);
                }
            }
            for (; !single && s < t.end; s += t.sum_lanes) {
                Offsets more = locate(s, t.sum_loops, t.n_summed);
                double u = interpret<RING>(left, (double)left.at[at.a + more.a]);
                double v = interpret<RING>(right, (double)right.at[at.b + more.b]);
                sum.add(RING == ORDINARY ? u * v : u + v);
            }
        }
        join_lanes(sum, t);
        if (t.sum_lane == 0 && kept < t.kept_cells) {
            Number rounded = (Number)sum.value();
            work[find_cell(t, kept, at.c)] = rounded;
            double value = (double)rounded;
            u64 bits = (u64)__double_as_longlong(value);
            if (bits > highest) highest = bits;
            if (bits < lowest) lowest = bits;
            if (value > 0.0 && bits < least) least = bits;
        }
    }
    if (RING != ORDINARY || t.row[RESULT_SLOT] < 0) return;
    __syncthreads();
    if (t.sum_lane == 0) {
        atomicMax(&high, highest);
        atomicMin(&low, lowest);
        atomicMin(&floor, least);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        Slot* slot = slots + t.row[RESULT_SLOT];
        atomicMax(&slot->high, high);
        atomicMin(&slot->low, low);
        atomicMin(&slot->floor, floor);
    }
}

// Write the marginal of a given table, and collect the derivative of the other operand.
template <int RING, class Number>
__device__ void absorb(const Tile& t, const Call* call, Slot* slots, Number* work,
                       Result* result) {
    Operand<Number> left = open<RING, Number>(t.row + LEFT, call, slots, work);
    Operand<Number> right = open<RING, Number>(t.row + RIGHT, call, slots, work);
    Operand<Number> top = open<RING, Number>(t.row + TOP, call, slots, work);
    Number* out = (Number*)call->out + t.row[LEFT];
    double total = call->total;
    bool single = t.n_summed == 1, odd = false, collects = t.row[RESULT_AT] >= 0;
    unsigned p = single ? (unsigned)t.sum_loops[1] : 0, q = single ? (unsigned)t.sum_loops[2] : 0;
    unsigned r = single ? (unsigned)t.sum_loops[3] : 0;
    unsigned kept = t.kept;
    for (int repeat = 0; repeat < t.repeats; repeat++, kept += t.kept_lanes) {
        Sum<RING> sum;
        sum.clear();
        Offsets at = {0, 0, 0};
        if (kept < t.kept_cells) {
            at = locate(kept, t.kept_loops, t.n_kept);
            unsigned s = t.begin + t.sum_lane;
            for (; single && s < t.end; s += BATCH * t.sum_lanes) {
                double x[BATCH], y[BATCH], z[BATCH];
#pragma unroll
                for (int k = 0; k < BATCH; k++) {
                    unsigned term = s + k * t.sum_lanes;
                    bool inside = term < t.end;
                    x[k] = inside ? (double)left.at[at.a + term * p] : 0.0;
                    y[k] = inside ? (double)right.at[at.b + term * q] : 0.0;
                    z[k] = inside ? (double)top.at[at.c + term * r] : 0.0;
                }
#pragma unroll
                for (int k = 0; k < BATCH; k++) {
                    unsigned term = s + k * t.sum_lanes;
                    if (term >= t.end) continue;
                    double u = interpret<RING>(left, x[k]), v = interpret<RING>(right, y[k]);
                    double w = interpret<RING>(top, z[k]);
                    double both = RING == ORDINARY ? u * w : u + w;
                    double marginal = (RING == ORDINARY ? both * v : exp(both + v)) * total;
                    odd = odd || !(marginal < INFINITE);
                    out[at.a + term * p] = (Number)marginal;
                    sum.add(both);
                }
            }
            for (; !single && s < t.end; s += t.sum_lanes) {
                Offsets more = locate(s, t.sum_loops, t.n_summed);
                double u = interpret<RING>(left, (double)left.at[at.a + more.a]);
                double v = interpret<RING>(right, (double)right.at[at.b + more.b]);
                double w = interpret<RING>(top, (double)top.at[at.c + more.c]);
                double both = RING == ORDINARY ? u * w : u + w;
                double marginal = (RING == ORDINARY ? both * v : exp(both + v)) * total;
                odd = odd || !(marginal < INFINITE);
                out[at.a + more.a] = (Number)marginal;
                sum.add(both);
            }
        }
        if (!collects) continue;
        join_lanes(sum, t);
        if (t.sum_lane == 0 && kept < t.kept_cells)
            work[find_cell(t, kept, at.b)] = (Number)sum.value();
    }
    if (odd) atomicMax((u64*)&result->outcome, (u64)NEEDS_LOGARITHMS);
}

// Write the numbers of a given table where its marginal will be.
template <class Number>
__device__ void store(const Tile& t, const Call* call, Slot* slots, Number* work) {
    Operand<Number> left = open<ORDINARY, Number>(t.row + LEFT, call, slots, work);
    Number* out = (Number*)call->out + t.row[LEFT];
    for (unsigned s = t.begin + t.sum_lane; s < t.end; s += t.sum_lanes)
        out[s] = (Number)interpret<ORDINARY>(left, (double)left.at[s]);
}

// One tile: some kept cells of an operation, or a part of their sums.
template <int RING, class Number>
__device__ void run_tile(const int* tiles, const i64* operations, const i64* loops,
                         const Call* call, Slot* slots, Number* work, Result* result) {
    Tile t = find_tile(tiles, operations, loops);
    int kind = (int)t.row[KIND];
    if (kind == CONTRACT) {
        contract<RING, Number>(t, call, slots, work);
    } else if (kind == ABSORB) {
        if (RING != PEAKS) absorb<RING, Number>(t, call, slots, work, result);
    } else if (RING == ORDINARY) {  // logarithms are read from the potentials themselves
        store<Number>(t, call, slots, work);
    }
}

#define LEVEL(name, RING, Number)                                                                  \
    extern "C" __global__ void __launch_bounds__(LANES, 4)                                         \
        name(const int* tiles, const i64* operations, const i64* loops, const Call* call,          \
             Slot* slots, Number* work, Result* result) {                                          \
        run_tile<RING, Number>(tiles, operations, loops, call, slots, work, result);               \
    }

LEVEL(ordinary_double, ORDINARY, double)
LEVEL(ordinary_float, ORDINARY, float)
LEVEL(logarithms_double, LOGARITHMS, double)
LEVEL(peaks_double, PEAKS, double)

__device__ double find_floor(i64 slot, int n_given, int n_slots, const Slot* slots) {
    if (slot >= n_slots) return 1.0;
    if (slot < n_given) return exp(from_key(slots[slot].floor) - from_key(slots[slot].high));
    double high = __longlong_as_double((i64)slots[slot].high);
    return __longlong_as_double((i64)slots[slot].floor) / high;
}

// The log-partition function, and whether anything may have been lost. A result without mass may
// be an impossible model, or one whose mass was lost: logarithms decide. One block.
extern "C" __global__ void summarise(const i64* forward, int n_forward, int n_given, int n_slots,
                                     double tiny, const Slot* slots, Result* result) {
    __shared__ double parts[LANES];
    __shared__ int worst;
    int lane = threadIdx.x;
    if (lane == 0) worst = DONE;
    __syncthreads();
    double sum = 0.0;
    int outcome = DONE;
    for (int i = lane; i < n_given; i += LANES) {
        double shift = from_key(slots[i].high);
        if (shift == -INFINITE) outcome = NEEDS_LOGARITHMS;
        sum += shift;
    }
    for (int i = lane; i < n_forward; i += LANES) {
        const i64* row = forward + 3 * i;
        double high = __longlong_as_double((i64)slots[row[0]].high);
        double low = __longlong_as_double((i64)slots[row[0]].low);
        double floor = find_floor(row[1], n_given, n_slots, slots) *
                       find_floor(row[2], n_given, n_slots, slots);
        bool lost = low < tiny && floor < tiny;
        if (lost || !(high > 0.0 && high < INFINITE)) outcome = NEEDS_LOGARITHMS;
        sum += log(high);
    }
    parts[lane] = sum;
    if (outcome) atomicMax(&worst, outcome);
    for (int half = LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) parts[lane] += parts[lane + half];
    }
    __syncthreads();
    if (lane == 0) {
        result->log_partition = parts[0];
        if (worst > result->outcome) result->outcome = worst;
    }
}

// The same for logarithms: the sum of the roots' results.
extern "C" __global__ void summarise_logarithms(const i64* roots, int n_roots, const double* work,
                                                Result* result) {
    if (threadIdx.x || blockIdx.x) return;
    double sum = 0.0;
    for (int i = 0; i < n_roots; i++) sum += work[roots[i]];
    result->log_partition = sum;
    if (!(sum > -INFINITE) && result->outcome < IMPOSSIBLE) result->outcome = IMPOSSIBLE;
}

// Arithmetic on flat vectors: see arithmetic.py. Reductions leave a part for each block.
#define EACH(i, n) \
    for (i64 i = (i64)blockIdx.x * LANES + threadIdx.x; i < n; i += (i64)gridDim.x * LANES)

__device__ void reduce(double mine, bool largest, double* parts) {
    __shared__ double lanes[LANES];
    int lane = threadIdx.x;
    lanes[lane] = mine;
    for (int half = LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) {
            double other = lanes[lane + half];
            if (!largest) lanes[lane] += other;
            else if (other > lanes[lane]) lanes[lane] = other;
        }
    }
    if (lane == 0) parts[blockIdx.x] = lanes[0];
}

template <class Number>
struct Arithmetic {
    static __device__ void mix(const Number* left, const Number* right, double share, Number* out,
                               i64 n) {
        EACH(i, n) out[i] = (Number)(left[i] + share * ((double)right[i] - left[i]));
    }
    static __device__ void descend(const Number* vector, const Number* slope, double length,
                                   Number* out, i64 n) {
        EACH(i, n) out[i] = (Number)(vector[i] - length * slope[i]);
    }
    static __device__ void dot(const Number* left, const Number* right, double* parts, i64 n) {
        double sum = 0.0;
        EACH(i, n) sum += (double)left[i] * right[i];
        reduce(sum, false, parts);
    }
    // Half the weighted squared distance from the centre; its gradient, where there is room for it.
    static __device__ void quadratic(const Number* vector, const Number* centre,
                                     const Number* precision, Number* gradient, double* parts,
                                     i64 n) {
        double sum = 0.0;
        EACH(i, n) {
            double distance = (double)vector[i] - centre[i];
            double slope = distance * precision[i];
            if (gradient) gradient[i] = (Number)slope;
            sum += 0.5 * distance * slope;
        }
        reduce(sum, false, parts);
    }
    static __device__ void find_largest(const Number* vector, double* parts, i64 n) {
        double most = 0.0;
        EACH(i, n) {
            double size = fabs((double)vector[i]);
            if (size < INFINITE && size > most) most = size;
        }
        reduce(most, true, parts);
    }
    static __device__ void distance(const Number* left, const Number* right, double* parts, i64 n) {
        double sum = 0.0;
        EACH(i, n) sum += fabs((double)left[i] - right[i]);
        reduce(sum, false, parts);
    }
    static __device__ void take_logarithms(const Number* vector, double least, Number* out, i64 n) {
        EACH(i, n) {
            double x = (double)vector[i];
            out[i] = (Number)log(x > least ? x : least);
        }
    }
    static __device__ void rescale_towards(const Number* potentials, const Number* goal,
                                           const Number* marginals, double share, double least,
                                           Number* out, i64 n) {
        EACH(i, n) {
            double x = (double)marginals[i];
            out[i] = (Number)(potentials[i] + share * (goal[i] - log(x > least ? x : least)));
        }
    }
    static __device__ void direct_away(const Number* slope, const Number* excluded, Number* out,
                                       i64 n) {
        EACH(i, n) out[i] = excluded[i] == (Number)-INFINITE ? excluded[i] : -slope[i];
    }
};

#define VECTORS(Number, name)                                                                      \
    extern "C" __global__ void mix_##name(const Number* a, const Number* b, double share,          \
                                          Number* out, i64 n) {                                    \
        Arithmetic<Number>::mix(a, b, share, out, n);                                              \
    }                                                                                              \
    extern "C" __global__ void descend_##name(const Number* a, const Number* b, double length,     \
                                              Number* out, i64 n) {                                \
        Arithmetic<Number>::descend(a, b, length, out, n);                                         \
    }                                                                                              \
    extern "C" __global__ void dot_##name(const Number* a, const Number* b, double* parts, i64 n) {\
        Arithmetic<Number>::dot(a, b, parts, n);                                                   \
    }                                                                                              \
    extern "C" __global__ void quadratic_##name(const Number* a, const Number* b, const Number* c, \
                                                Number* out, double* parts, i64 n) {               \
        Arithmetic<Number>::quadratic(a, b, c, out, parts, n);                                     \
    }                                                                                              \
    extern "C" __global__ void find_largest_##name(const Number* a, double* parts, i64 n) {        \
        Arithmetic<Number>::find_largest(a, parts, n);                                             \
    }                                                                                              \
    extern "C" __global__ void distance_##name(const Number* a, const Number* b, double* parts,    \
                                               i64 n) {                                            \
        Arithmetic<Number>::distance(a, b, parts, n);                                              \
    }                                                                                              \
    extern "C" __global__ void take_logarithms_##name(const Number* a, double least, Number* out,  \
                                                      i64 n) {                                     \
        Arithmetic<Number>::take_logarithms(a, least, out, n);                                     \
    }                                                                                              \
    extern "C" __global__ void rescale_towards_##name(                                             \
        const Number* a, const Number* b, const Number* c, double share, double least,             \
        Number* out, i64 n) {                                                                      \
        Arithmetic<Number>::rescale_towards(a, b, c, share, least, out, n);                        \
    }                                                                                              \
    extern "C" __global__ void direct_away_##name(const Number* a, const Number* b, Number* out,   \
                                                  i64 n) {                                         \
        Arithmetic<Number>::direct_away(a, b, out, n);                                             \
    }

VECTORS(double, double)
VECTORS(float, float)

// Drawing records: the hash and the draws of compiled/sampling.py, a thread for each record.
__device__ inline double draw_uniform(u64 key, u64 counter) {
    u64 z = key + counter * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return (double)(z >> 11) * (1.0 / 9007199254740992.0);
}

extern "C" __global__ void draw(int* codes, i64 n_records, u64 first, const i64* known,
                                const i64* strides, int n_known, const i64* added, int n_added,
                                const int* decoded, const double* share, const int* alias,
                                i64 n_cells, u64 key, u64 phase, u64 n_phases) {
    EACH(i, n_records) {
        i64 row = 0;
        for (int j = 0; j < n_known; j++) row += codes[known[j] * n_records + i] * strides[j];
        u64 counter = 2 * ((first + (u64)i) * n_phases + phase);
        i64 k = (i64)(draw_uniform(key, counter) * (double)n_cells);
        if (draw_uniform(key, counter + 1) >= share[row * n_cells + k])
            k = alias[row * n_cells + k];
        for (int j = 0; j < n_added; j++)
            codes[added[j] * n_records + i] = decoded[j * n_cells + k];
    }
}
