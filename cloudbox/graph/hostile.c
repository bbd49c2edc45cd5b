/* hostile.c - what a service should never say: names that lead elsewhere, that no disk takes or that are a client's own,
 * and times that are none.  Which one an item gets is a function of its number, so that delta, lists and
 * the item itself agree, and a drive of a hundred thousand such names costs nothing. */
#include "base/check.h"
#include "base/json.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum { LONG_BYTES_MAX = 1500, SET = 64 };

/* '#' is the item's number, '^' makes the name long: the number after it says how many bytes the letter before it
 * fills. */
static const char *const refused[] = {
    "..",
    ".",
    "../x#",
    "../../../../../../../../tmp/x#",
    "a/b#",
    "/etc/x#",
    "x#/",
    "x#/../../y",
    ".tidemark-root",
    ".tidemark-trash",
    ".tidemark-x#.partial",
    ".tidemark-x#.old",
    ".TIDEMARK-ROOT",
    "x^256",
    "\xe2\x82\xac^258",
    "\xe2\x82\xac^765",
    "x^1500",
};

static const char *const odd[] = {
    "..\\x#",
    "C:x#",
    "x#\nsecond line",
    "x#\ttab",
    "\x01x#",
    "x#\x7f",
    "x#\xc2\x85",
    "CON",
    "desktop.ini",
    "~$x#",
    "x# ",
    " x#",
    "x#.",
    "x#_vti_",
    "$(touch x#)",
    "`touch x#`",
    "-rf x#",
    "%2e%2e%2fx#",
    "x#%00y",
    "\xe2\x80\xae"
    "txt.x#",         /* right to left */
    "\xef\xbb\xbfx#", /* a byte order mark */
    "\xe2\x88\x95"
    "etc x#",                                 /* a sign like a slash */
    "\xef\xbc\x8e\xef\xbc\x8e\xef\xbc\x8fx#", /* wide dots and a wide slash */
    "tidemark-move-notes #",
    "x^255",
    "\xe2\x82\xac^255",
    "\xf0\x9f\x8c\x8a^252",
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* The letter that is there already, until the name has so many bytes. */
static void fill(tide_buf *name, const char *bytes_wanted)
{
    char letter[8];
    size_t wanted = 0;
    const size_t bytes = name->bytes;
    TIDE_ASSERT(bytes > 0 && bytes <= sizeof letter);
    memcpy(letter, name->data, bytes); /* the buffer may move */
    for (; *bytes_wanted >= '0' && *bytes_wanted <= '9'; bytes_wanted++)
        wanted = wanted * 10 + (size_t)(*bytes_wanted - '0');
    while (name->bytes + bytes <= wanted)
        box_add(name, letter, bytes);
}

static void write_name(const char *form, uint32_t slot, tide_buf *name)
{
    for (; *form != '\0' && *form != '^'; form++) {
        if (*form == '#')
            box_print(name, "%08" PRIx32, slot);
        else
            box_add(name, form, 1);
    }
    if (*form == '^')
        fill(name, form + 1);
}

/* Of sixty-four files three have an odd name and one its own; the names of all others are refused.
 * Few folders are hostile: what is below them would be refused with them.  NULL: its own name. */
static const char *form_of(uint32_t slot, bool folder)
{
    const uint32_t turn = slot / SET, at = slot % SET;
    if (folder)
        return at == 0 ? refused[turn % COUNT(refused)] : at == 1 ? odd[turn % COUNT(odd)] : NULL;
    if (at == 0)
        return NULL;
    if (at == 4 && turn % 8 == 0)
        return ""; /* few: a client asks for each of them */
    return at < 4 ? odd[(3 * turn + at) % COUNT(odd)] : refused[slot % COUNT(refused)];
}

static uint32_t slot_of(const struct box_call *call, const json_t *item)
{
    const char *id = json_string_value(json_object_get(item, "id"));
    const box_drive *drive = call->user == NULL ? NULL : box_user_drive(call->user);
    return id == NULL || drive == NULL ? BOX_ITEM_NONE : box_drive_find(drive, tide_text_of(id));
}

static void rename_item(json_t *item, uint32_t slot)
{
    const bool folder = json_object_get(item, "folder") != NULL;
    const char *form = form_of(slot, folder);
    if (form == NULL || json_object_get(item, "name") == NULL)
        return;
    tide_auto_buf name = tide_buf_heap(LONG_BYTES_MAX + 100);
    write_name(form, slot, &name);
    json_object_set_new(item, "name", json_stringn(tide_buf_cstr(&name), name.bytes));
}

/* Times of a file that are absent, null, before all time, beyond all time, or not a time. */
static void change_times(json_t *item, uint32_t slot)
{
    static const char *const times[] = {"0001-01-01T00:00:00Z",
                                        "9999-12-31T23:59:59Z",
                                        "1601-01-01T00:00:00Z",
                                        "yesterday",
                                        "",
                                        NULL};
    if (json_object_get(item, "fileSystemInfo") == NULL)
        return;
    const size_t at = slot % (COUNT(times) + 1);
    if (at == COUNT(times)) {
        json_object_set_new(item, "fileSystemInfo", json_null());
        return;
    }
    json_t *time = times[at] == NULL ? json_null() : json_string(times[at]);
    json_object_set_new(
        item, "fileSystemInfo",
        json_pack("{s:O,s:o}", "createdDateTime", time, "lastModifiedDateTime", time));
}

/* ---- answers ---- */

/* The items of a page, or the one item that the answer is. */
static void change_all(struct box_call *call, void (*change)(json_t *item, uint32_t slot))
{
    struct box_answer *answer = call->answer;
    json_t *value = json_loadb(tide_buf_cstr(&answer->body), answer->body.bytes, 0, NULL);
    json_t *items = json_object_get(value, "value");
    const size_t count = json_is_array(items) ? json_array_size(items) : 1;
    bool changed = false;
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_is_array(items) ? json_array_get(items, i) : value;
        const uint32_t slot = slot_of(call, item);
        if (slot == BOX_ITEM_NONE || slot == BOX_ITEM_ROOT)
            continue;
        change(item, slot);
        changed = true;
    }
    if (changed)
        box_answer_json(answer, answer->status, json_incref(value), false);
    json_decref(value);
}

void box_graph_hostile_names(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    change_all(call, rename_item);
}

void box_graph_odd_times(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    change_all(call, change_times);
}
