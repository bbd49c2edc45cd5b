#include "net/smtp.h"

#include "base/check.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIMEOUT_MS = 60000, CONNECT_TIMEOUT_MS = 10000, RESPONSE_TIMEOUT_S = 30, POLL_MS = 100 };

/* One message under way. */
struct sending {
    const struct tide_smtp *smtp;
    tide_text message;
    const tide_cancel *cancel; /* may be NULL */
    size_t read;               /* bytes of it that libcurl has taken */
    CURL *easy;
    CURLM *multi;
    struct curl_slist *recipients;
    char curl_text[CURL_ERROR_SIZE];
    char *answer;         /* TIDE_SMTP_ANSWER_BYTES */
    int code;             /* of the last answer; 0: none */
    curl_socket_t socket; /* of the connection; CURL_SOCKET_BAD: none */
    bool done;            /* libcurl has ended, with `result` */
    CURLcode result;
};

/* ---- plain or not ------------------------------------------------------------------- */

/* The host of SCHEME://HOST[:PORT], without the brackets of an address of version 6. */
static tide_text host_of(const char *url)
{
    const char *at = strstr(url, "://");
    at = at == NULL ? url : at + 3;
    if (at[0] == '[')
        return (tide_text){at + 1, strcspn(at + 1, "]")};
    return (tide_text){at, strcspn(at, ":/?#")};
}

/* Four numbers of which the first is 127: "127.0.0.1", and not "127.0.0.1.example.com". */
static bool is_loopback_4(tide_text host)
{
    unsigned dots = 0;
    for (size_t i = 0; i < host.bytes; i++) {
        if (host.data[i] == '.')
            dots++;
        else if (host.data[i] < '0' || host.data[i] > '9')
            return false;
    }
    return dots == 3 && host.bytes > 4 && memcmp(host.data, "127.", 4) == 0;
}

bool tide_smtp_may_be_plain(const char *url, const char *ca_file)
{
    const tide_text host = host_of(url);
    return ca_file[0] == '\0' && strncmp(url, "smtps://", 8) != 0 &&
           (tide_text_equal(host, tide_text_of("localhost")) ||
            tide_text_equal(host, tide_text_of("::1")) || is_loopback_4(host));
}

/* ---- libcurl's callbacks -------------------------------------------------------------- */

static size_t on_read(char *bytes, size_t size, size_t count, void *arg)
{
    struct sending *sending = arg;
    const size_t left = sending->message.bytes - sending->read;
    const size_t part = size * count < left ? size * count : left;
    if (part > 0)
        memcpy(bytes, sending->message.data + sending->read, part);
    sending->read += part;
    return part;
}

/* Keeps the last line of the server.  Lines of an answer in several lines have a '-' behind the
 * code. */
static size_t on_line(char *bytes, size_t size, size_t count, void *arg)
{
    struct sending *sending = arg;
    const size_t line = size * count;
    if (line >= 3 && memcmp(bytes, "221", 3) == 0)
        return line; /* the answer to QUIT, which follows a refusal */
    if (line < 3 || bytes[0] < '2' || bytes[0] > '5' || bytes[1] < '0' || bytes[1] > '9' ||
        bytes[2] < '0' || bytes[2] > '9')
        return line;
    sending->code = (bytes[0] - '0') * 100 + (bytes[1] - '0') * 10 + (bytes[2] - '0');
    size_t kept = 0;
    while (kept < line && kept < TIDE_SMTP_ANSWER_BYTES - 1 && bytes[kept] >= 0x20 &&
           bytes[kept] < 0x7f) {
        sending->answer[kept] = bytes[kept];
        kept++;
    }
    sending->answer[kept] = '\0';
    return line;
}

static bool is_canceled(const struct sending *sending)
{
    return sending->cancel != NULL && tide_canceled(sending->cancel) != TIDE_CANCEL_NONE;
}

/* libcurl waits for the answer to a message inside one call of curl_multi_perform(), and asks here
 * about once a second whether to go on. */
static int on_progress(void *arg, curl_off_t down, curl_off_t down_now, curl_off_t up,
                       curl_off_t up_now)
{
    (void)down;
    (void)down_now;
    (void)up;
    (void)up_now;
    return is_canceled(arg) ? 1 : 0;
}

static int on_socket(void *arg, curl_socket_t socket, curlsocktype purpose)
{
    struct sending *sending = arg;
    (void)purpose;
    sending->socket = socket;
    return CURL_SOCKOPT_OK;
}

static int on_close(void *arg, curl_socket_t socket)
{
    struct sending *sending = arg;
    if (sending->socket == socket)
        sending->socket = CURL_SOCKET_BAD;
    return close(socket);
}

/* libcurl says QUIT when it drops a connection, and waits for the answer as long as a message may
 * take.  A call that was canceled, or whose server does not answer, must not wait again. */
static void hang_up(struct sending *sending)
{
    if (sending->socket != CURL_SOCKET_BAD)
        (void)shutdown(sending->socket, SHUT_RDWR);
}

/* ---- setting up ------------------------------------------------------------------------ */

#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (curl_easy_setopt(easy, option, value) != CURLE_OK)                                     \
            return TIDE_NO_MEMORY;                                                                 \
    } while (0)

static tide_status security_set(struct sending *sending)
{
    const struct tide_smtp *smtp = sending->smtp;
    CURL *easy = sending->easy;
    const bool plain = tide_smtp_may_be_plain(smtp->url, smtp->ca_file);
    SET(CURLOPT_USE_SSL, (long)(plain ? CURLUSESSL_NONE : CURLUSESSL_ALL));
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (smtp->ca_file[0] != '\0')
        SET(CURLOPT_CAINFO, smtp->ca_file);
    if (smtp->user[0] != '\0') {
        SET(CURLOPT_USERNAME, smtp->user);
        SET(CURLOPT_PASSWORD, smtp->password);
    }
    return TIDE_OK;
}

static tide_status options_set(struct sending *sending)
{
    const struct tide_smtp *smtp = sending->smtp;
    CURL *easy = sending->easy;
    const uint32_t total_ms = smtp->total_timeout_ms == 0 ? TIMEOUT_MS : smtp->total_timeout_ms;
    sending->recipients = curl_slist_append(NULL, smtp->to);
    if (sending->recipients == NULL)
        return TIDE_NO_MEMORY;
    SET(CURLOPT_URL, smtp->url);
    SET(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    SET(CURLOPT_ERRORBUFFER, sending->curl_text);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, sending);
    SET(CURLOPT_QUICK_EXIT, 1L); /* canceling does not wait for a slow name server */
    SET(CURLOPT_CONNECTTIMEOUT_MS,
        (long)(total_ms < CONNECT_TIMEOUT_MS ? total_ms : CONNECT_TIMEOUT_MS));
    SET(CURLOPT_TIMEOUT_MS, (long)total_ms);
    SET(CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)RESPONSE_TIMEOUT_S);
    SET(CURLOPT_FORBID_REUSE, 1L); /* QUIT belongs to this call and its limits */
    SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
    SET(CURLOPT_SOCKOPTDATA, sending);
    SET(CURLOPT_CLOSESOCKETFUNCTION, on_close);
    SET(CURLOPT_CLOSESOCKETDATA, sending);
    SET(CURLOPT_MAIL_FROM, smtp->from);
    SET(CURLOPT_MAIL_RCPT, sending->recipients);
    SET(CURLOPT_UPLOAD, 1L);
    SET(CURLOPT_READFUNCTION, on_read);
    SET(CURLOPT_READDATA, sending);
    SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)sending->message.bytes);
    SET(CURLOPT_HEADERFUNCTION, on_line);
    SET(CURLOPT_HEADERDATA, sending);
    return security_set(sending);
}

/* ---- sending --------------------------------------------------------------------------- */

static void take_result(struct sending *sending)
{
    int left = 0;
    CURLMsg *message = NULL;
    while ((message = curl_multi_info_read(sending->multi, &left)) != NULL)
        if (message->msg == CURLMSG_DONE) {
            sending->done = true;
            sending->result = message->data.result;
        }
}

/* Not curl_easy_perform(): a call that is canceled before its message is sent ends within
 * POLL_MS. */
static tide_status perform(struct sending *sending)
{
    while (!sending->done) {
        int running = 0;
        if (is_canceled(sending))
            return TIDE_CANCELED;
        if (curl_multi_perform(sending->multi, &running) != CURLM_OK ||
            (running > 0 && curl_multi_poll(sending->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK))
            return TIDE_NO_MEMORY;
        take_result(sending);
    }
    return sending->result == CURLE_ABORTED_BY_CALLBACK ? TIDE_CANCELED : TIDE_OK;
}

/* A code of 4xx and 5xx is the server's own word on the message, whatever libcurl makes of it. */
static tide_status refused(const struct sending *sending, tide_error *err)
{
    const bool sign_in = sending->result == CURLE_LOGIN_DENIED;
    const tide_status rc = sending->code < 500 ? TIDE_SERVER : sign_in ? TIDE_AUTH : TIDE_PERMANENT;
    (void)tide_error_set(err, rc, "%s %s: %s", sending->smtp->url,
                         sign_in ? "refuses the sign-in" : "refuses the mail", sending->answer);
    if (err != NULL)
        err->code = sending->code;
    return rc;
}

static tide_status outcome(const struct sending *sending, tide_error *err)
{
    const char *url = sending->smtp->url;
    const char *text =
        sending->curl_text[0] != '\0' ? sending->curl_text : curl_easy_strerror(sending->result);
    if (sending->result == CURLE_OK)
        return TIDE_OK;
    if (sending->code >= 400)
        return refused(sending, err);
    switch (sending->result) {
    case CURLE_OUT_OF_MEMORY:
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory", url);
    case CURLE_USE_SSL_FAILED:
        return tide_error_set(err, TIDE_PERMANENT, "%s does not offer STARTTLS; nothing was sent",
                              url);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CONNECT_ERROR:
        return tide_error_set(err, TIDE_PERMANENT, "%s cannot be trusted: %s", url, text);
    case CURLE_LOGIN_DENIED: /* it offers no way to sign in that both know */
        return tide_error_set(err, TIDE_AUTH, "%s refuses the sign-in: %s", url, text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return tide_error_set(err, TIDE_INVALID, "%s is not a mail server's URL", url);
    default:
        break;
    }
    /* Behind the last byte the server may have taken it; before, it cannot. */
    if (sending->read >= sending->message.bytes)
        return tide_error_set(err, TIDE_UNKNOWN, "%s did not say whether it has taken the mail: %s",
                              url, text);
    return tide_error_set(err, TIDE_NETWORK, "%s: %s", url, text);
}

tide_status tide_smtp_send(const struct tide_smtp *smtp, tide_text message,
                           const tide_cancel *cancel, char answer_out[TIDE_SMTP_ANSWER_BYTES],
                           tide_error *err)
{
    TIDE_ASSERT(message.bytes > 0);
    struct sending sending = {.smtp = smtp,
                              .message = message,
                              .cancel = cancel,
                              .answer = answer_out,
                              .socket = CURL_SOCKET_BAD};
    answer_out[0] = '\0';
    sending.easy = curl_easy_init();
    sending.multi = curl_multi_init();
    tide_status rc = TIDE_NO_MEMORY;
    if (sending.easy != NULL && sending.multi != NULL)
        rc = options_set(&sending);
    if (rc == TIDE_OK && curl_multi_add_handle(sending.multi, sending.easy) != CURLM_OK)
        rc = TIDE_NO_MEMORY;
    if (rc == TIDE_OK) {
        rc = perform(&sending);
        if (rc != TIDE_OK)
            hang_up(&sending);
        (void)curl_multi_remove_handle(sending.multi, sending.easy);
    }
    if (rc == TIDE_OK)
        rc = outcome(&sending, err);
    else if (rc == TIDE_CANCELED)
        (void)tide_error_set(err, rc, "%s: canceled", smtp->url);
    else
        (void)tide_error_set(err, rc, "%s: no memory", smtp->url);
    curl_easy_cleanup(sending.easy);
    curl_multi_cleanup(sending.multi);
    curl_slist_free_all(sending.recipients);
    return rc;
}
