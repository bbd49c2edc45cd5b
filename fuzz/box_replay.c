/* box_replay.c - lines of a journal, replayed to a new cloud: any line gives a status, and the
 * accepted part leaves a cloud that is consistent and answers.
 *
 * A line is only accepted when its ids are those that come next, so lines may use
 * them, besides the ids of box.h: @h2 is the history id after two changes, @n the next
 * message's id, @D the next draft's. */
#include "box.h"

#include "cloudbox/mailbox/inside.h"

enum { LINES_MAX = 32 };

static void look(box_cloud *cloud, const char *target)
{
    const struct box_header headers[] = {{TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer t")}};
    fuzz_ask(cloud,
             &(struct box_request){.verb = BOX_GET,
                                   .target = tide_text_of(target),
                                   .headers = headers,
                                   .headers_count = 1,
                                   .origin = TIDE_TEXT("http://127.0.0.1:1")},
             FUZZ_START_MS);
}

static bool add_next(tide_buf *out, const box_mailbox *mailbox, const char *name)
{
    const size_t drafts = mailbox->drafts_count;
    char id[BOX_ID_TEXT_BYTES];
    switch (name[0]) {
    case 'h':
        if (name[1] < '0' || name[1] > '9')
            return false;
        box_print(out, "%llu",
                  (unsigned long long)box_history_ahead(mailbox, (uint32_t)(name[1] - '0')));
        return true;
    case 'n':
        box_id_text(box_draw_id(mailbox->spec.seed, mailbox->id_last, mailbox->now_ms), id);
        box_add_cstr(out, id);
        return true;
    case 'D':
        box_print(out, "r%llu",
                  (unsigned long long)box_draw_draft_id(
                      mailbox->spec.seed, drafts == 0 ? 0 : mailbox->drafts[drafts - 1].id));
        return true;
    default:
        return false;
    }
}

static tide_text with_next(tide_text text, box_cloud *cloud)
{
    const box_mailbox *mailbox = box_user_mailbox(box_cloud_user_at(cloud, 0));
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 1 << 20);
    for (size_t i = 0; i < text.bytes; i++) {
        char name[2] = {0, 0};
        for (size_t k = 0; k < 2 && i + 1 + k < text.bytes; k++)
            name[k] = text.data[i + 1 + k];
        if (text.data[i] == '@' && add_next(&out, mailbox, name))
            i += name[0] == 'h' ? 2 : 1;
        else
            box_add(&out, &text.data[i], 1);
    }
    const tide_text copy = fuzz_with_ids(tide_buf_text(&out), cloud);
    tide_buf_done(&out);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    box_cloud *cloud = fuzz_cloud();
    for (int i = 0; i < LINES_MAX && fuzz_more(&input); i++) {
        const tide_text line = with_next(fuzz_text(&input, '\n'), cloud);
        tide_error err = {TIDE_OK, 0, ""};
        const tide_status rc = box_cloud_replay(cloud, line, &err);
        TIDE_ASSERT(rc == TIDE_OK || err.text[0] != '\0');
        fuzz_text_free(line);
    }
    look(cloud, "/gmail/v1/users/me/messages");
    look(cloud, "/gmail/v1/users/me/history?startHistoryId=1");
    look(cloud, "/gmail/v1/users/me/labels");
    look(cloud, "/gmail/v1/users/me/drafts");
    look(cloud, "/_cloud/users");
    look(cloud, "/_cloud/clock");
    fuzz_cloud_end(cloud);
    return 0;
}
