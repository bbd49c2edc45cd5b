#include "cloudbox/chat/model.h"

#include "base/check.h"
#include "base/json.h"
#include "cloudbox/gate/http.h"

#include <ctype.h>
#include <stdlib.h>

void box_said_init(struct box_said *said)
{
    *said = (struct box_said){0};
    tide_buf_init(&said->text, tide_mem_heap(), BOX_SAID_BYTES_MAX);
}

void box_said_done(struct box_said *said)
{
    for (size_t i = 0; i < said->calls_count; i++)
        json_decref(said->calls[i].arguments);
    tide_buf_done(&said->text);
}

/* Everything the rules look at. */
struct view {
    const struct box_talk *talk;
    struct box_facts facts;
    tide_text request; /* what is wanted: the system's and the user's words around the mail */
    tide_text context; /* all of it */
    tide_text draft;
    size_t task;   /* the user turn that is being answered */
    size_t rounds; /* of tools since then */
};

/* ---- texts ---- */

static tide_text join(tide_arena *arena, const tide_text *texts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += texts[i].bytes + 1;
    char *to = tide_arena_take(arena, bytes + 1);
    TIDE_ASSERT(to != NULL);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (texts[i].bytes == 0)
            continue;
        memcpy(to + at, texts[i].data, texts[i].bytes);
        at += texts[i].bytes;
        to[at++] = '\n';
    }
    return (tide_text){to, at};
}

tide_text box_talk_text(const struct box_talk *talk)
{
    tide_text *texts = tide_arena_take(talk->arena, (talk->turns_count + 1) * sizeof(tide_text));
    TIDE_ASSERT(texts != NULL);
    texts[0] = talk->system;
    for (size_t i = 0; i < talk->turns_count; i++)
        texts[i + 1] = talk->turns[i].text;
    return join(talk->arena, texts, talk->turns_count + 1);
}

static void add_text(tide_buf *out, tide_text text)
{
    box_add(out, text.data == NULL ? "" : text.data, text.bytes);
}

/* ---- drafts ---- */

/* A short answer in the mail's language. */
static void write_draft(const struct view *view, tide_buf *out)
{
    static const struct {
        const char *language;
        const char *hello;
        const char *thanks;
        const char *asked; /* before the sentence that asks for something */
        const char *other;
        const char *bye;
    } words[] = {
        {"en", "Hello", "thank you for your message",
         "You asked: ", "I have read it and will come back to you shortly.", "Kind regards"},
        {"de", "Guten Tag", "vielen Dank für Ihre Nachricht", "Sie fragen: ",
         "Ich habe sie gelesen und melde mich in Kürze.", "Mit freundlichen Grüßen"},
        {"cs", "Dobrý den", "děkuji za zprávu", "Ptáte se: ", "Přečetl jsem ji a brzy se ozvu.",
         "S pozdravem"},
        {"fr", "Bonjour", "merci pour votre message",
         "Vous demandez : ", "Je l'ai lu et je reviens vers vous rapidement.", "Cordialement"},
        {"es", "Hola", "gracias por su mensaje",
         "Usted pregunta: ", "Lo he leído y le responderé en breve.", "Saludos"},
    };
    const struct box_facts *facts = &view->facts;
    size_t use = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].language, facts->language) == 0)
            use = i;
    box_add_cstr(out, words[use].hello);
    if (facts->name.bytes > 0 && facts->is_mail) {
        box_add_cstr(out, " ");
        add_text(out, facts->name);
    }
    box_add_cstr(out, ",\n\n");
    box_add_cstr(out, words[use].thanks);
    if (facts->subject.bytes > 0) {
        box_add_cstr(out, " (");
        add_text(out, facts->subject);
        box_add_cstr(out, ")");
    }
    box_add_cstr(out, ". ");
    const bool brief = box_text_has_word(view->request, "short") ||
                       box_text_has_word(view->request, "shorter") ||
                       box_text_has_word(view->request, "brief");
    if (facts->tasks.count > 0 && !brief) {
        box_add_cstr(out, words[use].asked);
        add_text(out, facts->tasks.items[0]);
        box_add_cstr(out, " ");
    }
    box_add_cstr(out, words[use].other);
    box_add_cstr(out, "\n\n");
    box_add_cstr(out, words[use].bye);
}

/* ---- looking at the conversation ---- */

static tide_text make_draft(const struct view *view)
{
    tide_auto_buf text = tide_buf_heap(1 << 20);
    write_draft(view, &text);
    const char *copy = tide_arena_copy(view->talk->arena, tide_buf_cstr(&text), text.bytes);
    TIDE_ASSERT(copy != NULL);
    const tide_text draft = {copy, text.bytes};
    return draft;
}

/* The last user turn is the task; the mail may stand in an earlier one. */
static void look(const struct box_talk *talk, struct view *view)
{
    *view = (struct view){.talk = talk};
    for (size_t i = 0; i < talk->turns_count; i++)
        if (talk->turns[i].role == BOX_TURN_USER && talk->turns[i].text.bytes > 0)
            view->task = i;
    bool calls_before = false;
    for (size_t i = view->task; i < talk->turns_count; i++) {
        const bool call = talk->turns[i].role == BOX_TURN_CALL;
        if (call && !calls_before)
            view->rounds++;
        calls_before = call;
    }
    tide_text parts[3] = {talk->system, TIDE_TEXT_NONE, TIDE_TEXT_NONE};
    const tide_text task = talk->turns_count == 0 ? TIDE_TEXT_NONE : talk->turns[view->task].text;
    box_facts_read(task, talk->arena, &view->facts);
    parts[1] = view->facts.around;
    for (size_t i = view->task; !view->facts.is_mail && i-- > 0;) {
        if (talk->turns[i].role != BOX_TURN_USER)
            continue;
        struct box_facts earlier;
        box_facts_read(talk->turns[i].text, talk->arena, &earlier);
        if (!earlier.is_mail)
            continue;
        view->facts = earlier;
        parts[2] = earlier.around;
    }
    view->request = join(talk->arena, parts, 3);
    view->context = box_talk_text(talk);
    if (view->context.bytes > BOX_TALK_CONTEXT_BYTES_MAX)
        view->context.bytes = BOX_TALK_CONTEXT_BYTES_MAX;
    view->draft = make_draft(view);
}

static struct box_fill fill_of(const struct view *view)
{
    return (struct box_fill){&view->facts, view->context, view->draft, view->talk->arena};
}

/* ---- tools ---- */

typedef enum deed {
    DEED_OTHER,
    DEED_READ,
    DEED_DRAFT,
    DEED_LABEL,
    DEED_ESCALATE,
    DEED_NOTE,
    DEED_DANGER,
} deed;

/* What a tool does, by the words of its name, else of its description. */
static deed deed_of(const struct box_tool *tool)
{
    static const struct {
        deed deed;
        const char *word;
    } words[] = {
        {DEED_DANGER, "send"},    {DEED_DANGER, "delete"},     {DEED_DANGER, "trash"},
        {DEED_DANGER, "forward"}, {DEED_DANGER, "transfer"},   {DEED_DANGER, "refund"},
        {DEED_DANGER, "execute"}, {DEED_ESCALATE, "escalate"}, {DEED_ESCALATE, "handoff"},
        {DEED_DRAFT, "draft"},    {DEED_DRAFT, "compose"},     {DEED_DRAFT, "reply"},
        {DEED_LABEL, "label"},    {DEED_LABEL, "classif"},     {DEED_LABEL, "categor"},
        {DEED_LABEL, "triage"},   {DEED_LABEL, "tag"},         {DEED_READ, "search"},
        {DEED_READ, "find"},      {DEED_READ, "lookup"},       {DEED_READ, "look_up"},
        {DEED_READ, "read"},      {DEED_READ, "get"},          {DEED_READ, "fetch"},
        {DEED_READ, "list"},      {DEED_NOTE, "extract"},      {DEED_NOTE, "contact"},
        {DEED_NOTE, "task"},      {DEED_NOTE, "todo"},         {DEED_NOTE, "record"},
        {DEED_NOTE, "save"},      {DEED_NOTE, "summar"},
    };
    const tide_text texts[2] = {tool->name, tool->description};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (box_text_has(texts[t], words[i].word))
                return words[i].deed;
    return DEED_OTHER;
}

static bool was_called(const struct view *view, const struct box_tool *tool)
{
    for (size_t i = view->task; i < view->talk->turns_count; i++)
        if (view->talk->turns[i].role == BOX_TURN_CALL &&
            tide_text_equal(view->talk->turns[i].text, tool->name))
            return true;
    return false;
}

/* How many words of the tool's name stand in what is wanted. */
static int request_hits(const struct view *view, const struct box_tool *tool)
{
    int hits = 0;
    size_t from = 0;
    for (size_t i = 0; i <= tool->name.bytes; i++) {
        if (i < tool->name.bytes && isalnum((unsigned char)tool->name.data[i]))
            continue;
        char word[64];
        const size_t bytes = i - from;
        if (bytes >= 4 && bytes < sizeof word) {
            memcpy(word, tool->name.data + from, bytes);
            word[bytes] = '\0';
            hits += box_text_has(view->request, word) ? 1 : 0;
        }
        from = i + 1;
    }
    return hits;
}

/* Above 0: worth calling. */
static int tool_score(const struct view *view, const struct box_tool *tool)
{
    if (was_called(view, tool))
        return -1000;
    const struct box_facts *facts = &view->facts;
    const bool reply = facts->scores[BOX_MAIL_REPLY] > 3 && !facts->automated;
    const bool urgent = facts->scores[BOX_MAIL_URGENT] > 3;
    int score = 2 * request_hits(view, tool);
    switch (deed_of(tool)) {
    case DEED_READ: /* before anything else, and only when asked */
        return facts->is_mail ? score + (reply ? 9 : -8) : score;
    case DEED_DRAFT:
        return score + (facts->is_mail ? (reply ? 6 : -4) : 0);
    case DEED_LABEL:
        return score + (facts->is_mail ? 5 : 0);
    case DEED_ESCALATE:
        return score + (urgent ? 7 : -8);
    case DEED_NOTE:
        return score + (facts->is_mail ? 3 : 0);
    case DEED_DANGER:
        return score - 40;
    case DEED_OTHER:
        break;
    }
    return score;
}

static const struct box_tool *best_tool(const struct view *view, int at_least,
                                        const struct box_tool *but)
{
    const struct box_tool *best = NULL;
    int most = at_least - 1;
    for (size_t i = 0; i < view->talk->tools_count; i++) {
        const struct box_tool *tool = &view->talk->tools[i];
        const int score = tool == but ? -2000 : tool_score(view, tool);
        if (score > most) {
            most = score;
            best = tool;
        }
    }
    return best;
}

static void call_tool(const struct view *view, const struct box_tool *tool, struct box_said *said)
{
    const struct box_fill fill = fill_of(view);
    json_t *arguments = tool->schema == NULL ? json_object() : box_schema_fill(&fill, tool->schema);
    if (!json_is_object(arguments)) { /* arguments always are an object */
        json_decref(arguments);
        arguments = json_object();
    }
    said->calls[said->calls_count].tool = tool;
    said->calls[said->calls_count].name = tool->name;
    said->calls[said->calls_count++].arguments = arguments;
}

/* Whether tools were called. */
static bool try_tools(const struct view *view, struct box_said *said)
{
    const struct box_talk *talk = view->talk;
    if (talk->tools_count == 0 || talk->choice == BOX_TOOL_NONE)
        return false;
    if (talk->choice == BOX_TOOL_NAMED) {
        call_tool(view, &talk->tools[talk->named], said);
        return true;
    }
    const bool must = talk->choice == BOX_TOOL_ANY;
    if (!must && view->rounds >= BOX_TALK_ROUNDS_MAX)
        return false;
    const struct box_tool *tool = best_tool(view, must ? -5000 : 1, NULL);
    if (tool == NULL)
        return false;
    call_tool(view, tool, said);
    /* Acts that do not depend on each other go together: a label and a draft. */
    const struct box_tool *other = best_tool(view, 4, tool);
    if (talk->parallel && other != NULL && deed_of(tool) != DEED_READ &&
        deed_of(other) != DEED_READ)
        call_tool(view, other, said);
    return true;
}

/* After the tools: what was done. */
static void write_result(const struct view *view, tide_buf *out)
{
    size_t failed = 0;
    size_t done = 0;
    for (size_t i = view->task; i < view->talk->turns_count; i++) {
        const struct box_turn *turn = &view->talk->turns[i];
        if (turn->role != BOX_TURN_RESULT)
            continue;
        if (turn->failed || box_text_has(turn->text, "\"error\""))
            failed++;
        else
            done++;
    }
    if (done > 0)
        box_add_cstr(out, "Done: ");
    else
        box_add_cstr(out, "I could not finish this: ");
    const char *comma = "";
    for (size_t i = view->task; i < view->talk->turns_count; i++)
        if (view->talk->turns[i].role == BOX_TURN_CALL) {
            box_add_cstr(out, comma);
            add_text(out, view->talk->turns[i].text);
            comma = ", ";
        }
    if (failed > 0)
        box_print(out, " (%zu failed)", failed);
    box_add_cstr(out, ". ");
    add_text(out, view->facts.summary);
}

/* ---- JSON without a schema ---- */

/* Keys that the instructions ask for: `"category": ...` in a template, or the
 * words of "{category, confidence}". */
static json_t *asked_keys(tide_text request)
{
    json_t *keys = json_array();
    for (size_t i = 0; i < request.bytes && json_array_size(keys) < 32; i++) {
        if (request.data[i] != '"')
            continue;
        size_t to = i + 1;
        while (to < request.bytes &&
               (isalnum((unsigned char)request.data[to]) || request.data[to] == '_'))
            to++;
        size_t colon = to + 1;
        while (colon < request.bytes && request.data[colon] == ' ')
            colon++;
        if (to > i + 1 && to - i < 60 && to < request.bytes && request.data[to] == '"' &&
            colon < request.bytes && request.data[colon] == ':')
            json_array_append_new(keys, json_stringn(request.data + i + 1, to - i - 1));
    }
    const char *open = request.bytes == 0 ? NULL : memchr(request.data, '{', request.bytes);
    if (json_array_size(keys) > 0 || open == NULL)
        return keys;
    const char *end = request.data + request.bytes;
    for (const char *at = open + 1; at < end && *at != '}' && json_array_size(keys) < 32;) {
        const char *from = at;
        while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
            at++;
        if (at > from && at - from < 60)
            json_array_append_new(keys, json_stringn(from, (size_t)(at - from)));
        while (at < end && *at != '}' && *at != ',')
            at++;
        while (at < end && *at != '}' && !isalnum((unsigned char)*at))
            at++;
    }
    return keys;
}

/* The category of all those named in the instructions that suits best. */
static tide_text asked_category(const struct view *view)
{
    tide_text best = tide_text_of(box_kind_name(box_facts_kind(&view->facts)));
    int most = -1;
    size_t from = 0;
    for (size_t i = 0; i <= view->request.bytes; i++) {
        const char c = i < view->request.bytes ? view->request.data[i] : ' ';
        if (isalnum((unsigned char)c) || c == '_')
            continue;
        const tide_text word = {view->request.data + from, i - from};
        const bool quoted = from > 0 && c == '"' && word.data[-1] == '"';
        from = i + 1;
        /* Single words of prose are no categories, unless nothing better is named: with
         * "something other than that" no category "other" is meant. */
        if (word.bytes < 3 || word.bytes > 40)
            continue;
        const bool compound = memchr(word.data, '_', word.bytes) != NULL;
        const int suit = box_facts_suit(&view->facts, word);
        const int score = suit < 0 ? -1 : suit * 2 + (compound || quoted ? 1 : 0);
        if (score > most) {
            most = score;
            best = word;
        }
    }
    return best;
}

static json_t *key_value(const struct view *view, const char *key)
{
    char folded[64];
    box_text_fold(tide_text_of(key), folded, sizeof folded);
    if (strstr(folded, "categor") != NULL || strstr(folded, "classif") != NULL ||
        strcmp(folded, "label") == 0)
        return box_json_text(asked_category(view));
    if (strstr(folded, "confidence") != NULL || strstr(folded, "score") != NULL) {
        if (box_text_has_word(view->request, "low") && box_text_has_word(view->request, "high"))
            return json_string("high");
        return json_real(0.9);
    }
    const struct box_fill fill = fill_of(view);
    const bool list = strstr(folded, "queries") != NULL || strstr(folded, "tasks") != NULL ||
                      strstr(folded, "contacts") != NULL || strstr(folded, "keywords") != NULL;
    json_t *schema = list ? json_pack("{s:s,s:{s:{s:s,s:{s:s}}}}", "type", "object", "properties",
                                      key, "type", "array", "items", "type", "string")
                          : json_pack("{s:s,s:{s:{s:s}}}", "type", "object", "properties", key,
                                      "type", "string");
    json_auto_t *object = box_schema_fill(&fill, schema);
    json_t *value = json_incref(json_object_get(object, key));
    json_decref(schema);
    return value != NULL ? value : json_null();
}

static void write_json(const json_t *value, tide_buf *out)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | BOX_JSON_REALS);
    TIDE_ASSERT(text != NULL);
    box_add_cstr(out, text);
    free(text);
}

static void write_keys(const struct view *view, tide_buf *out)
{
    json_auto_t *keys = asked_keys(view->request);
    json_auto_t *object = json_object();
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        if (json_object_get(object, key) == NULL)
            json_object_set_new(object, key, key_value(view, key));
    }
    if (json_array_size(keys) == 0) {
        json_object_set_new(object, "category", box_json_text(asked_category(view)));
        json_object_set_new(object, "summary", box_json_text(view->facts.summary));
    }
    write_json(object, out);
}

/* ---- words ---- */

static bool asks_for(const struct view *view, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        if (box_text_has(view->request, words[i]))
            return true;
    return false;
}

#define ASKS_FOR(view, ...) asks_for((view), (const char *const[]){__VA_ARGS__, NULL})

static void write_words(const struct view *view, tide_buf *out)
{
    const struct box_facts *facts = &view->facts;
    if (ASKS_FOR(view, "search quer", "queries")) {
        /* A list of searches, one a line: the sender, then the subject's words. */
        if (facts->email.bytes > 0) {
            box_add_cstr(out, "from:");
            add_text(out, facts->email);
            box_add_cstr(out, "\n");
        }
        for (size_t i = 0; i < facts->keywords.count && i < 2; i++) {
            add_text(out, facts->keywords.items[i]);
            box_add_cstr(out, "\n");
        }
    } else if (ASKS_FOR(view, "draft", "reply", "write an answer", "respond to", "rewrite")) {
        add_text(out, view->draft);
    } else if (ASKS_FOR(view, "classify", "categor", "which label")) {
        add_text(out, asked_category(view));
    } else if (facts->is_mail || ASKS_FOR(view, "summar")) {
        if (facts->name.bytes > 0 && facts->is_mail) {
            add_text(out, facts->name);
            box_add_cstr(out, ": ");
        }
        add_text(out, facts->summary);
    } else {
        box_add_cstr(out, "You said: ");
        add_text(out, facts->summary.bytes > 0 ? facts->summary : facts->body);
    }
    if (out->bytes == 0)
        box_add_cstr(out, "I have nothing to add.");
}

/* ---- the whole ---- */

/* Some sentence says "json", and not of what it is given. */
static bool asks_for_json(tide_text request)
{
    while (request.bytes > 0) {
        size_t end = 0;
        while (end < request.bytes && request.data[end] != '.' && request.data[end] != '\n')
            end++;
        const tide_text sentence = {request.data, end};
        if (box_text_has_word(sentence, "json") && !box_text_has_word(sentence, "message is"))
            return true;
        const size_t step = end < request.bytes ? end + 1 : end;
        request = (tide_text){request.data + step, request.bytes - step};
    }
    return false;
}

void box_model_answer(const struct box_talk *talk, struct box_said *said)
{
    struct view view;
    look(talk, &view);
    if (try_tools(&view, said))
        return;
    const bool after_tools =
        talk->turns_count > 0 && talk->turns[talk->turns_count - 1].role == BOX_TURN_RESULT;
    if (talk->schema != NULL) {
        const struct box_fill fill = fill_of(&view);
        json_auto_t *value = box_schema_fill(&fill, talk->schema);
        write_json(value, &said->text);
    } else if (after_tools) {
        write_result(&view, &said->text);
    } else if (talk->wants_json || asks_for_json(view.request)) {
        write_keys(&view, &said->text);
    } else {
        write_words(&view, &said->text);
    }
}

uint64_t box_said_bytes(const struct box_said *said)
{
    uint64_t bytes = said->text.bytes;
    for (size_t i = 0; i < said->calls_count; i++)
        bytes += said->calls[i].name.bytes +
                 json_dumpb(said->calls[i].arguments, NULL, 0, JSON_COMPACT | BOX_JSON_REALS);
    return bytes;
}

static void cut_text(tide_buf *text, uint64_t bytes)
{
    if (bytes >= text->bytes)
        return;
    while (bytes > 0 && ((unsigned char)text->data[bytes] & 0xc0) == 0x80)
        bytes--; /* not inside a character */
    text->bytes = (size_t)bytes;
    text->data[bytes] = '\0';
}

void box_model_limit(const struct box_talk *talk, struct box_said *said)
{
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < talk->stops_count; i++) {
        const char *at = talk->stops[i].bytes == 0 || said->text.bytes == 0
                             ? NULL
                             : memmem(said->text.data, said->text.bytes, talk->stops[i].data,
                                      talk->stops[i].bytes);
        if (at != NULL && (size_t)(at - said->text.data) < first) {
            first = (size_t)(at - said->text.data);
            said->stop = talk->stops[i];
        }
    }
    if (first != SIZE_MAX)
        cut_text(&said->text, first);
    if (talk->tokens_max > 0 && box_tokens(box_said_bytes(said)) > talk->tokens_max) {
        said->cut = true;
        said->stop = TIDE_TEXT_NONE;
        cut_text(&said->text, talk->tokens_max * 4);
    }
}
