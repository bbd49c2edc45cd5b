/* outside.h - runs a tool of the user's own (J15): a command, or an HTTP endpoint.
 *
 * A command gets the arguments as JSON on its standard input, and its output is the result.  An
 * endpoint gets them as the body of a POST, or as the query of a GET.
 *
 * Invariants:
 *   OUT1  a command sees an environment of PATH, LANG, HOME=/ and TIDEMARK_TOOL, and no file of this
 *         process (world/command.h CMD1): no secret of the user's.
 *   OUT2  an endpoint is exactly the URL of the configuration: no redirect is followed, and no header
 *         has a secret.
 *   OUT3  time and output are limited by the tool's settings.
 *   OUT4  what goes wrong with a tool is its result, {"error":".."}, and no failure of the run.
 */
#ifndef TIDE_ASSISTANT_AGENT_OUTSIDE_H
#define TIDE_ASSISTANT_AGENT_OUTSIDE_H

#include "assistant/config/config.h"
#include "base/json.h"
#include "world/world.h"

/* Appends the result.  `arguments` is an object.  TIDE_CANCELED, TIDE_STOPPED, TIDE_NO_MEMORY: there
 * is none. */
tide_status tide_agent_outside(tide_world *world, const struct tide_assistant_tool *tool,
                               const json_t *arguments, const tide_cancel *cancel, tide_buf *result,
                               bool *failed_out, tide_error *err);

/* Appends {"error":TEXT}. */
tide_status tide_agent_error(tide_text text, tide_buf *result);

#endif
