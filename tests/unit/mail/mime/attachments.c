/* Attachments: their names, the regions they lie in, their bytes. */
#include "unit/mail/message_fixture.h"

#include "base/rng.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

/* ---- attachments ---- */

TEST(names_of_attachments_are_read)
{
    static const struct {
        const char *headers;
        const char *name;
    } examples[] = {
        {"Content-Disposition: attachment; filename=plain.txt", "plain.txt"},
        {"Content-Disposition: attachment; filename=with spaces.txt; size=3", "with spaces.txt"},
        {"Content-Disposition: attachment; filename=\"a;b\\\"c.txt\"", "a;b\"c.txt"},
        {"Content-Disposition: attachment; filename=\"never ends.txt", "never ends.txt"},
        {"Content-Disposition: attachment;\n filename=folded.txt", "folded.txt"},
        {"Content-Disposition: attachment filename=forgot.txt", "forgot.txt"},
        {"Content-Disposition: attachment; FileName*=utf-8'de'Gr%C3%BC%C3%9Fe.txt",
         "Gr\303\274\303\237e.txt"},
        {"Content-Disposition: attachment; filename*=iso-8859-1''%fc.txt", "\303\274.txt"},
        {"Content-Disposition: attachment; filename=x; filename*=utf-8''y", "y"},
        {"Content-Disposition: attachment; filename*0*=utf-8''a%C3; filename*1*=%A4;\n"
         " filename*2=\"b.txt\"",
         "a\303\244b.txt"},
        {"Content-Disposition: attachment; filename*1=\"b.txt\"; filename*0=\"a\"", "ab.txt"},
        {"Content-Disposition: attachment; filename=\"=?utf-8?B?w6QudHh0?=\"", "\303\244.txt"},
        {"Content-Disposition: attachment; filename=\"\303\244.txt\"", "\303\244.txt"},
        {"Content-Disposition: attachment; filename=\"\344.txt\"", "\303\244.txt"},
        {"Content-Disposition: attachment; filename=\"C:\\\\dir\\\\x.txt\"", "C:_dir_x.txt"},
        {"Content-Disposition: attachment; filename=\"../../etc/passwd\"", ".._.._etc_passwd"},
        {"Content-Disposition: attachment; filename=\"..\"", ""},
        {"Content-Disposition: attachment; filename=\"a\tb\"", "a b"},
        {"Content-Disposition: attachment; filename=%", "%"},
        {"Content-Disposition: attachment; filename*=utf-8''%4", "%4"},
        {"Content-Disposition: attachment", ""},
        {"Content-Disposition: attachment\nContent-Type: image/png; name=n.png", "n.png"},
        {"Content-Disposition: attachment; filename=\"\"\nContent-Type: image/png; name=n.png",
         "n.png"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        char text[1024];
        int bytes = snprintf(text, sizeof text, "%s\n\nx", examples[i].headers);
        tide_text raw = exact((tide_text){text, (size_t)bytes});
        struct parsed parsed;
        parse(raw, &parsed);
        assert_int_equal(parsed.message.attachments_count, 1);
        assert_text(parsed.message.attachments[0].name, examples[i].name);
        parsed_done(&parsed);
        exact_free(raw);
    }
}

TEST(long_names_keep_their_extension)
{
    char text[2000];
    size_t bytes = (size_t)snprintf(text, sizeof text, "Content-Type: a/b; name=\"");
    for (int i = 0; i < 400; i++)
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "\303\244");
    bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, ".tar.gz\"\n\nx");
    struct parsed parsed;
    parse((tide_text){text, bytes}, &parsed);
    tide_text name = parsed.message.attachments[0].name;
    assert_true(name.bytes <= 200);
    assert_memory_equal(name.data + name.bytes - 3, ".gz", 3);
    parsed_done(&parsed);
}

/* MSG4: the region is the body, byte for byte. */
TEST(regions_are_exact)
{
    static const char *const ends[] = {"\n", "\r\n"};
    for (size_t e = 0; e < 2; e++) {
        const char *n = ends[e];
        char text[1024];
        int bytes = snprintf(text, sizeof text,
                             "Content-Type: multipart/mixed; boundary=b%s%s--b%s"
                             "Content-Type: image/png%sContent-Transfer-Encoding: base64%s%s"
                             "QUJD%sREVG%s%s--b%sContent-Type: a/b%s%s--b%s"
                             "Content-Type: a/c%s%sx%s--b--%s",
                             n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
        tide_text raw = exact((tide_text){text, (size_t)bytes});
        struct parsed parsed;
        parse(raw, &parsed);
        assert_int_equal(parsed.message.attachments_count, 3);
        const struct tide_attachment *png = &parsed.message.attachments[0];
        const char *expected = textf("QUJD%sREVG%s", n, n);
        assert_text((tide_text){raw.data + png->begin, (size_t)(png->end - png->begin)}, expected);
        tide_error err = {TIDE_OK, 0, ""};
        tide_buf out = heap_buf(6);
        OK(tide_attachment_decode(raw, png, &out, &err));
        assert_text(tide_buf_text(&out), "ABCDEF");
        const struct tide_attachment *empty = &parsed.message.attachments[1];
        assert_int_equal(empty->begin, empty->end);
        const struct tide_attachment *last = &parsed.message.attachments[2];
        assert_text((tide_text){raw.data + last->begin, (size_t)(last->end - last->begin)}, "x");
        /* A ceiling and a region outside are failures that change nothing. */
        assert_int_equal(tide_attachment_decode(raw, png, &out, &err), TIDE_FULL);
        assert_text(tide_buf_text(&out), "ABCDEF");
        struct tide_attachment outside = *png;
        outside.end = raw.bytes + 1;
        assert_int_equal(tide_attachment_decode(raw, &outside, &out, &err), TIDE_INVALID);
        assert_non_null(strstr(err.text, "attachment at"));
        tide_buf_done(&out);
        parsed_done(&parsed);
        exact_free(raw);
    }
}

TEST(encodings_tolerate_what_does_not_belong)
{
    static const struct {
        tide_encoding encoding;
        const char *encoded, *decoded;
    } examples[] = {
        {TIDE_ENCODING_BASE64, "QUJD", "ABC"},
        {TIDE_ENCODING_BASE64, "QU JD\r\n\tRA==", "ABCD"},
        {TIDE_ENCODING_BASE64, "QUJDRA", "ABCD"},
        {TIDE_ENCODING_BASE64, "QUJDREU", "ABCDE"},
        {TIDE_ENCODING_BASE64, "QQ==QUJD", "AABC"},
        {TIDE_ENCODING_BASE64, "QUJ!D*", "ABC"},
        {TIDE_ENCODING_BASE64, "====", ""},
        {TIDE_ENCODING_BASE64, "Q", ""},
        {TIDE_ENCODING_BASE64, "", ""},
        {TIDE_ENCODING_QUOTED, "a=20b=\r\nc=\nd", "a bcd"},
        {TIDE_ENCODING_QUOTED, "a= \t\r\nb", "ab"},
        {TIDE_ENCODING_QUOTED, "=e4=E4", "\344\344"},
        {TIDE_ENCODING_QUOTED, "a=ZZb=4", "a=ZZb=4"},
        {TIDE_ENCODING_QUOTED, "a=", "a"},
        {TIDE_ENCODING_QUOTED, "a_b", "a_b"},
        {TIDE_ENCODING_PLAIN, "a=20", "a=20"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        tide_text raw = exact(tide_text_of(examples[i].encoded));
        struct tide_attachment attachment = {.encoding = examples[i].encoding, .end = raw.bytes};
        tide_buf out = heap_buf(1 << 20);
        OK(tide_attachment_decode(raw, &attachment, &out, NULL));
        assert_text(tide_buf_text(&out), examples[i].decoded);
        tide_buf_done(&out);
        exact_free(raw);
    }
}

TEST(base64_gives_back_any_bytes)
{
    tide_rng rng = tide_rng_seeded(64);
    for (size_t round = 0; round < scaled(2000); round++) {
        char bytes[300], encoded[500];
        size_t count = (size_t)tide_rng_below(&rng, sizeof bytes);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (char)tide_rng_next(&rng);
        encode_base64(bytes, count, encoded);
        struct tide_attachment attachment = {.encoding = TIDE_ENCODING_BASE64,
                                             .end = strlen(encoded)};
        tide_buf out = heap_buf(count);
        OK(tide_attachment_decode(tide_text_of(encoded), &attachment, &out, NULL));
        assert_int_equal(out.bytes, count);
        assert_memory_equal(tide_buf_cstr(&out), bytes, count);
        tide_buf_done(&out);
    }
}
