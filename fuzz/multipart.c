/* multipart.c - any bytes as the answer to a batch in parts (MPT1, MPT2). */
#include "batch.h"
#include "net/batch/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_batch(&tide_batch_multipart, "multipart/mixed; boundary=b", data, bytes);
}
