/* rng.h - a seeded generator.  Same seed, same numbers, on every machine.
 *
 * It is a value that is passed in, never a global.  Not for secrets: those
 * come from tide_world_random(). */
#ifndef TIDE_BASE_RNG_H
#define TIDE_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_rng {
    uint64_t state;
} tide_rng;

static inline tide_rng tide_rng_seeded(uint64_t seed)
{
    return (tide_rng){seed};
}

/* splitmix64: one addition and three xor-multiply steps; full period. */
static inline uint64_t tide_rng_next(tide_rng *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [0, bound); bound 0 gives 0. */
static inline uint64_t tide_rng_below(tide_rng *rng, uint64_t bound)
{
    return bound == 0 ? 0 : (uint64_t)(((unsigned __int128)tide_rng_next(rng) * bound) >> 64);
}

/* True `numerator` times out of `denominator`. */
static inline bool tide_rng_chance(tide_rng *rng, uint64_t numerator, uint64_t denominator)
{
    return tide_rng_below(rng, denominator) < numerator;
}

#endif
