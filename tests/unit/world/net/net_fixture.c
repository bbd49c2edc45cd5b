#include "net_fixture.h"
#include "support/ok.h"

int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->server = test_http_start();
    OK(tide_world_real_new(tide_mem_heap(), &f->world, NULL));
    tide_response_init(&f->response, tide_mem_heap());
    *state = f;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_response_done(&f->response);
    tide_world_real_free(f->world);
    test_http_stop(f->server);
    free(f);
    return 0;
}

tide_status fetch(struct fixture *f, const char *method, const char *url, tide_error *err)
{
    struct tide_request request = {.method = method, .url = url, .stall_timeout_ms = 20000};
    return tide_world_call(f->world, &request, &f->response, NULL, err);
}

void assert_pattern(const char *bytes, size_t count, uint64_t from)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != test_http_pattern(from + i))
            fail_msg("byte %zu differs", i);
}

tide_status sink_write(void *arg, const char *bytes, size_t count)
{
    struct sink *sink = arg;
    if (sink->response != NULL)
        sink->http_seen = sink->response->http;
    assert_pattern(bytes, count, sink->bytes);
    sink->bytes += count;
    if (sink->pause_every > 0 && sink->bytes - sink->paused_at >= sink->pause_every) {
        sink->paused_at = sink->bytes;
        (void)tide_world_sleep_until(sink->world, tide_world_now_us(sink->world) + 2000, NULL);
    }
    return sink->fail_after > 0 && sink->bytes >= sink->fail_after ? TIDE_DISK_FULL : TIDE_OK;
}

tide_status source_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct source *source = arg;
    if (source->end_at > 0 && source->given >= source->end_at) {
        if (source->fail != TIDE_OK)
            return source->fail;
        *count_out = 0;
        return TIDE_OK;
    }
    size_t count = room < source->step ? room : source->step;
    if (count > source->bytes - source->given)
        count = (size_t)(source->bytes - source->given);
    for (size_t i = 0; i < count; i++)
        bytes[i] = test_http_pattern(source->given + i);
    source->given += count;
    *count_out = count;
    return TIDE_OK;
}
