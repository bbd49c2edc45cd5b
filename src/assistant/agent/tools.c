/* tools.c - the table of tools that act in the mailbox, and the user's own (tools.h). */
#include "assistant/agent/tools.h"

#include "base/check.h"

#include <string.h>

#define TEXT_FIELD(name, says) "\"" name "\":{\"type\":\"string\",\"description\":\"" says "\"}"
#define OBJECT(fields, required)                                                                   \
    "{\"type\":\"object\",\"properties\":{" fields "},\"required\":[" required                     \
    "],\"additionalProperties\":false}"

static const struct {
    const char *description;
    const char *schema;
} builtins[TIDE_BUILTINS] = {
    [TIDE_BUILTIN_SEARCH_ARCHIVE] =
        {"Searches the user's mail. Returns up to ten messages with their threads and snippets.",
         OBJECT(TEXT_FIELD("query", "words, or operators as in Gmail: from: subject: after:"),
                "\"query\"")},
    [TIDE_BUILTIN_READ_THREAD] = {"Returns the messages of a thread as text.",
                                  OBJECT(TEXT_FIELD("thread",
                                                    "of a search; absent: the thread at hand"),
                                         "")},
    [TIDE_BUILTIN_CREATE_DRAFT] =
        {"Writes a draft of a reply in the thread at hand. The user reads it and sends it.",
         OBJECT(TEXT_FIELD("text", "the reply, without a quotation"), "\"text\"")},
    [TIDE_BUILTIN_SEND_REPLY] =
        {"Sends a reply to the people of the thread at hand. It is sent at once, without a review.",
         OBJECT(TEXT_FIELD("text", "the reply, without a quotation"), "\"text\"")},
    [TIDE_BUILTIN_ADD_LABEL] = {"Adds one of the user's labels to the thread at hand.",
                                OBJECT(TEXT_FIELD("label", "its name; it must exist"),
                                       "\"label\"")},
    [TIDE_BUILTIN_ESCALATE] = {"Ends the work and asks the user to look at the thread.",
                               OBJECT(TEXT_FIELD("reason", "what the user has to decide"),
                                      "\"reason\"")},
};

static bool has_builtin(const struct tide_profile *profile, tide_builtin builtin)
{
    return (profile->builtins & (1u << builtin)) != 0 &&
           (builtin != TIDE_BUILTIN_SEND_REPLY || profile->may_send); /* AGT1 */
}

/* ---- for the model ---- */

static bool tool_add(json_t *tools, tide_text name, tide_text description, tide_text schema)
{
    json_t *object = json_loadb(schema.data, schema.bytes, 0, NULL);
    if (object == NULL)
        return false;
    json_t *tool = json_pack("{s:s%, s:s%, s:o}", "name", name.data, name.bytes, "description",
                             description.data, description.bytes, "schema", object);
    return tool != NULL && json_array_append_new(tools, tool) == 0;
}

tide_status tide_agent_tools(const struct tide_assistant_config *config,
                             const struct tide_profile *profile, json_t **tools_out,
                             tide_error *err)
{
    json_t *tools = json_array();
    bool good = tools != NULL;
    for (size_t i = 0; good && i < TIDE_BUILTINS; i++)
        if (has_builtin(profile, (tide_builtin)i))
            good =
                tool_add(tools, tide_text_of(tide_builtin_name((tide_builtin)i)),
                         tide_text_of(builtins[i].description), tide_text_of(builtins[i].schema));
    for (size_t i = 0; good && i < profile->tools_count; i++) {
        TIDE_ASSERT(profile->tools[i] < config->tools_count); /* CFG2 */
        const struct tide_assistant_tool *own = &config->tools[profile->tools[i]];
        good = tool_add(tools, own->name, own->description, own->schema);
    }
    if (!good) {
        json_decref(tools);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the tools of an agent");
    }
    *tools_out = tools;
    return TIDE_OK;
}

/* ---- for a name ---- */

bool tide_agent_tool(const struct tide_assistant_config *config, const struct tide_profile *profile,
                     tide_text name, struct tide_agent_tool *tool_out)
{
    for (size_t i = 0; i < TIDE_BUILTINS; i++)
        if (has_builtin(profile, (tide_builtin)i) &&
            tide_text_equal(name, tide_text_of(tide_builtin_name((tide_builtin)i)))) {
            *tool_out = (struct tide_agent_tool){NULL, (tide_builtin)i};
            return true;
        }
    for (size_t i = 0; i < profile->tools_count; i++) {
        const struct tide_assistant_tool *own = &config->tools[profile->tools[i]];
        if (tide_text_equal(name, own->name)) {
            *tool_out = (struct tide_agent_tool){own, TIDE_BUILTINS};
            return true;
        }
    }
    return false;
}
