#include "cloudbox/serve/account.h"

#include "base/check.h"
#include "cloudbox/signin/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A crash leaves the old file or the new one: a new one comes under another name. */
static tide_status write_file(const char *file, const char *text, tide_error *err)
{
    char *temp = NULL;
    int printed = asprintf(&temp, "%s.new", file);
    TIDE_ASSERT(printed > 0);
    tide_status rc = TIDE_OK;
    (void)unlink(temp);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out == NULL) {
        rc = tide_error_os(err, errno, "write the key %s", file);
    } else if (fprintf(out, "%s\n", text) < 0 || fflush(out) != 0 || fsync(fd) != 0) {
        rc = tide_error_os(err, errno, "write the key %s", file);
        (void)fclose(out);
    } else if (fclose(out) != 0 || rename(temp, file) != 0) {
        rc = tide_error_os(err, errno, "write the key %s", file);
    }
    if (rc != TIDE_OK && fd >= 0)
        (void)unlink(temp);
    free(temp);
    return rc;
}

tide_status box_account_write(box_cloud *cloud, tide_text email, const char *file,
                              const char *origin, tide_error *err)
{
    json_t *key = NULL;
    tide_status rc = box_auth_make_service_account(box_cloud_auth(cloud), email, &key);
    if (rc == TIDE_EXISTS) {
        key = json_load_file(file, 0, NULL);
        if (!json_is_object(key)) {
            json_decref(key);
            return tide_error_set(err, TIDE_NOT_FOUND,
                                  "the state knows %.*s, but its key is not in %s; give the file "
                                  "that was written then, or another address",
                                  (int)email.bytes, email.data, file);
        }
    } else if (rc != TIDE_OK) {
        return tide_error_set(err, rc, "--service-account %.*s: %s", (int)email.bytes, email.data,
                              tide_status_name(rc));
    }
    char uri[400];
    (void)snprintf(uri, sizeof uri, "%s/token", origin);
    int set = json_object_set_new(key, "token_uri", json_string(uri));
    TIDE_ASSERT(set == 0);
    char *text = json_dumps(key, JSON_INDENT(2));
    TIDE_ASSERT(text != NULL);
    rc = write_file(file, text, err);
    free(text);
    json_decref(key);
    return rc;
}
