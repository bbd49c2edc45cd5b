/* Which addresses are public: every class that is not, at its first and last address, and the
 * addresses beside it; what URLs become; which bytes are an image. */
#include "net/image/address.h"
#include "net/image/type.h"
#include "net/image/url.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

static bool is_public(const char *text)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&storage;
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        storage.ss_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
        storage.ss_family = AF_INET6;
    }
    return tide_address_is_public((const struct sockaddr *)&storage);
}

static const struct {
    const char *what;
    const char *before, *first, *last, *after; /* NULL: the class beside it is not public either */
} classes[] = {
    {"this network", NULL, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
    {"private", "9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
    {"CGNAT", "100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
    {"loopback", "126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
    {"link-local", "169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
    {"private", "172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
    {"protocol assignments", "191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
    {"documentation", "192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
    {"6to4 relays", "192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
    {"private", "192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
    {"benchmarks", "198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
    {"documentation", "198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
    {"documentation", "203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
    {"multicast", "223.255.255.255", "224.0.0.0", "239.255.255.255", NULL},
    {"reserved, broadcast", NULL, "240.0.0.0", "255.255.255.255", NULL},
    {"unspecified", NULL, "::", "::", NULL},
    {"loopback", NULL, "::1", "::1", NULL},
    {"compatible", NULL, "::8.8.8.8", "::127.0.0.1", NULL},
    {"mapped", NULL, "::ffff:0.0.0.0", "::ffff:255.255.255.255", NULL},
    {"mapped, public", NULL, "::ffff:8.8.8.8", "::ffff:1.1.1.1", NULL},
    {"translated", NULL, "::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8", NULL},
    {"NAT64", NULL, "64:ff9b::", "64:ff9b::ffff:ffff", NULL},
    {"NAT64 of loopback", NULL, "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", NULL},
    {"local NAT64", NULL, "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", NULL},
    {"discard", NULL, "100::", "100::ffff:ffff:ffff:ffff", NULL},
    {"below global unicast", NULL, "1fff::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL},
    {"protocol assignments", NULL, "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
     "2001:200::"},
    {"Teredo", NULL, "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", NULL},
    {"documentation", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
     "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"},
    {"6to4", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"},
    {"6to4 of loopback", NULL, "2002:7f00:1::1", "2002:a00:1::1", NULL},
    {"documentation", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"},
    {"above global unicast", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL},
    {"unique-local", NULL, "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL},
    {"link-local", NULL, "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL},
    {"site-local", NULL, "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL},
    {"multicast", NULL, "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL},
};

TEST(each_class_ends_where_its_registry_says)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (is_public(classes[i].first) || is_public(classes[i].last))
            fail_msg("%s: %s to %s is public", classes[i].what, classes[i].first, classes[i].last);
        if (classes[i].before != NULL && !is_public(classes[i].before))
            fail_msg("%s is not public", classes[i].before);
        if (classes[i].after != NULL && !is_public(classes[i].after))
            fail_msg("%s is not public", classes[i].after);
    }
}

TEST(ordinary_addresses_are_public)
{
    static const char *const addresses[] = {"1.1.1.1",
                                            "8.8.8.8",
                                            "93.184.216.34",
                                            "142.250.74.37",
                                            "2606:4700::1111",
                                            "2a00:1450:4001:81c::200e",
                                            "2001:4860:4860::8888"};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        assert_true(is_public(addresses[i]));
}

TEST(no_other_family_is_public)
{
    const struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
    assert_false(tide_address_is_public((const struct sockaddr *)&local));
}

/* ---- URLs ---- */

static const struct {
    const char *base, *reference, *result; /* NULL: refused */
} urls[] = {
    {"", "https://a.example/x.png", "https://a.example/x.png"},
    {"", "HTTP://A.example", "http://A.example/"},
    {"", "https://user:secret@a.example/x#part", "https://a.example/x"},
    {"", "ftp://a.example/x", NULL},
    {"", "file:///etc/passwd", NULL},
    {"", "gopher://a.example/", NULL},
    {"", "javascript:alert(1)", NULL},
    {"", "data:image/png;base64,AAAA", NULL},
    {"", "//a.example/x", NULL},
    {"", "/x", NULL},
    {"", "", NULL},
    {"", "http://", NULL},
    {"", "http:///x", "http://x/"}, /* as browsers read it */
    {"", "http://a.example:99999/", NULL},
    {"https://a.example/d/x?q", "y", "https://a.example/d/y"},
    {"https://a.example/d/x?q", "/y", "https://a.example/y"},
    {"https://a.example/d/x?q", "//b.example/y", "https://b.example/y"},
    {"https://a.example/d/x?q", "http://b.example/y", "http://b.example/y"},
    {"https://a.example/d/x?q", "?r", "https://a.example/d/x?r"},
    {"https://a.example/d/x", "a b.png", "https://a.example/d/a%20b.png"},
    {"https://a.example/d/x", "ftp://b.example/y", NULL},
    {"https://a.example/d/x", "file:///etc/passwd", NULL},
    {"https://a.example/d/x", "https://u:p@b.example/", "https://b.example/"},
};

TEST(urls_are_resolved_and_lose_names_and_passwords)
{
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        tide_buf url = heap_buf(1 << 20);
        OK(tide_buf_add_text(&url, urls[i].base));
        const tide_status rc = tide_url_resolve(&url, tide_text_of(urls[i].reference));
        if ((rc == TIDE_OK) != (urls[i].result != NULL) ||
            (rc == TIDE_OK && strcmp(tide_buf_cstr(&url), urls[i].result) != 0))
            fail_msg("\"%s\" + \"%s\": %s, %s", urls[i].base, urls[i].reference,
                     tide_status_name(rc), tide_buf_cstr(&url));
        if (rc != TIDE_OK)
            assert_string_equal(tide_buf_cstr(&url), urls[i].base);
        tide_buf_done(&url);
    }
}

TEST(a_zero_or_a_line_end_is_no_url)
{
    tide_buf url = heap_buf(1 << 20);
    assert_int_equal(tide_url_resolve(&url, (tide_text){"http://a.example/\0x", 19}), TIDE_INVALID);
    assert_int_equal(tide_url_resolve(&url, TIDE_TEXT("http://a.example/\r\nX-Y: z")),
                     TIDE_INVALID);
    tide_buf_done(&url);
}

/* ---- images ---- */

static const struct {
    const char *bytes;
    size_t count;
    const char *type;
} images[] = {
    {"\x89PNG\r\n\x1a\nrest", 12, "image/png"},
    {"\x89PNG\r\n\x1a", 7, NULL},
    {"\xff\xd8\xff\xe0", 4, "image/jpeg"},
    {"\xff\xd8", 2, NULL},
    {"GIF89a..", 8, "image/gif"},
    {"GIF87a", 6, "image/gif"},
    {"GIF88a", 6, NULL},
    {"RIFF\1\2\3\4WEBPVP8 ", 16, "image/webp"},
    {"RIFF\1\2\3\4WEBPVP8L", 16, "image/webp"},
    {"RIFF\1\2\3\4WAVEfmt ", 16, NULL},
    {"RIFF\1\2\3\4WEB", 11, NULL},
    {"<svg xmlns='http://www.w3.org/2000/svg'>", 40, NULL},
    {"<html>", 6, NULL},
    {"BM..", 4, NULL},
    {"%PDF-1.4", 8, NULL},
    {" GIF89a", 7, NULL},
    {"", 0, NULL},
};

TEST(an_image_is_known_by_its_first_bytes)
{
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        const char *type = tide_image_type((tide_text){images[i].bytes, images[i].count});
        if (images[i].type == NULL)
            assert_null(type);
        else
            assert_string_equal(type, images[i].type);
    }
    assert_null(tide_image_type(TIDE_TEXT_NONE));
}
