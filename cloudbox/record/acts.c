#include "cloudbox/record/acts.h"

#include "base/check.h"

void box_acts_init(struct box_acts *acts)
{
    *acts = (struct box_acts){.list = NULL};
    tide_map_init(&acts->index, tide_mem_heap());
}

void box_acts_done(struct box_acts *acts)
{
    tide_map_done(&acts->index);
    tide_mem_free(tide_mem_heap(), acts->list, acts->capacity * sizeof *acts->list);
    acts->list = NULL;
    acts->count = acts->capacity = 0;
}

/* The key of others: a map has no key 0. */
static uint64_t key_of(uint64_t thread_id)
{
    return thread_id == 0 ? UINT64_MAX : thread_id;
}

void box_acts_add(struct box_acts *acts, uint64_t thread_id, box_act act)
{
    uint32_t at = 0;
    TIDE_ASSERT(act < BOX_ACTS);
    if (!tide_map_get(&acts->index, key_of(thread_id), &at)) {
        if (acts->count >= BOX_ACTS_THREADS_MAX && thread_id != 0) { /* BACT2 */
            box_acts_add(acts, 0, act);
            return;
        }
        TIDE_ASSERT(TIDE_GROW(acts->list, acts->capacity, acts->count + 1, UINT32_MAX));
        at = (uint32_t)acts->count++;
        acts->list[at] = (struct box_acts_thread){.thread_id = thread_id};
        TIDE_ASSERT(tide_map_put(&acts->index, key_of(thread_id), at));
    }
    acts->list[at].counts[act]++;
}

json_t *box_acts_json(const struct box_acts *acts,
                      void (*name)(uint64_t thread_id, char name_out[BOX_ACTS_NAME_BYTES]))
{
    static const char *const names[BOX_ACTS] = {
        [BOX_ACT_LABELS] = "labels",   [BOX_ACT_TRASHED] = "trashed",
        [BOX_ACT_DELETED] = "deleted", [BOX_ACT_DRAFTED] = "drafted",
        [BOX_ACT_SENT] = "sent",       [BOX_ACT_INSERTED] = "inserted"};
    json_t *all = json_object();
    for (size_t i = 0; i < acts->count; i++) {
        const struct box_acts_thread *thread = &acts->list[i];
        char id[BOX_ACTS_NAME_BYTES] = "others";
        if (thread->thread_id != 0)
            name(thread->thread_id, id);
        json_t *object = json_object();
        for (unsigned act = 0; act < BOX_ACTS; act++)
            if (thread->counts[act] > 0)
                json_object_set_new(object, names[act], json_integer(thread->counts[act]));
        json_object_set_new(all, id, object);
    }
    return all;
}
