/* search.h - searches mail with Gmail's operators over all shards of an archive.
 *
 * from: to: cc: bcc: subject: after: before: older_than: newer_than: has: filename: label: in: is:
 * category: larger: smaller: list: deliveredto: rfc822msgid: OR, |, {either or}, (groups), "phrases",
 * +exact, prefix*, one AROUND 5 other, -negation (M10, M20).  Unlike in Gmail, an unknown operator is
 * an error that names it, and so is an invalid value or a label that no shard has: a wrong query must
 * not look like an empty archive.
 *
 * OR binds first: "a OR b c" is "(a OR b) c".  An operator may stand before a group: from:(a OR b).
 * to: searches To, Cc and Bcc; "me" is the archive's owner.  Words ignore case and accents; a bare
 * word is searched in subject, addresses, text and file names.  Bare words and those of subject: find
 * their forms (forms.c), unless in quotation marks, after a '+' or beside AROUND, or in a search that
 * is `exact`.  Terms without a letter or digit are ignored.  Text without spaces between words (CJK,
 * Thai) is indexed character by character and searched as a phrase.  list: and deliveredto: are read
 * from the messages (header.c).
 *
 * local@domain after an operator of people, or deliveredto:, is exactly that address, @domain any of exactly
 * that domain; a domain alone is that one, any under it, and these words before an '@' or in a name
 * (address.c).
 *
 * Dates are 2014/01/31, 2014-01-31, 2014/01, 2014 or seconds since 1970; after:
 * includes its instant, before: does not.  Ages have h, d, w, m (30 days) or y
 * (365); sizes k, M or G of 1024.  label: takes names and ids, ignores case, and takes a hyphen for
 * a blank or slash.  Spam and trash are left out, unless a term names either or in:anywhere.
 *
 * Newest first by default: years are walked from the newest, each in rowid
 * order (mail/archive/archive.h ARC4), and the walk ends with the page.  Ranked on request, over a
 * limited set of candidates.  Stored messages that are not yet indexed have no words, no
 * attachments and no Message-ID; all other terms match them.
 *
 * Invariants:
 *   SRC1  a query finds exactly the stored messages that match it.  Of the forms of a word at most
 *         TIDE_FORMS_MAX of a shard count, the word itself always.
 *   SRC2  a page continues exactly after the previous one, even if mail was added meanwhile.
 *         (Ranked pages: when newer mail was added; older mail may move a page by as many places.)
 */
#ifndef TIDE_MAIL_SEARCH_H
#define TIDE_MAIL_SEARCH_H

#include "mail/archive/archive.h"

typedef struct tide_query tide_query;

enum {
    TIDE_QUERY_BYTES_MAX = 8192,
    TIDE_QUERY_NODES_MAX = 512,
    TIDE_QUERY_DEEP = 50,
    TIDE_SEARCH_PAGE_MAX = 1000,
    TIDE_SEARCH_RANKED_MAX = 10000, /* candidates that are ranked */
    TIDE_SEARCH_LABELS_MAX = 64,    /* of a query, that are noted; more are taken as they are */
};

/* For `utc_offset_s`: the zone of this process, with the offset that it had at each date. */
#define TIDE_QUERY_LOCAL INT32_MAX
/* `now_ms` for older_than and newer_than; dates without a time are midnight in the zone
 * `utc_offset_s`.  TIDE_INVALID: err says what is wrong, where, and what may have been meant. */
tide_status tide_query_parse(tide_text text, int64_t now_ms, int32_t utc_offset_s, tide_mem *mem,
                             tide_query **query_out, tide_error *err);
void tide_query_free(tide_query *query); /* NULL is fine */
/* For callers that act on the matches.  Whether it has no terms and so matches everything. */
bool tide_query_is_all(const tide_query *query);
/* Whether no term was ignored for having no letter and no digit. */
bool tide_query_is_whole(const tide_query *query);
/* Whether it excludes words, attachments or a Message-ID: then a message that is not indexed
 * matches, whatever it contains. */
bool tide_query_denies_words(const tide_query *query);

/* What several archives know of the labels of one query: one that any of them has is no mistake, though
 * the others have no message with it.  Begins zeroed. */
struct tide_search_labels {
    struct tide_search_label {
        uint32_t at; /* the character of the query */
        bool known;  /* to an archive that was searched */
        tide_error why;
    } list[TIDE_SEARCH_LABELS_MAX];
    size_t count;
};
/* After all archives were searched.  TIDE_INVALID: none of them has a label of the query. */
tide_status tide_search_labels_check(const struct tide_search_labels *labels, tide_error *err);

struct tide_search {
    const tide_query *query; /* NULL: everything */
    bool ranked;
    bool oldest_first;
    uint32_t limit;  /* 0: 50 */
    tide_text after; /* the token of the page before; empty: the first page */
    bool snippets;
    bool strict;  /* a word without a letter or digit is TIDE_INVALID, not ignored */
    bool exact;   /* a plain word finds no other forms, as if it had a '+' */
    bool lenient; /* a label that no shard has is one that no message has */
    struct tide_search_labels *labels; /* so, too, and what was known is noted there; NULL */
    const tide_cancel *cancel;         /* ends the search with TIDE_CANCELED; NULL: nothing does */
};

struct tide_found {
    struct tide_stored stored;
    tide_text from, subject; /* decoded, as the others; "" while it is not indexed */
    tide_text to, cc, bcc, message_id;
    bool has_date;
    int64_t date_ms;   /* of its Date header */
    uint64_t files;    /* attachments */
    tide_text snippet; /* with the matches between \x01 and \x02; "" unless requested */
    double rank;
};
/* Calls `visit` for each match of the page, until it returns false; *more_out says whether there is
 * a next page, whose token is then written to `next` (may be NULL).  `visit` may read from the
 * archive.  TIDE_INVALID: a label that does not exist, no word in the query, a token of another
 * search. */
tide_status tide_search_run(tide_archive *archive, const struct tide_search *search,
                            bool (*visit)(const struct tide_found *found, void *arg), void *arg,
                            tide_buf *next, bool *more_out, tide_error *err);
/* Writes the token of the page after a message that was found; not for ranked searches. */
tide_status tide_search_token(const struct tide_search *search, const struct tide_stored *stored,
                              tide_buf *token);
/* The number of matches and their bytes.  `query` NULL: everything. */
tide_status tide_search_count(tide_archive *archive, const tide_query *query, uint64_t *count_out,
                              uint64_t *bytes_out, tide_error *err);

/* A word of a query that no message has, nor another form of it, and a word that is nearly the same. */
struct tide_spelling {
    tide_text word, better; /* as in the index: lower case, without accents */
    uint64_t messages;      /* that have the better one, in one shard */
};
/* Visits the words of the query that may be misspelled; for searches that found nothing. */
tide_status tide_search_spelling(tide_archive *archive, const tide_query *query,
                                 const tide_cancel *cancel,
                                 void (*visit)(const struct tide_spelling *spelling, void *arg),
                                 void *arg, tide_error *err);

/* ---- for the index ---- */

/* Prepares text for the index or a query: separates the characters of scripts without spaces. */
tide_status tide_search_fold(tide_text text, tide_buf *out);

#endif
