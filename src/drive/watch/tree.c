#include "drive/watch/tree.h"

#include "base/check.h"
#include "base/hash.h"
#include "drive/local/scan.h"
#include "world/folder.h"

#include <string.h>

enum { ROOT = 1, PATH_BYTES_MAX = 64 << 10, NAMES_BYTES_MAX = 64 << 20 };

/* A watched folder; 0 in a link: none. */
struct node {
    char *name;          /* terminated; NULL: the root, or a free node */
    uint32_t name_bytes; /* */
    int id;              /* of its watch */
    uint32_t parent;
    uint32_t first, next, prev; /* its first child; brothers, also the list of free nodes */
    uint32_t same;              /* the next one whose place has the same hash */
};

struct tide_drive_tree {
    tide_mem *mem;
    const char *root;
    const tide_ignore *ignore;
    tide_dir_watch *watch;
    struct tide_entry root_entry;
    struct node *nodes; /* [0] is not used, [ROOT] is the root */
    size_t nodes_count, nodes_room;
    size_t watched;
    uint32_t free_first;
    tide_map by_id;    /* watch, plus 1, to node */
    tide_map by_place; /* hash of parent and name to the first node */
    uint32_t *todo;    /* folders that are watched and not listed yet */
    size_t todo_count, todo_room;
    tide_buf names; /* of the folder that is listed, each with a NUL */
    tide_buf path;
    tide_drive_tree_state state;
    tide_error why;
};

/* ---- places ---- */

static uint64_t place_key(uint32_t parent, tide_text name)
{
    const tide_text number = {(const char *)&parent, sizeof parent};
    const uint64_t hash = tide_hash(tide_hash(TIDE_HASH_START, number), name);
    return hash == 0 ? 1 : hash;
}

static tide_text name_of(const struct node *node)
{
    return (tide_text){node->name, node->name_bytes};
}

/* 0: it is not watched. */
static uint32_t child_of(const tide_drive_tree *tree, uint32_t parent, tide_text name)
{
    uint32_t at = 0;
    if (!tide_map_get(&tree->by_place, place_key(parent, name), &at))
        return 0;
    while (at != 0 &&
           !(tree->nodes[at].parent == parent && tide_text_equal(name_of(&tree->nodes[at]), name)))
        at = tree->nodes[at].same;
    return at;
}

static bool place_put(tide_drive_tree *tree, uint32_t at)
{
    struct node *node = &tree->nodes[at];
    const uint64_t key = place_key(node->parent, name_of(node));
    node->same = 0;
    (void)tide_map_get(&tree->by_place, key, &node->same);
    return tide_map_put(&tree->by_place, key, at);
}

static void place_remove(tide_drive_tree *tree, uint32_t at)
{
    const uint64_t key = place_key(tree->nodes[at].parent, name_of(&tree->nodes[at]));
    uint32_t before = 0;
    if (!tide_map_get(&tree->by_place, key, &before))
        return;
    if (before != at) {
        while (tree->nodes[before].same != at)
            before = tree->nodes[before].same;
        tree->nodes[before].same = tree->nodes[at].same;
    } else if (tree->nodes[at].same == 0) {
        (void)tide_map_remove(&tree->by_place, key);
    } else {
        (void)tide_map_put(&tree->by_place, key, tree->nodes[at].same); /* replaces: no memory */
    }
}

/* The path of a folder and of an entry in it; an empty name: of the folder itself. */
static tide_status path_set(tide_drive_tree *tree, uint32_t at, tide_text name)
{
    size_t bytes = 0;
    for (uint32_t up = at; up != ROOT; up = tree->nodes[up].parent)
        bytes += tree->nodes[up].name_bytes + 1u;
    tide_buf_clear(&tree->path);
    char *out = tide_buf_reserve(&tree->path, bytes + name.bytes);
    if (out == NULL)
        return TIDE_FULL;
    size_t end = bytes;
    for (uint32_t up = at; up != ROOT; up = tree->nodes[up].parent) {
        out[--end] = '/';
        end -= tree->nodes[up].name_bytes;
        memcpy(out + end, tree->nodes[up].name, tree->nodes[up].name_bytes);
    }
    if (name.bytes > 0)
        memcpy(out + bytes, name.data, name.bytes);
    tree->path.bytes = bytes + name.bytes - (name.bytes == 0 && bytes > 0 ? 1 : 0);
    out[tree->path.bytes] = '\0';
    return TIDE_OK;
}

/* ---- nodes ---- */

static uint32_t node_new(tide_drive_tree *tree)
{
    const uint32_t at = tree->free_first;
    if (at != 0) {
        tree->free_first = tree->nodes[at].next;
        return at;
    }
    if (!TIDE_GROW_IN(tree->mem, tree->nodes, tree->nodes_room, tree->nodes_count + 1,
                      TIDE_DRIVE_TREE_FOLDERS_MAX))
        return 0;
    return (uint32_t)tree->nodes_count++;
}

static void node_free(tide_drive_tree *tree, uint32_t at)
{
    struct node *node = &tree->nodes[at];
    if (node->name != NULL)
        tide_mem_free(tree->mem, node->name, node->name_bytes + 1u);
    *node = (struct node){.next = tree->free_first};
    tree->free_first = at;
}

static void unlink_node(tide_drive_tree *tree, uint32_t at)
{
    const struct node *node = &tree->nodes[at];
    if (node->prev != 0)
        tree->nodes[node->prev].next = node->next;
    else
        tree->nodes[node->parent].first = node->next;
    if (node->next != 0)
        tree->nodes[node->next].prev = node->prev;
}

static void release(tide_drive_tree *tree, uint32_t at)
{
    tide_dir_watch_remove(tree->watch, tree->nodes[at].id);
    (void)tide_map_remove(&tree->by_id, (uint64_t)tree->nodes[at].id + 1);
    place_remove(tree, at);
    unlink_node(tree, at);
    node_free(tree, at);
    tree->watched--;
}

/* Forgets a folder and all below it, the deepest first. */
static void drop(tide_drive_tree *tree, uint32_t top)
{
    TIDE_ASSERT(top > ROOT);
    for (uint32_t at = top;;) {
        while (tree->nodes[at].first != 0)
            at = tree->nodes[at].first;
        const uint32_t up = tree->nodes[at].parent, done = at;
        release(tree, at);
        if (done == top)
            return;
        at = up;
    }
}

/* TIDE_NO_MEMORY: nothing changed. */
static tide_status node_add(tide_drive_tree *tree, uint32_t parent, tide_text name, int id)
{
    const uint32_t at = node_new(tree);
    if (at == 0)
        return TIDE_NO_MEMORY;
    struct node *node = &tree->nodes[at];
    *node = (struct node){.id = id, .parent = parent, .name_bytes = (uint32_t)name.bytes};
    node->name = tide_mem_new(tree->mem, name.bytes + 1);
    if (node->name == NULL ||
        !TIDE_GROW_IN(tree->mem, tree->todo, tree->todo_room, tree->todo_count + 1,
                      TIDE_DRIVE_TREE_FOLDERS_MAX) ||
        !tide_map_put(&tree->by_id, (uint64_t)id + 1, at)) {
        node_free(tree, at);
        return TIDE_NO_MEMORY;
    }
    memcpy(node->name, name.data, name.bytes);
    if (!place_put(tree, at)) {
        (void)tide_map_remove(&tree->by_id, (uint64_t)id + 1);
        node_free(tree, at);
        return TIDE_NO_MEMORY;
    }
    node->next = tree->nodes[parent].first;
    if (node->next != 0)
        tree->nodes[node->next].prev = at;
    tree->nodes[parent].first = at;
    tree->todo[tree->todo_count++] = at;
    tree->watched++;
    return TIDE_OK;
}

/* ---- walking ---- */

static void incomplete(tide_drive_tree *tree, const tide_error *why)
{
    if (tree->state != TIDE_DRIVE_TREE_WHOLE)
        return;
    tree->state = TIDE_DRIVE_TREE_PART;
    tree->why = *why;
}

static bool is_beneath(const tide_drive_tree *tree, uint32_t at, uint32_t top)
{
    while (at != top && at != ROOT)
        at = tree->nodes[at].parent;
    return at == top;
}

/* Watches the open directory.  One that is known at another place was moved, and its events wait:
 * it is forgotten there.  TIDE_EXISTS: it is watched already, here or above. */
static tide_status watch_it(tide_drive_tree *tree, int dir, uint32_t parent, uint32_t here,
                            int *id_out, tide_error *err)
{
    uint32_t known = 0;
    TIDE_TRY(tide_dir_watch_add(tree->watch, dir, id_out, err));
    if (!tide_map_get(&tree->by_id, (uint64_t)*id_out + 1, &known))
        return TIDE_OK;
    if (known == here || is_beneath(tree, parent, known))
        return TIDE_EXISTS;
    drop(tree, known);
    return tide_dir_watch_add(tree->watch, dir, id_out, err);
}

/* A folder named `name` is in the folder `parent`, which `dir` has open: watches it, and leaves it to
 * be listed. */
static void folder_came(tide_drive_tree *tree, int dir, uint32_t parent, tide_text name)
{
    const uint32_t here = child_of(tree, parent, name);
    struct tide_entry entry;
    tide_error err = {TIDE_OK, 0, ""};
    int own = -1, id = -1;
    if (tree->state != TIDE_DRIVE_TREE_WHOLE || path_set(tree, parent, name) != TIDE_OK ||
        tide_folder_enter(dir, name, &own, NULL) != TIDE_OK)
        return; /* gone again, a link, or unreadable: an event tells when that changes */
    struct tide_entry marker;
    const bool ours = tide_folder_look_self(own, &entry, NULL) == TIDE_OK &&
                      entry.dev == tree->root_entry.dev &&
                      tide_folder_look(own, TIDE_TEXT(TIDE_DRIVE_MARKER), &marker, NULL) ==
                          TIDE_NOT_FOUND && /* else it is another drive's (D16) */
                      !(tree->ignore != NULL &&
                        tide_ignored_here(tree->ignore, tide_buf_text(&tree->path), true));
    tide_status rc = ours ? watch_it(tree, own, parent, here, &id, &err) : TIDE_INVALID;
    tide_folder_close(own);
    if (rc == TIDE_EXISTS)
        return;
    if (here != 0 && tree->nodes[here].name != NULL) /* another directory had the name */
        drop(tree, here);
    if (rc == TIDE_OK && node_add(tree, parent, name, id) != TIDE_OK) {
        tide_dir_watch_remove(tree->watch, id);
        rc = tide_error_set(&err, TIDE_FULL, "there is no memory to watch more folders");
    }
    if (rc == TIDE_FULL)
        incomplete(tree, &err);
}

static bool take_name(tide_text name, void *arg)
{
    tide_drive_tree *tree = arg;
    return tide_buf_add(&tree->names, name.data, name.bytes) == TIDE_OK &&
           tide_buf_add(&tree->names, "", 1) == TIDE_OK;
}

static void list_one(tide_drive_tree *tree, int root, uint32_t at)
{
    int dir = -1;
    if (path_set(tree, at, TIDE_TEXT("")) != TIDE_OK ||
        tide_folder_enter(root, tide_buf_text(&tree->path), &dir, NULL) != TIDE_OK)
        return; /* moved or removed meanwhile: its event waits */
    tide_buf_clear(&tree->names);
    (void)tide_folder_list_folders(dir, take_name, tree, NULL);
    for (size_t next = 0; next < tree->names.bytes;) {
        const tide_text name = tide_text_of(tree->names.data + next);
        folder_came(tree, dir, at, name);
        next += name.bytes + 1;
    }
    tide_folder_close(dir);
}

static void lost(tide_drive_tree *tree)
{
    tree->state = TIDE_DRIVE_TREE_LOST;
    (void)tide_error_set(&tree->why, TIDE_NOT_FOUND, "%s was removed, moved or unmounted",
                         tree->root);
}

/* Opens the root if it is the watched one; nothing of it stays open between two events. */
static bool root_open(tide_drive_tree *tree, int *root_out)
{
    struct tide_entry entry;
    *root_out = -1;
    if (tide_folder_open(tree->root, root_out, NULL) == TIDE_OK &&
        tide_folder_look_self(*root_out, &entry, NULL) == TIDE_OK &&
        entry.dev == tree->root_entry.dev && entry.inode == tree->root_entry.inode)
        return true;
    tide_folder_close(*root_out);
    lost(tree);
    return false;
}

/* Lists what is watched and was not listed, and what that brings.  All of it may have entries from
 * before it was watched. */
static void walk(tide_drive_tree *tree, int root, tide_drive_changes *changes, uint64_t now_ms)
{
    while (tree->todo_count > 0) {
        const uint32_t at = tree->todo[--tree->todo_count];
        if (at != ROOT && tree->nodes[at].name == NULL)
            continue; /* forgotten meanwhile */
        list_one(tree, root, at);
        if (changes != NULL && (at == ROOT || tree->nodes[at].name != NULL) &&
            path_set(tree, at, TIDE_TEXT("")) == TIDE_OK)
            tide_drive_changes_add(changes, tide_buf_text(&tree->path), false, now_ms);
    }
}

/* ---- beginning ---- */

static void forget_all(tide_drive_tree *tree)
{
    for (size_t i = ROOT; i < tree->nodes_count; i++)
        if (tree->nodes[i].name != NULL)
            tide_mem_free(tree->mem, tree->nodes[i].name, tree->nodes[i].name_bytes + 1u);
    tree->nodes_count = 0;
    tree->free_first = 0;
    tree->todo_count = 0;
    tree->watched = 0;
    tide_map_clear(&tree->by_id);
    tide_map_clear(&tree->by_place);
    tide_dir_watch_free(tree->watch);
    tree->watch = NULL;
}

static tide_status begin(tide_drive_tree *tree, tide_error *err)
{
    int root = -1, id = -1;
    forget_all(tree);
    tree->state = TIDE_DRIVE_TREE_WHOLE;
    tree->why = (tide_error){TIDE_OK, 0, ""};
    if (!TIDE_GROW_IN(tree->mem, tree->nodes, tree->nodes_room, ROOT + 1,
                      TIDE_DRIVE_TREE_FOLDERS_MAX) ||
        !TIDE_GROW_IN(tree->mem, tree->todo, tree->todo_room, 1, TIDE_DRIVE_TREE_FOLDERS_MAX))
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to watch a folder");
    TIDE_TRY(tide_dir_watch_new(tree->mem, &tree->watch, err));
    TIDE_TRY(tide_folder_open(tree->root, &root, err));
    tide_status rc = tide_folder_look_self(root, &tree->root_entry, err);
    if (rc == TIDE_OK)
        rc = tide_dir_watch_add(tree->watch, root, &id, err);
    if (rc == TIDE_OK && !tide_map_put(&tree->by_id, (uint64_t)id + 1, ROOT))
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory to watch a folder");
    if (rc == TIDE_OK) {
        tree->nodes[0] = (struct node){.id = -1};
        tree->nodes[ROOT] = (struct node){.id = id};
        tree->nodes_count = ROOT + 1;
        tree->todo[tree->todo_count++] = ROOT;
        tree->watched = 1;
        walk(tree, root, NULL, 0);
    }
    tide_folder_close(root);
    return rc;
}

tide_status tide_drive_tree_new(const char *root, const tide_ignore *ignore, tide_mem *mem,
                                tide_drive_tree **tree_out, tide_error *err)
{
    tide_drive_tree *tree = tide_mem_new(mem, sizeof *tree);
    if (tree == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to watch a folder");
    tree->mem = mem;
    tree->root = root;
    tree->ignore = ignore;
    tide_map_init(&tree->by_id, mem);
    tide_map_init(&tree->by_place, mem);
    tide_buf_init(&tree->names, mem, NAMES_BYTES_MAX);
    tide_buf_init(&tree->path, mem, PATH_BYTES_MAX);
    const tide_status rc = begin(tree, err);
    if (rc == TIDE_OK)
        *tree_out = tree;
    else
        tide_drive_tree_free(tree);
    return rc;
}

void tide_drive_tree_free(tide_drive_tree *tree)
{
    if (tree == NULL)
        return;
    forget_all(tree);
    tide_map_done(&tree->by_id);
    tide_map_done(&tree->by_place);
    tide_buf_done(&tree->names);
    tide_buf_done(&tree->path);
    tide_mem_free(tree->mem, tree->todo, tree->todo_room * sizeof *tree->todo);
    tide_mem_free(tree->mem, tree->nodes, tree->nodes_room * sizeof *tree->nodes);
    tide_mem_free(tree->mem, tree, sizeof *tree);
}

/* ---- events ---- */

/* Files that transfers write; the marker is not one of them (S14). */
static bool is_temporary(tide_text name)
{
    static const char prefix[] = ".tidemark-";
    return name.bytes >= sizeof prefix - 1 && memcmp(name.data, prefix, sizeof prefix - 1) == 0 &&
           !tide_text_equal(name, TIDE_TEXT(TIDE_DRIVE_MARKER));
}

static bool is_ignored(tide_drive_tree *tree, uint32_t at, const struct tide_dir_event *event)
{
    return is_temporary(event->name) ||
           (tree->ignore != NULL && path_set(tree, at, event->name) == TIDE_OK &&
            tide_ignored_here(tree->ignore, tide_buf_text(&tree->path),
                              (event->what & TIDE_DIR_FOLDER) != 0));
}

/* A folder of `at` came, left, or has other permissions.  Whatever has the name now is looked at, also
 * after one left: when two names are exchanged, the event that a folder came is before the one that
 * the other left. */
static void folder_event(tide_drive_tree *tree, uint32_t at, const struct tide_dir_event *event,
                         tide_drive_changes *changes, uint64_t now_ms)
{
    int root = -1, dir = -1;
    const uint32_t child = child_of(tree, at, event->name);
    if ((event->what & TIDE_DIR_LEFT) != 0 && child != 0)
        drop(tree, child);
    if (!root_open(tree, &root))
        return;
    if (path_set(tree, at, TIDE_TEXT("")) == TIDE_OK &&
        tide_folder_enter(root, tide_buf_text(&tree->path), &dir, NULL) == TIDE_OK) {
        folder_came(tree, dir, at, event->name);
        tide_folder_close(dir);
        walk(tree, root, changes, now_ms);
    }
    tide_folder_close(root);
}

static void entry_event(tide_drive_tree *tree, uint32_t at, const struct tide_dir_event *event,
                        tide_drive_changes *changes, uint64_t now_ms)
{
    if (is_ignored(tree, at, event))
        return;
    if (path_set(tree, at, TIDE_TEXT("")) == TIDE_OK) /* first: the folder may be dropped below */
        tide_drive_changes_add(changes, tide_buf_text(&tree->path),
                               (event->what & TIDE_DIR_LEFT) != 0, now_ms);
    if ((event->what & TIDE_DIR_FOLDER) != 0)
        folder_event(tree, at, event, changes, now_ms);
    else if (at != ROOT && tide_text_equal(event->name, TIDE_TEXT(TIDE_DRIVE_MARKER)))
        drop(tree, at); /* it became the folder of another drive */
}

/* F15: what happened meanwhile, and which folders came, nobody knows. */
static void begin_anew(tide_drive_tree *tree, tide_drive_changes *changes, uint64_t now_ms)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_drive_changes_add_all(changes, now_ms);
    if (begin(tree, &err) == TIDE_OK)
        return;
    tree->state = TIDE_DRIVE_TREE_LOST;
    tree->why = err;
}

/* The directory itself: the root is lost, others are told by their folder as well. */
static void self_event(tide_drive_tree *tree, uint32_t at, const struct tide_dir_event *event)
{
    int root = -1;
    if ((event->what & TIDE_DIR_ENDED) != 0 && at != ROOT)
        drop(tree, at);
    else if ((event->what & TIDE_DIR_ENDED) != 0)
        lost(tree);
    else if (at == ROOT && root_open(tree, &root)) /* else it was moved away, and not back */
        tide_folder_close(root);
}

void tide_drive_tree_take(tide_drive_tree *tree, tide_drive_changes *changes, uint64_t now_ms)
{
    struct tide_dir_event event;
    uint32_t at = 0;
    while (tree->state != TIDE_DRIVE_TREE_LOST && tide_dir_watch_next(tree->watch, &event)) {
        if ((event.what & TIDE_DIR_LOST) != 0)
            begin_anew(tree, changes, now_ms);
        else if (!tide_map_get(&tree->by_id, (uint64_t)event.id + 1, &at))
            continue; /* of a folder that was forgotten */
        else if (event.name.bytes > 0)
            entry_event(tree, at, &event, changes, now_ms);
        else if ((event.what & (TIDE_DIR_ENDED | TIDE_DIR_MOVED)) != 0)
            self_event(tree, at, &event);
    }
}

tide_drive_tree_state tide_drive_tree_now(const tide_drive_tree *tree)
{
    return tree->state;
}

const char *tide_drive_tree_why(const tide_drive_tree *tree)
{
    return tree->why.text;
}

size_t tide_drive_tree_folders(const tide_drive_tree *tree)
{
    return tree->watched;
}

tide_dir_watch *tide_drive_tree_watch(const tide_drive_tree *tree)
{
    return tree->watch;
}
