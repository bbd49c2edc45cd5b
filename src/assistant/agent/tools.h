/* tools.h - the tools of a profile (J15): what the model is told of them, and which one a name means.
 *
 * Pure.  The tools that act in the mailbox take no thread, address or message from the model: they
 * act in the thread of the run, so that no text in a mail can turn them on something else.
 *
 * Invariants:
 *   AGT1  a name means a tool only if the profile lists it; send_reply only if it may send (CFG4).
 *   AGT2  what tide_agent_tools() lists and what tide_agent_tool() finds is the same.
 */
#ifndef TIDE_ASSISTANT_AGENT_TOOLS_H
#define TIDE_ASSISTANT_AGENT_TOOLS_H

#include "assistant/config/config.h"
#include "base/json.h"

struct tide_agent_tool {
    const struct tide_assistant_tool *own; /* of the user's own; NULL: `builtin` */
    tide_builtin builtin;
};

/* [{"name","description","schema"}], as in cloud/chat/talk.h.  The caller owns it. */
tide_status tide_agent_tools(const struct tide_assistant_config *config,
                             const struct tide_profile *profile, json_t **tools_out,
                             tide_error *err);
/* false: the profile has no such tool. */
bool tide_agent_tool(const struct tide_assistant_config *config, const struct tide_profile *profile,
                     tide_text name, struct tide_agent_tool *tool_out);

#endif
