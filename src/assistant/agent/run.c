/* run.c - the state of an agent's run, kept as the JSON that is stored (run.h):
 *
 *   {"profile","status","iterations","iterations_max","final","talk":{..},"log":[..],
 *    "waiting":[CALL..],"results":[PART..]}
 *
 * `waiting` are the calls of the last answer that have no result yet.  `results` has those that
 * came; when it is complete it becomes one message, as both dialects want it. */
#include "assistant/agent/run.h"

#include "base/check.h"

#include <string.h>

struct tide_agent_run {
    tide_mem *mem;
    json_t *json;
};

static const char *const status_names[] = {"running", "done", "limit", "escalated", "failed"};
enum { STATUSES = sizeof status_names / sizeof status_names[0] };

const char *tide_agent_status_name(tide_agent_status status)
{
    TIDE_ASSERT((size_t)status < STATUSES);
    return status_names[status];
}

/* ---- fields ---- */

static json_t *field(const tide_agent_run *run, const char *key)
{
    return json_object_get(run->json, key);
}

static uint64_t number(const tide_agent_run *run, const char *key)
{
    return (uint64_t)json_integer_value(field(run, key));
}

static json_t *messages(const tide_agent_run *run)
{
    return json_object_get(field(run, "talk"), "messages");
}

static tide_status no_memory(tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the run of an agent");
}

/* Takes `value`; false: no memory. */
static bool put(tide_agent_run *run, const char *key, json_t *value)
{
    return json_object_set_new(run->json, key, value) == 0;
}

tide_agent_status tide_agent_status_of(const tide_agent_run *run)
{
    const char *name = json_string_value(field(run, "status"));
    size_t at = 0;
    while (at < STATUSES && (name == NULL || strcmp(name, status_names[at]) != 0))
        at++;
    TIDE_ASSERT(at < STATUSES); /* run_read() has checked it */
    return (tide_agent_status)at;
}

uint32_t tide_agent_iterations(const tide_agent_run *run)
{
    return (uint32_t)number(run, "iterations");
}

tide_text tide_agent_final(const tide_agent_run *run)
{
    const json_t *final = field(run, "final");
    return (tide_text){json_string_value(final), json_string_length(final)};
}

const json_t *tide_agent_log(const tide_agent_run *run)
{
    return field(run, "log");
}

/* ---- texts for the model ---- */

/* Bytes that are not UTF-8 are replaced (JSN1). */
static json_t *text_json(tide_text text)
{
    tide_auto_json holder;
    tide_json_object(&holder);
    tide_json_set_text(&holder, "text", text);
    return holder.failed ? NULL : json_incref(json_object_get(holder.value, "text"));
}

/* {"role":ROLE,"parts":PARTS}; takes `parts`. */
static bool message_add(tide_agent_run *run, const char *role, json_t *parts)
{
    json_t *message = json_pack("{s:s, s:o}", "role", role, "parts", parts);
    if (message == NULL)
        return false;
    return json_array_append_new(messages(run), message) == 0;
}

/* ---- beginning ---- */

static json_t *talk_new(const struct tide_agent_begin *begin)
{
    json_t *talk =
        json_pack("{s:o, s:o, s:I, s:o, s:[]}", "system", text_json(begin->system), "model",
                  text_json(begin->model), "tokens_max", (json_int_t)begin->tokens_max, "tools",
                  begin->tools != NULL ? json_deep_copy(begin->tools) : json_array(), "messages");
    if (talk != NULL && begin->has_temperature &&
        json_object_set_new(talk, "temperature_milli", json_integer(begin->temperature_milli)) !=
            0) {
        json_decref(talk);
        return NULL;
    }
    return talk;
}

tide_status tide_agent_run_new(const struct tide_agent_begin *begin, tide_mem *mem,
                               tide_agent_run **run_out, tide_error *err)
{
    TIDE_ASSERT(begin->iterations_max > 0);
    TIDE_ASSERT(begin->tools == NULL || json_is_array(begin->tools));
    tide_agent_run *run = tide_mem_new(mem, sizeof *run);
    if (run == NULL)
        return no_memory(err);
    run->mem = mem;
    run->json = json_pack("{s:o, s:s, s:i, s:I, s:s, s:o, s:[], s:[], s:[]}", "profile",
                          text_json(begin->profile), "status", status_names[TIDE_AGENT_RUNNING],
                          "iterations", 0, "iterations_max", (json_int_t)begin->iterations_max,
                          "final", "", "talk", talk_new(begin), "log", "waiting", "results");
    json_t *first =
        run->json != NULL ? json_pack("[{s:o}]", "text", text_json(begin->message)) : NULL;
    if (first == NULL || !message_add(run, "user", first)) {
        tide_agent_run_free(run);
        return no_memory(err);
    }
    *run_out = run;
    return TIDE_OK;
}

/* ---- stored ---- */

static bool calls_are_right(const json_t *calls)
{
    size_t i;
    json_t *call;
    json_array_foreach(calls, i, call)
    {
        if (!json_is_string(json_object_get(call, "id")) ||
            !json_is_string(json_object_get(call, "name")) ||
            !json_is_object(json_object_get(call, "arguments")))
            return false;
    }
    return json_is_array(calls);
}

static bool is_right(const json_t *json)
{
    const char *status = json_string_value(json_object_get(json, "status"));
    const json_t *talk = json_object_get(json, "talk");
    bool known = false;
    for (size_t i = 0; status != NULL && i < STATUSES; i++)
        known = known || strcmp(status, status_names[i]) == 0;
    return known && json_is_string(json_object_get(json, "profile")) &&
           json_is_string(json_object_get(json, "final")) &&
           json_integer_value(json_object_get(json, "iterations")) >= 0 &&
           json_integer_value(json_object_get(json, "iterations_max")) > 0 &&
           json_is_array(json_object_get(json, "log")) &&
           json_is_array(json_object_get(json, "results")) &&
           json_is_array(json_object_get(talk, "messages")) &&
           json_is_array(json_object_get(talk, "tools")) &&
           calls_are_right(json_object_get(json, "waiting"));
}

tide_status tide_agent_run_read(tide_text json, tide_mem *mem, tide_agent_run **run_out,
                                tide_error *err)
{
    json_t *value = NULL;
    TIDE_TRY(tide_json_parse_stored(json, &value, err));
    if (!is_right(value)) {
        json_decref(value);
        return tide_error_set(err, TIDE_INVALID, "this is not the run of an agent");
    }
    tide_agent_run *run = tide_mem_new(mem, sizeof *run);
    if (run == NULL) {
        json_decref(value);
        return no_memory(err);
    }
    run->mem = mem;
    run->json = value;
    *run_out = run;
    return TIDE_OK;
}

void tide_agent_run_free(tide_agent_run *run)
{
    if (run == NULL)
        return;
    json_decref(run->json);
    tide_mem_free(run->mem, run, sizeof *run);
}

tide_status tide_agent_run_write(const tide_agent_run *run, tide_buf *out, tide_error *err)
{
    const tide_status rc = tide_json_line(&(tide_json){.value = run->json}, out);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for the run of an agent");
}

/* ---- what is next ---- */

tide_agent_next tide_agent_next_of(const tide_agent_run *run)
{
    if (tide_agent_status_of(run) != TIDE_AGENT_RUNNING)
        return TIDE_AGENT_ENDED;
    return json_array_size(field(run, "waiting")) > 0 ? TIDE_AGENT_TOOL : TIDE_AGENT_ASK;
}

tide_status tide_agent_talk(const tide_agent_run *run, tide_buf *out, tide_error *err)
{
    TIDE_ASSERT(tide_agent_next_of(run) == TIDE_AGENT_ASK);
    const tide_status rc = tide_json_line(&(tide_json){.value = field(run, "talk")}, out);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for the talk of an agent");
}

tide_status tide_agent_end(tide_agent_run *run, tide_agent_status status, tide_text why,
                           tide_error *err)
{
    TIDE_ASSERT(status != TIDE_AGENT_RUNNING);
    if (tide_agent_status_of(run) != TIDE_AGENT_RUNNING)
        return TIDE_OK; /* AGR3 */
    if (!put(run, "final", text_json(why)) || !put(run, "waiting", json_array()) ||
        !put(run, "results", json_array()) ||
        !put(run, "status", json_string(tide_agent_status_name(status))))
        return no_memory(err);
    return TIDE_OK;
}

/* ---- tools ---- */

static bool has_tool(const tide_agent_run *run, const char *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach(json_object_get(field(run, "talk"), "tools"), i, tool)
    {
        const char *known = json_string_value(json_object_get(tool, "name"));
        if (known != NULL && strcmp(known, name) == 0)
            return true;
    }
    return false;
}

void tide_agent_call_of(const tide_agent_run *run, struct tide_agent_call *call_out)
{
    TIDE_ASSERT(tide_agent_next_of(run) == TIDE_AGENT_TOOL);
    const json_t *call = json_array_get(field(run, "waiting"), 0);
    const json_t *id = json_object_get(call, "id"), *name = json_object_get(call, "name");
    *call_out =
        (struct tide_agent_call){.number = (unsigned)json_array_size(field(run, "log")) + 1,
                                 .id = {json_string_value(id), json_string_length(id)},
                                 .name = {json_string_value(name), json_string_length(name)},
                                 .arguments = json_object_get(call, "arguments")};
}

/* All results of the last answer are there: they are said to the model, unless that is too much. */
static tide_status results_end(tide_agent_run *run, tide_error *err)
{
    if (!message_add(run, "user", json_incref(field(run, "results"))) ||
        !put(run, "results", json_array()))
        return no_memory(err);
    if (json_array_size(field(run, "log")) >= TIDE_AGENT_CALLS_MAX)
        return tide_agent_end(run, TIDE_AGENT_LIMIT, tide_text_of("it called too many tools"), err);
    if (tide_agent_iterations(run) >= number(run, "iterations_max"))
        return tide_agent_end(run, TIDE_AGENT_LIMIT,
                              tide_text_of("it did not come to an end within its limit of answers"),
                              err);
    if (json_dumpb(messages(run), NULL, 0, JSON_COMPACT) > TIDE_AGENT_TALK_BYTES_MAX)
        return tide_agent_end(run, TIDE_AGENT_LIMIT, tide_text_of("its conversation grew too long"),
                              err);
    return TIDE_OK;
}

/* Moves the first waiting call to the log, with its result. */
static tide_status call_end(tide_agent_run *run, tide_text result, bool failed, uint64_t took_ms,
                            tide_error *err)
{
    json_t *waiting = field(run, "waiting"), *log = field(run, "log");
    const json_t *call = json_array_get(waiting, 0);
    json_t *text = text_json(tide_utf8_cut(result, TIDE_AGENT_RESULT_BYTES_MAX));
    json_t *part =
        json_pack("{s:{s:O, s:O}}", "result", "id", json_object_get(call, "id"), "text", text);
    if (part != NULL && failed &&
        json_object_set_new(json_object_get(part, "result"), "failed", json_true()) != 0) {
        json_decref(part);
        part = NULL;
    }
    json_t *line = json_pack(
        "{s:I, s:O, s:O, s:o, s:b, s:I}", "number", (json_int_t)json_array_size(log) + 1, "tool",
        json_object_get(call, "name"), "arguments", json_object_get(call, "arguments"), "result",
        text, "failed", (int)failed, "ms", (json_int_t)took_ms);
    if (part == NULL || line == NULL || json_array_append(field(run, "results"), part) != 0 ||
        json_array_append(log, line) != 0 || json_array_remove(waiting, 0) != 0) {
        json_decref(part);
        json_decref(line);
        return no_memory(err);
    }
    json_decref(part);
    json_decref(line);
    return TIDE_OK;
}

/* Calls of tools that it has not get their error here (AGR5); so do those beyond the limit. */
static tide_status refuse_unknown(tide_agent_run *run, tide_error *err)
{
    while (tide_agent_next_of(run) == TIDE_AGENT_TOOL) {
        struct tide_agent_call call;
        tide_agent_call_of(run, &call);
        const bool known = has_tool(run, call.name.data);
        if (known && call.number <= TIDE_AGENT_CALLS_MAX)
            return TIDE_OK;
        TIDE_TRY(call_end(run,
                          tide_text_of(known ? "{\"error\":\"too many calls of tools\"}"
                                             : "{\"error\":\"there is no such tool\"}"),
                          true, 0, err));
        if (json_array_size(field(run, "waiting")) == 0)
            return results_end(run, err);
    }
    return TIDE_OK;
}

tide_status tide_agent_result(tide_agent_run *run, tide_text result, bool failed, uint64_t took_ms,
                              tide_error *err)
{
    TIDE_ASSERT(tide_agent_next_of(run) == TIDE_AGENT_TOOL);
    TIDE_TRY(call_end(run, result, failed, took_ms, err));
    if (json_array_size(field(run, "waiting")) == 0)
        return results_end(run, err);
    return refuse_unknown(run, err);
}

/* ---- answers ---- */

/* The calls among the parts of an answer.  TIDE_INVALID: a part is not one. */
static tide_status calls_of(const json_t *parts, json_t *calls, tide_error *err)
{
    size_t i;
    json_t *part;
    json_array_foreach(parts, i, part)
    {
        json_t *call = json_object_get(part, "call");
        if (!json_is_object(part))
            return tide_error_set(err, TIDE_INVALID, "an answer has a part that is not an object");
        if (call != NULL && json_array_append(calls, call) != 0)
            return no_memory(err);
    }
    if (!calls_are_right(calls))
        return tide_error_set(err, TIDE_INVALID, "an answer calls a tool without id or arguments");
    return TIDE_OK;
}

/* An answer without calls is the last one. */
static tide_status ended_by(tide_agent_run *run, const json_t *answer, tide_error *err)
{
    const json_t *text = json_object_get(answer, "text");
    const char *stop = json_string_value(json_object_get(answer, "stop"));
    const tide_text said = {json_is_string(text) ? json_string_value(text) : "",
                            json_string_length(text)};
    if (stop != NULL && strcmp(stop, "refused") == 0)
        return tide_agent_end(run, TIDE_AGENT_FAILED,
                              said.bytes > 0 ? said : tide_text_of("the model refused"), err);
    if (stop != NULL && strcmp(stop, "length") == 0)
        return tide_agent_end(run, TIDE_AGENT_LIMIT,
                              said.bytes > 0 ? said : tide_text_of("its answer was cut"), err);
    return tide_agent_end(run, TIDE_AGENT_DONE, said, err);
}

static tide_status take(tide_agent_run *run, const json_t *answer, json_t *calls, tide_error *err)
{
    json_t *parts = json_object_get(answer, "parts");
    if (!json_is_array(parts))
        return tide_error_set(err, TIDE_INVALID, "an answer has no parts");
    TIDE_TRY(calls_of(parts, calls, err));
    const json_int_t iterations = (json_int_t)tide_agent_iterations(run) + 1;
    if (!message_add(run, "assistant", json_incref(parts)) ||
        !put(run, "iterations", json_integer(iterations)))
        return no_memory(err);
    if (json_array_size(calls) == 0)
        return ended_by(run, answer, err);
    if (!put(run, "waiting", json_incref(calls)))
        return no_memory(err);
    return refuse_unknown(run, err);
}

tide_status tide_agent_take(tide_agent_run *run, tide_text answer, tide_error *err)
{
    TIDE_ASSERT(tide_agent_next_of(run) == TIDE_AGENT_ASK);
    json_t *value = NULL;
    TIDE_TRY(tide_json_parse_stored(answer, &value, err));
    json_t *calls = json_array();
    const tide_status rc = calls != NULL ? take(run, value, calls, err) : no_memory(err);
    json_decref(calls);
    json_decref(value);
    return rc;
}
