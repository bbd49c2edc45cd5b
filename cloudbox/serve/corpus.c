#include "cloudbox/serve/corpus.h"

#include "base/check.h"
#include "cloudbox/mailbox/mail.h"
#include "base/encode.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct load {
    box_cloud *cloud;
    tide_text email;
    EVP_MD_CTX *digest;
    tide_buf raw;
    struct box_corpus corpus;
};

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_message(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && dot != name &&
           (strcasecmp(dot, ".eml") == 0 || strcasecmp(dot, ".msg") == 0 ||
            strcasecmp(dot, ".txt") == 0);
}

static void skip(struct load *load, const char *path, const char *why)
{
    load->corpus.skipped++;
    fprintf(stderr, "skipped %s: %s\n", path, why);
}

static bool read_file(struct load *load, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        skip(load, path, strerror(errno));
        return false;
    }
    const char *why = NULL;
    tide_buf_clear(&load->raw);
    for (;;) {
        char *room = tide_buf_reserve(&load->raw, 64 << 10);
        if (room == NULL) {
            why = "larger than any message may be";
            break;
        }
        ssize_t bytes = read(fd, room, 64 << 10);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0)
            why = strerror(errno);
        if (bytes <= 0)
            break;
        load->raw.bytes += (size_t)bytes;
    }
    (void)close(fd);
    if (why == NULL && load->raw.bytes == 0)
        why = "it is empty";
    if (why != NULL)
        skip(load, path, why);
    return why == NULL;
}

static tide_status load_file(struct load *load, const char *path, tide_error *err)
{
    tide_error why;
    if (!read_file(load, path))
        return TIDE_OK;
    if (load->corpus.messages == BOX_CORPUS_FILES_MAX)
        return tide_error_set(err, TIDE_FULL, "a corpus has at most %d files",
                              BOX_CORPUS_FILES_MAX);
    if (box_cloud_add_message(load->cloud, load->email, tide_buf_text(&load->raw), &why) !=
        TIDE_OK) {
        skip(load, path, why.text);
        return TIDE_OK;
    }
    uint64_t bytes = load->raw.bytes;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bytes >> (8 * i));
    int ok = EVP_DigestUpdate(load->digest, length, sizeof length) &&
             EVP_DigestUpdate(load->digest, load->raw.data, load->raw.bytes);
    TIDE_ASSERT(ok);
    load->corpus.messages++;
    return TIDE_OK;
}

static tide_status load_tree(struct load *load, const char *directory, tide_error *err)
{
    char *roots[] = {(char *)(uintptr_t)directory, NULL};
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    if (tree == NULL)
        return tide_error_os(err, errno, "read %s", directory);
    tide_status rc = TIDE_OK;
    FTSENT *entry;
    errno = 0;
    while (rc == TIDE_OK && (entry = fts_read(tree)) != NULL) {
        if (entry->fts_info == FTS_F && is_message(entry->fts_name))
            rc = load_file(load, entry->fts_path, err);
        else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
            skip(load, entry->fts_path, strerror(entry->fts_errno));
        else if (entry->fts_info == FTS_SLNONE && is_message(entry->fts_name))
            skip(load, entry->fts_path, "it leads nowhere");
        errno = 0;
    }
    if (rc == TIDE_OK && errno != 0)
        rc = tide_error_os(err, errno, "read %s", directory);
    (void)fts_close(tree);
    return rc;
}

tide_status box_corpus_load(box_cloud *cloud, tide_text email, const char *directory,
                            struct box_corpus *corpus_out, tide_error *err)
{
    struct stat info;
    if (stat(directory, &info) != 0)
        return tide_error_os(err, errno, "read the corpus %s", directory);
    if (!S_ISDIR(info.st_mode))
        return tide_error_set(err, TIDE_INVALID, "the corpus %s is not a directory", directory);
    struct load load = {.cloud = cloud, .email = email, .digest = EVP_MD_CTX_new()};
    TIDE_ASSERT(load.digest != NULL);
    int ok = EVP_DigestInit_ex(load.digest, EVP_sha256(), NULL);
    TIDE_ASSERT(ok);
    tide_buf_init(&load.raw, tide_mem_heap(), BOX_CORPUS_FILE_BYTES_MAX);
    tide_status rc = load_tree(&load, directory, err);
    unsigned char sum[EVP_MAX_MD_SIZE];
    ok = EVP_DigestFinal_ex(load.digest, sum, NULL);
    TIDE_ASSERT(ok);
    tide_hex(sum, 32, load.corpus.digest);
    EVP_MD_CTX_free(load.digest);
    tide_buf_done(&load.raw);
    if (rc == TIDE_OK)
        *corpus_out = load.corpus;
    return rc;
}
