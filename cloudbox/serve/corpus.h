/* corpus.h - real messages from a directory into a mailbox.
 *
 * Every file below it whose name ends in .eml, .msg or .txt, in the order of the
 * bytes of their paths, byte for byte.  What cannot be read is named and left out. */
#ifndef BOX_SERVE_CORPUS_H
#define BOX_SERVE_CORPUS_H

#include "cloudbox/gate/cloud.h"

enum { BOX_CORPUS_FILES_MAX = 10 * 1000 * 1000, BOX_CORPUS_FILE_BYTES_MAX = 150 << 20 };

struct box_corpus {
    uint64_t messages;
    uint64_t skipped;
    char digest[65]; /* SHA-256 over lengths and bytes, in hexadecimal */
};

/* The user must exist.  TIDE_NOT_FOUND: no such directory. */
tide_status box_corpus_load(box_cloud *cloud, tide_text email, const char *directory,
                            struct box_corpus *corpus_out, tide_error *err);

#endif
