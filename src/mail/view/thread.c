/* thread.c - the messages of a thread, one after the other. */
#include "mail/view/view.h"

struct walk {
    tide_archive *archive;
    tide_mem *mem;
    bool (*visit)(const struct tide_view *view, void *arg);
    void *arg;
    size_t count;
    bool more;
    tide_status rc;
    tide_error *err;
};

/* One message is in memory at a time. */
static bool walk_one(const struct tide_stored *stored, void *arg)
{
    struct walk *walk = arg;
    if (walk->count == TIDE_VIEW_THREAD_MAX) {
        walk->more = true;
        return false;
    }
    struct tide_view view;
    bool again = false;
    walk->rc = tide_view_open(walk->archive, stored, walk->mem, &view, walk->err);
    walk->count++;
    if (walk->rc == TIDE_OK)
        again = walk->visit(&view, walk->arg);
    tide_view_done(&view);
    return again;
}

static tide_status walk_thread(struct walk *walk, const struct tide_stored *stored)
{
    if (stored->thread_id[0] == '\0') { /* it belongs to no thread */
        (void)walk_one(stored, walk);
        return walk->rc;
    }
    const tide_status rc = tide_archive_thread(walk->archive, tide_text_of(stored->thread_id),
                                               walk_one, walk, walk->err);
    return rc == TIDE_OK ? walk->rc : rc;
}

tide_status tide_view_thread(tide_archive *archive, const struct tide_stored *stored, tide_mem *mem,
                             bool (*visit)(const struct tide_view *view, void *arg), void *arg,
                             bool *more_out, tide_error *err)
{
    struct walk walk = {
        .archive = archive, .mem = mem, .visit = visit, .arg = arg, .rc = TIDE_OK, .err = err};
    const tide_status rc = walk_thread(&walk, stored);
    if (rc == TIDE_OK && more_out != NULL)
        *more_out = walk.more;
    return rc;
}

static bool add_json(const struct tide_view *view, void *arg)
{
    tide_json *list = arg;
    tide_json one;
    tide_json_object(&one);
    tide_view_json(view, &one);
    tide_json_append(list, &one);
    return !list->failed;
}

tide_status tide_view_thread_json(tide_archive *archive, const struct tide_stored *stored,
                                  tide_mem *mem, tide_json *json, tide_error *err)
{
    tide_json list;
    tide_json_array(&list);
    struct walk walk = {
        .archive = archive, .mem = mem, .visit = add_json, .arg = &list, .rc = TIDE_OK, .err = err};
    const tide_status rc = walk_thread(&walk, stored);
    tide_json_set_cstr(json, "thread", stored->thread_id);
    tide_json_set(json, "messages", &list);
    tide_json_set_bool(json, "more", walk.more);
    return rc;
}
