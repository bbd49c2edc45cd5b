/* search.h - finding mail: Gmail's operators over any number of shards.
 *
 * from: to: cc: bcc: subject: after: before: older_than: newer_than:
 * has:attachment filename: label: in: is: category: larger: smaller:
 * rfc822msgid: OR, |, {either or}, (groups), "phrases", -negation (M10).  Unlike
 * Gmail, an operator that does not exist is an error that names it, and so is a
 * value that makes no sense or a label that no shard knows: a wrong query must
 * not look like an empty archive.
 *
 * OR binds first: "a OR b c" is "(a OR b) c".  An operator may stand before a
 * group: from:(a OR b).  to: looks at To, Cc and Bcc; "me" is the archive's
 * owner.  Words are whole words, without regard to case and accents; a bare word
 * is looked for in subject, addresses, text and names of files.  What has no
 * letter and no digit is left out.  Text without spaces between words (CJK,
 * Thai) is indexed character by character and searched as a phrase.
 *
 * Dates are 2014/01/31, 2014-01-31, 2014/01, 2014 or seconds since 1970; after:
 * includes its instant, before: does not.  Ages have h, d, w, m (30 days) or y
 * (365); sizes k, M or G of 1024.  label: takes names and ids, case aside, a
 * hyphen for a blank or slash.  Spam and trash are left out, unless a term asks
 * for either or for in:anywhere.
 *
 * Newest first by default: years are walked from the newest, each in rowid
 * order (mail/archive/archive.h A4), and the walk ends with the page.  Ranked on request,
 * over a capped set of candidates.  Messages that are stored and not yet indexed
 * have no words, no attachments and no Message-ID; everything else about them
 * is found.
 *
 * Invariants:
 *   S1  what a query finds is what matching every stored message would find.
 *   S2  a page continues exactly behind the one before it, also when mail was
 *       added meanwhile.  (Ranked pages: when newer mail was added; older mail
 *       may move a page by as many places.)
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
};

/* `now_ms` for older_than and newer_than; dates without a time are midnight in
 * the zone `utc_offset_s`.  TIDE_INVALID: err says what, where, and what was
 * perhaps meant. */
tide_status tide_query_parse(tide_text text, int64_t now_ms, int32_t utc_offset_s, tide_mem *mem,
                             tide_query **query_out, tide_error *err);
void tide_query_free(tide_query *query); /* NULL is fine */
/* For who acts on what is found.  It asks for nothing, so that everything is found. */
bool tide_query_is_all(const tide_query *query);
/* Nothing in it was left out for having no letter and no digit. */
bool tide_query_is_whole(const tide_query *query);
/* It wants words, attachments or a Message-ID not to be there: a message that is not
 * indexed is found, whatever it says. */
bool tide_query_denies_words(const tide_query *query);

struct tide_search {
    const tide_query *query; /* NULL: everything */
    bool ranked;
    bool oldest_first;
    uint32_t limit;  /* 0: 50 */
    tide_text after; /* the token of the page before; empty: the first page */
    bool snippets;
    bool strict; /* a word without a letter and a digit is TIDE_INVALID, not left out */
};

struct tide_found {
    struct tide_stored stored;
    tide_text from, subject; /* decoded */
    tide_text snippet;       /* with the matches between \x01 and \x02; "" unless asked for */
    double rank;
};
/* Calls `visit` for each match of the page, until it returns false; *more_out
 * says whether there is a next page, whose token is then written to `next` (NULL:
 * nobody asks).  `visit` may read from the archive.  TIDE_INVALID: a label that
 * does not exist, no word in the query, a token of another search. */
tide_status tide_search_run(tide_archive *archive, const struct tide_search *search,
                            bool (*visit)(const struct tide_found *found, void *arg), void *arg,
                            tide_buf *next, bool *more_out, tide_error *err);
/* How many there are, and their bytes.  `query` NULL: everything. */
tide_status tide_search_count(tide_archive *archive, const tide_query *query, uint64_t *count_out,
                              uint64_t *bytes_out, tide_error *err);

/* ---- for the index ---- */

/* Text as it goes into the index and into a query: characters of scripts without
 * spaces stand alone. */
tide_status tide_search_fold(tide_text text, tide_buf *out);

#endif
