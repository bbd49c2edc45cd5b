/* batch_json.c - any bytes as the answer to a batch in JSON (BJS1). */
#include "batch.h"
#include "net/batch/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_batch(&tide_batch_json, "application/json", data, bytes);
}
