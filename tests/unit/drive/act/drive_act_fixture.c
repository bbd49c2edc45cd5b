#include "drive_act_fixture.h"

#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/mailbox/mime.h"
#include "support/temp_dir.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct fixture *f = arg;
    const char *line = textf("%s %.400s", request->method, request->url);
    const bool watched = f->watched != NULL && strstr(line, f->watched) != NULL;
    f->seen += watched ? 1 : 0;
    const bool meant = watched && (f->only == 0 || f->only == f->seen);
    if (meant && f->before != NULL)
        f->before(f);
    tide_sim_cloud_call(f->cloud, request, now_unix_ms, rng, answer);
    if (meant && f->after != NULL)
        f->after(f, request, answer);
}

struct fixture *begin(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tidemark-act-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->root, sizeof f->root, "%s/root", f->dir);
    assert_int_equal(mkdir(f->root, 0700), 0);
    box_mime_start();
    f->cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = 3, .quota = BOX_QUOTA_2026, .concurrency_max = 10});
    const struct tide_sim_options options = {
        .net = {.latency_us_max = 20000, .provide = provide, .provide_arg = f}};
    f->sim = tide_sim_new(11, &options);
    (void)tide_sim_cloud_user(f->cloud, f->sim, ME, "bearer-1", (struct box_mailbox_options){0});
    const struct tide_onedrive_options client = {
        .endpoint = ORIGIN, .bearer = TIDE_TEXT("bearer-1"), .world = tide_sim_world(f->sim)};
    OK(tide_onedrive_open(&client, tide_mem_heap(), &f->onedrive, &f->err));
    f->act =
        (struct tide_drive_act){.onedrive = f->onedrive, .mem = tide_mem_heap(), .path = f->root};
    OK(tide_folder_open(f->root, &f->act.root, &f->err));
    return f;
}

void finish(struct fixture *f)
{
    tide_folder_close(f->act.root);
    tide_onedrive_close(f->onedrive);
    tide_sim_free(f->sim);
    tide_sim_cloud_free(f->cloud);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
}

void expect(struct fixture *f, tide_status rc, tide_status expected, const char *file, int line)
{
    if (rc == expected && (rc == TIDE_OK || (f->err.status == rc && f->err.text[0] != '\0')))
        return;
    print_error("%s, not %s: %s (%s)\n", tide_status_name(rc), tide_status_name(expected),
                f->err.text, tide_status_name(f->err.status));
    _fail(file, line);
}

/* ---- online ---- */

void online(struct fixture *f, const char *what, const char *body)
{
    const char *whole = textf("{\"user\":\"" ME "\",%s", body + 1);
    json_decref(tide_sim_cloud_control(f->cloud, f->sim, "POST", textf("/_cloud/drive/%s", what),
                                       tide_text_of(whole)));
}

void fault(struct fixture *f, const char *rule)
{
    tide_sim_cloud_fault(f->cloud, f->sim, rule);
}

void no_faults(struct fixture *f)
{
    json_decref(
        tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT("")));
}

uint64_t downloaded_bytes(struct fixture *f)
{
    json_t *stats = tide_sim_cloud_control(f->cloud, f->sim, "GET", "/_cloud/stats", TIDE_TEXT(""));
    const json_t *me = json_object_get(json_object_get(stats, "users"), ME);
    const json_t *bytes = json_object_get(json_object_get(me, "drive"), "bytes");
    assert_true(json_is_integer(bytes));
    const uint64_t count = (uint64_t)json_integer_value(bytes);
    json_decref(stats);
    return count;
}

struct tide_onedrive_answer item_at(struct fixture *f, const char *path)
{
    struct tide_onedrive_answer answer = {.value = NULL};
    EXPECT(tide_onedrive_get_at(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""), tide_text_of(path),
                                &answer, &f->err),
           TIDE_OK);
    return answer;
}

bool is_online(struct fixture *f, const char *path)
{
    struct tide_onedrive_answer answer = {.value = NULL};
    const tide_status rc = tide_onedrive_get_at(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""),
                                                tide_text_of(path), &answer, &f->err);
    tide_onedrive_answer_done(&answer);
    assert_true(rc == TIDE_OK || rc == TIDE_GONE);
    return rc == TIDE_OK;
}

/* ---- here ---- */

void put_file(struct fixture *f, const char *path, const char *text)
{
    FILE *file = fopen(textf("%s/%s", f->root, path), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

tide_buf file_at(struct fixture *f, const char *path)
{
    tide_buf bytes = heap_buf((size_t)1 << 28);
    FILE *file = fopen(textf("%s/%s", f->root, path), "r");
    assert_non_null(file);
    char piece[4096];
    for (size_t count; (count = fread(piece, 1, sizeof piece, file)) > 0;)
        OK(tide_buf_add(&bytes, piece, count));
    (void)fclose(file);
    return bytes;
}

void assert_file(struct fixture *f, const char *path, const char *text)
{
    tide_buf bytes = file_at(f, path);
    assert_string_equal(tide_buf_cstr(&bytes), text);
    tide_buf_done(&bytes);
}

bool is_here(struct fixture *f, const char *path)
{
    return access(textf("%s/%s", f->root, path), F_OK) == 0;
}

struct tide_entry entry_at(struct fixture *f, const char *name)
{
    struct tide_entry entry;
    OK(tide_folder_look(f->act.root, tide_text_of(name), &entry, &f->err));
    return entry;
}

unsigned temporaries(struct fixture *f, const char *folder)
{
    unsigned count = 0;
    DIR *list = opendir(textf("%s/%s", f->root, folder));
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += strncmp(entry->d_name, ".tidemark-", 10) == 0 ? 1 : 0;
    (void)closedir(list);
    return count;
}

/* ---- spoilers ---- */

void flip_a_byte(struct fixture *f, const struct tide_request *request,
                 struct tide_sim_answer *answer)
{
    (void)f;
    (void)request;
    assert_true(answer->body.bytes > 0);
    answer->body.data[answer->body.bytes / 2] ^= 1;
}

void cut_short(struct fixture *f, const struct tide_request *request,
               struct tide_sim_answer *answer)
{
    (void)request;
    tide_buf whole = answer->body;
    answer->body = heap_buf((size_t)1 << 28);
    OK(tide_buf_add(&answer->body, whole.data, (size_t)f->cut));
    tide_buf_done(&whole);
}

void break_off(struct fixture *f, const struct tide_request *request,
               struct tide_sim_answer *answer)
{
    (void)request;
    answer->truncate_from = f->cut;
}
