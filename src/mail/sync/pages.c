/* pages.c - paging: walks the pages of a call, each page a separate job (E4.3a, M6a). */
#include "base/json.h"

#include "base/hash.h"
#include "mail/inside.h"

enum {
    PAGES_MAX = 100000, /* per walk */
    TRIES_MAX = 5,      /* walks from the first page within one run */
};

#define OVER TIDE_TEXT("over")

/* A positive number, because it is stored in JSON. */
static uint64_t number_of(tide_text token)
{
    return tide_hash(TIDE_HASH_START, token) >> 1;
}

bool tide_mail_page_next(const struct tide_mail_page *page, tide_text next,
                         struct tide_mail_page *next_out)
{
    const uint64_t number = page->number + 1;
    const bool power_of_two = (number & (number - 1)) == 0;
    const bool circle = page->number > 0 && number_of(next) == page->mark;
    *next_out = (struct tide_mail_page){
        .number = number, .token = next, .mark = power_of_two ? number_of(next) : page->mark};
    return !circle && number <= PAGES_MAX;
}

tide_status tide_mail_page_read(const json_t *payload, struct tide_mail_page *page_out,
                                tide_error *err)
{
    struct tide_mail_page page = {0};
    tide_status rc = TIDE_OK;
    if (tide_json_get_text(payload, "token", &page.token, NULL) == TIDE_OK) {
        rc = tide_json_get_u64(payload, "page", &page.number, err);
        /* Jobs of an earlier version have no mark: the next page sets it. */
        (void)tide_json_get_u64(payload, "mark", &page.mark, NULL);
    }
    if (rc == TIDE_OK)
        *page_out = page;
    return rc;
}

tide_status tide_mail_page_job(tide_mail *mail, tide_job *job, uint32_t kind, tide_json *payload,
                               const struct tide_mail_page *page, tide_error *err)
{
    tide_auto_buf line = tide_buf_in(mail->mem, 16 << 10);
    if (page->number > 0) {
        tide_json_set_u64(payload, "page", page->number);
        tide_json_set_text(payload, "token", page->token);
        tide_json_set_u64(payload, "mark", page->mark);
    }
    tide_status rc = tide_json_line(payload, &line);
    if (rc != TIDE_OK)
        rc = tide_error_set(err, TIDE_SERVER, "a page token of %zu bytes", page->token.bytes);
    const struct tide_spec spec = {
        .kind = kind, .account = tide_job_account(job), .payload = tide_buf_cstr(&line)};
    if (rc == TIDE_OK)
        rc = tide_job_enqueue(job, &spec, err);
    return rc;
}

tide_status tide_mail_over(tide_job *job, uint64_t tries, tide_error *err)
{
    const tide_status kept = tide_job_resume_set(job, OVER, NULL);
    const tide_status rc = tries < TRIES_MAX || kept != TIDE_OK ? TIDE_SERVER : TIDE_PERMANENT;
    if (err != NULL)
        err->status = rc;
    return rc;
}

void tide_mail_over_begin(tide_job *job, struct tide_mail_page *page, uint64_t *tries)
{
    if (!tide_text_equal(tide_job_resume(job), OVER))
        return;
    *page = (struct tide_mail_page){0};
    *tries = *tries < TRIES_MAX ? *tries + 1 : 0;
}
