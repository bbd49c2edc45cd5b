/* compare.c - compares two sides row by row: the first difference, and a hash of each. */
#include "ledger/copy/inside.h"

#include "base/encode.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

/* One side of a table that is being compared. */
struct walk {
    struct copy_reader reader;
    EVP_MD_CTX *hash;
    tide_buf *text; /* of the row */
    uint64_t *rows;
    bool there; /* the table exists on this side */
    bool row;
};

static tide_status walk_open(struct copier *self, struct walk *walk, struct copy_side *side,
                             const struct copy_table *table)
{
    walk->row = walk->there;
    *walk->rows = 0;
    walk->hash = EVP_MD_CTX_new();
    if (walk->hash == NULL || EVP_DigestInit_ex(walk->hash, EVP_sha256(), NULL) != 1)
        return tide_copy_no_memory(self->err);
    return walk->there
               ? tide_copy_reader_open(&walk->reader, side, table, NULL, self->mem, self->err)
               : TIDE_OK;
}

static tide_status walk_next(struct copier *self, struct walk *walk, const struct copy_table *table)
{
    tide_buf_clear(walk->text);
    if (!walk->row)
        return TIDE_OK;
    tide_status rc = tide_copy_reader_next(&walk->reader, &walk->row, self->err);
    if (rc != TIDE_OK || !walk->row)
        return rc;
    for (size_t i = 0; rc == TIDE_OK && i < table->columns_count; i++)
        rc = tide_copy_value_add(walk->text, &table->columns[i], &walk->reader.values[i]);
    if (rc == TIDE_OK)
        rc = tide_buf_add(walk->text, "\n", 1);
    ++*walk->rows;
    if (rc != TIDE_OK || EVP_DigestUpdate(walk->hash, walk->text->data, walk->text->bytes) != 1)
        return tide_copy_no_memory(self->err);
    return TIDE_OK;
}

static void walk_close(struct walk *walk, char hash_out[65])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    if (walk->there)
        tide_copy_reader_close(&walk->reader);
    hash_out[0] = '\0';
    if (walk->hash != NULL && EVP_DigestFinal_ex(walk->hash, digest, &bytes) == 1)
        tide_hex(digest, bytes < 32 ? bytes : 32, hash_out);
    EVP_MD_CTX_free(walk->hash);
}

static bool same_value(const struct copy_value *a, const struct copy_value *b)
{
    return a->null == b->null && a->number == b->number && tide_text_equal(a->text, b->text);
}

/* Names the first row that is not on both sides, or not the same. */
static void describe(const struct copy_table *table, const struct walk *from, const struct walk *to,
                     char *difference, size_t difference_bytes)
{
    char name[200];
    size_t at = 0;
    if (from->row && to->row)
        while (at < table->columns_count &&
               same_value(&from->reader.values[at], &to->reader.values[at]))
            at++;
    const struct walk *one = from->row ? from : to;
    tide_copy_row_name(table, one->reader.values, name, sizeof name);
    if (at < table->keys_count)
        (void)snprintf(difference, difference_bytes, "%s is not on both sides", name);
    else
        (void)snprintf(difference, difference_bytes, "%s: %s differs", name,
                       at < table->columns_count ? table->columns[at].name : "something");
}

static tide_status compare_table(struct copier *self, size_t at)
{
    const struct copy_table *table = &self->list.tables[at];
    struct tide_copy_table *report = &self->report->tables[at];
    struct walk from = {
        .text = &self->row_from, .rows = &report->rows_from, .there = self->list.in_from[at]};
    struct walk to = {
        .text = &self->row_to, .rows = &report->rows_to, .there = self->list.in_to[at]};
    report->difference[0] = '\0';
    tide_status rc = walk_open(self, &from, &self->from, table);
    if (rc == TIDE_OK)
        rc = walk_open(self, &to, &self->to, table);
    else
        to.there = false;
    for (uint64_t i = 1; rc == TIDE_OK; i++) {
        rc = walk_next(self, &from, table);
        if (rc == TIDE_OK)
            rc = walk_next(self, &to, table);
        if (rc != TIDE_OK || (!from.row && !to.row))
            break;
        if (report->difference[0] == '\0' &&
            !tide_text_equal(tide_buf_text(from.text), tide_buf_text(to.text)))
            describe(table, &from, &to, report->difference, sizeof report->difference);
        self->rows_step += from.row;
        if (i % COPY_LOOK_ROWS == 0)
            rc = tide_copy_look_up(self, TIDE_COPY_COMPARE, table->name);
    }
    walk_close(&from, report->hash_from);
    walk_close(&to, report->hash_to);
    report->equal = rc == TIDE_OK && report->difference[0] == '\0' &&
                    report->rows_from == report->rows_to &&
                    strcmp(report->hash_from, report->hash_to) == 0;
    return rc;
}

tide_status tide_copy_compare(struct copier *self)
{
    struct tide_copy_report *report = self->report;
    const uint64_t began_ms = tide_world_now_ms(self->world);
    tide_status rc = tide_copy_side_begin(&self->to, false, self->err);
    self->rows_step = 0;
    report->equal = rc == TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < self->list.count; i++) {
        rc = tide_copy_look_up(self, TIDE_COPY_COMPARE, self->list.tables[i].name);
        if (rc == TIDE_OK)
            rc = compare_table(self, i);
        report->equal = report->equal && report->tables[i].equal;
    }
    report->equal = report->equal && rc == TIDE_OK;
    tide_copy_side_rollback(&self->to);
    report->compare_ms = tide_world_now_ms(self->world) - began_ms;
    return rc;
}
