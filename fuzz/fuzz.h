/* fuzz.h - shared by the fuzz targets: reads decisions out of bytes.
 *
 * A target that parses takes its input unchanged.  A target that drives a module reads
 * operations and their arguments from the front of the input; at its end it reads
 * zeros, and fuzz_more() says so, so that every input ends.
 *
 * A target leaves no state that changes the next run, and never asserts what the
 * module does not promise: a crash here is a bug in src/.
 */
#ifndef TIDE_FUZZ_FUZZ_H
#define TIDE_FUZZ_FUZZ_H

#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
/* A target that has it says, after its corpus was replayed, whether the seeds reach all that they must;
 * what is missing goes to standard error. */
bool fuzz_corpus_is_whole(void) __attribute__((weak));

struct fuzz_input {
    const uint8_t *data;
    size_t bytes;
};

static inline bool fuzz_more(const struct fuzz_input *input)
{
    return input->bytes > 0;
}

static inline uint8_t fuzz_u8(struct fuzz_input *input)
{
    if (input->bytes == 0)
        return 0;
    input->bytes--;
    return *input->data++;
}

static inline uint64_t fuzz_number(struct fuzz_input *input, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++)
        number = number << 8 | fuzz_u8(input);
    return number;
}

/* Small numbers are the interesting ones, and so are the largest: the first
 * byte says how many follow, and whether to count down from the top. */
static inline uint64_t fuzz_u64(struct fuzz_input *input)
{
    uint8_t shape = fuzz_u8(input);
    uint64_t number = fuzz_number(input, shape & 15 ? shape & 7 : 8);
    return shape & 0x80 ? UINT64_MAX - number : number;
}

static inline uint32_t fuzz_below(struct fuzz_input *input, uint32_t bound)
{
    return (uint32_t)(fuzz_number(input, bound > 256 ? 4 : 1) % bound);
}

/* Everything up to the next `end`, which is skipped, or to the end of input. */
static inline tide_text fuzz_text(struct fuzz_input *input, char end)
{
    const uint8_t *found = input->bytes == 0 ? NULL : memchr(input->data, end, input->bytes);
    size_t bytes = found == NULL ? input->bytes : (size_t)(found - input->data);
    tide_text text = {(const char *)input->data, bytes};
    input->data += bytes + (found != NULL);
    input->bytes -= bytes + (found != NULL);
    return text;
}

/* The rest as a terminated copy of its exact size, so that reading past it is detected. free()
 * it. */
static inline char *fuzz_cstr(tide_text text)
{
    char *copy = malloc(text.bytes + 1);
    TIDE_ASSERT(copy != NULL);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    return copy;
}

/* Like fuzz_cstr() without the terminator, for readers that take a length. */
static inline tide_text fuzz_exact(tide_text text)
{
    char *copy = malloc(text.bytes == 0 ? 1 : text.bytes);
    TIDE_ASSERT(copy != NULL);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    return (tide_text){copy, text.bytes};
}

#endif
