/* replay.c - runs the files of a corpus through a fuzz target, once each.
 *
 * For builds without libFuzzer: replay_<target> DIR|FILE...  A crash is the
 * failure; an empty corpus is one too, because it would test nothing. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

enum { INPUT_BYTES_MAX = 1 << 20 };

static bool replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *room = malloc(INPUT_BYTES_MAX);
    if (file == NULL || room == NULL) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        free(room);
        if (file != NULL)
            (void)fclose(file);
        return false;
    }
    size_t bytes = fread(room, 1, INPUT_BYTES_MAX, file);
    (void)fclose(file);
    /* A copy of the exact size, so that a sanitizer detects reading one byte too far. */
    tide_text exact = fuzz_exact((tide_text){(const char *)room, bytes});
    free(room);
    (void)printf("%s\n", path);
    (void)fflush(stdout);
    (void)LLVMFuzzerTestOneInput((const uint8_t *)exact.data, exact.bytes);
    free((void *)(uintptr_t)exact.data);
    return true;
}

static bool replay_dir(const char *path, size_t *count)
{
    struct dirent **names = NULL;
    int found = scandir(path, &names, NULL, alphasort);
    bool ok = found >= 0;
    for (int i = 0; i < found; i++) {
        char file[4096];
        int bytes = snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && bytes > 0 && (size_t)bytes < sizeof file) {
            ok = replay_file(file) && ok;
            ++*count;
        }
        free(names[i]);
    }
    free(names);
    return ok;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    bool ok = true;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            ok = replay_dir(argv[i], &count) && ok;
            if (fuzz_corpus_is_whole != NULL && count > 0)
                ok = fuzz_corpus_is_whole() && ok;
        } else {
            ok = replay_file(argv[i]) && ok;
            count++;
        }
    }
    (void)printf("%zu inputs\n", count);
    return ok && count > 0 ? 0 : 1;
}
