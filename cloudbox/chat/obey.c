#include "cloudbox/chat/obey.h"

#include "base/check.h"
#include "cloudbox/chat/dialect.h"
#include "cloudbox/gate/http.h"

static const char *find(tide_text text, const char *piece)
{
    return text.bytes == 0 ? NULL : memmem(text.data, text.bytes, piece, strlen(piece));
}

static tide_text from(tide_text text, const char *at)
{
    return (tide_text){at, text.bytes - (size_t)(at - text.data)};
}

/* Takes the next order that begins with `verb` out of *text_io: what stands behind the verb. */
static bool next_order(tide_text *text_io, const char *verb, tide_text *order_out)
{
    const char *open = find(*text_io, verb);
    if (open == NULL)
        return false;
    const tide_text rest = from(*text_io, open + strlen(verb));
    const char *close = find(rest, "]]");
    *text_io = close == NULL ? TIDE_TEXT_NONE : from(rest, close + 2);
    if (close == NULL)
        return false;
    *order_out = (tide_text){rest.data, (size_t)(close - rest.data)};
    return true;
}

/* The n-th order of that verb in what others said.  The model's own words give it no orders. */
static bool order_at(const struct box_talk *talk, const char *verb, size_t n, tide_text *order_out)
{
    for (size_t i = 0; i < talk->turns_count; i++) {
        const struct box_turn *turn = &talk->turns[i];
        tide_text rest = turn->text;
        if (turn->role != BOX_TURN_USER && turn->role != BOX_TURN_RESULT)
            continue;
        while (next_order(&rest, verb, order_out))
            if (n-- == 0)
                return true;
    }
    return false;
}

static tide_text trim(tide_text text)
{
    while (text.bytes > 0 && text.data[0] == ' ')
        text = from(text, text.data + 1);
    while (text.bytes > 0 && text.data[text.bytes - 1] == ' ')
        text.bytes--;
    return text;
}

/* "key=value; key=value" */
static json_t *read_arguments(tide_text text)
{
    json_t *arguments = json_object();
    while (text.bytes > 0) {
        const char *end = find(text, ";");
        const tide_text pair =
            end == NULL ? text : (tide_text){text.data, (size_t)(end - text.data)};
        const char *equals = find(pair, "=");
        if (equals != NULL) {
            const tide_text key = trim((tide_text){pair.data, (size_t)(equals - pair.data)});
            const tide_text value = trim(from(pair, equals + 1));
            json_t *said = json_stringn(value.data, value.bytes);
            if (said != NULL) /* else it is no UTF-8 */
                json_object_setn_new(arguments, key.data, key.bytes, said);
        }
        text = end == NULL ? TIDE_TEXT_NONE : from(text, end + 1);
    }
    return arguments;
}

bool box_model_obey(const struct box_talk *talk, struct box_said *said)
{
    tide_text order;
    size_t calls = 0;
    for (size_t i = 0; i < talk->turns_count; i++)
        calls += talk->turns[i].role == BOX_TURN_CALL ? 1 : 0;
    if (talk->tools_count > 0 && order_at(talk, "[[call ", calls, &order)) {
        const char *blank = find(order, " ");
        const tide_text name = {order.data,
                                blank == NULL ? order.bytes : (size_t)(blank - order.data)};
        if (box_tool_name_valid(name)) {
            said->calls[0].name = name;
            said->calls[0].arguments =
                read_arguments(blank == NULL ? TIDE_TEXT_NONE : from(order, blank + 1));
            said->calls_count = 1;
            return true;
        }
    }
    if (!order_at(talk, "[[say ", 0, &order))
        return false;
    for (size_t i = 0; i < order.bytes; i++)
        box_add(&said->text, order.data[i] == '\'' ? "\"" : &order.data[i], 1);
    return true;
}
