/* The corpus of nasty mail, where it is found. */
#include "archive_fixture.h"

#include "base/hash.h"
#include "support/heap.h"

#include <dirent.h>
#include <sys/stat.h>

static uint64_t put_files(struct fixture *f, const char *dir, bool check)
{
    uint64_t count = 0;
    DIR *handle = opendir(dir);
    if (handle == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(handle)) != NULL;) {
        char path[1000];
        struct stat info;
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (stat(path, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode)) {
            count += put_files(f, path, check);
            continue;
        }
        tide_buf raw = heap_buf(64 << 20);
        OK(tide_file_read(f->world, path, 64 << 20, &raw, &f->err));
        const uint64_t hash = tide_hash(TIDE_HASH_START, tide_text_of(path));
        const char *id = textf("%016" PRIx64, hash);
        struct tide_incoming incoming =
            mail(id, year_2019 + (int64_t)(hash % 31536000000), tide_buf_text(&raw));
        if (check)
            assert_raw(f, id, tide_buf_text(&raw));
        else
            put(f, &incoming);
        tide_buf_done(&raw);
        count++;
    }
    (void)closedir(handle);
    return count;
}

CASE(the_corpus_of_nasty_mail_comes_back_exactly)
{
    static const char *const places[] = {"../shared/corpus/mail", "../../shared/corpus/mail",
                                         "../../../shared/corpus/mail"};
    const char *place = getenv("TIDE_CORPUS");
    for (size_t i = 0; place == NULL && i < 3; i++)
        if (access(places[i], R_OK) == 0)
            place = places[i];
    if (place == NULL) {
        print_message("no corpus of mail here (TIDE_CORPUS names it)\n");
        skip();
    }
    open_archive(f);
    uint64_t count = put_files(f, place, false);
    sync_all(f);
    assert_int_equal(put_files(f, place, true), count);
    assert_true(count > 0);
    assert_sound(f, count);
}
