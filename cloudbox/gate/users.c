/* users.c - the users of the cloud, found by address, with a part for each service. */
#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "cloudbox/gate/inside.h"

#include <ctype.h>

/* ---- finding ---- */

static uint64_t email_hash(tide_text email)
{
    uint64_t hash = TIDE_HASH_START;
    for (size_t i = 0; i < email.bytes; i++)
        hash = tide_hash_byte(hash, (uint8_t)tolower((unsigned char)email.data[i]));
    return hash == 0 ? 1 : hash;
}

static bool email_equal(const char *have, tide_text email)
{
    if (strlen(have) != email.bytes)
        return false;
    for (size_t i = 0; i < email.bytes; i++)
        if (have[i] != tolower((unsigned char)email.data[i]))
            return false;
    return true;
}

/* Two addresses with one hash: the second is looked for under hash + 1, and so on. */
static struct box_user *user_of(const box_cloud *cloud, tide_text email, uint64_t *free_out)
{
    uint64_t hash = email_hash(email);
    for (uint32_t index = 0; tide_map_get(&cloud->by_email, hash, &index);
         hash = hash == UINT64_MAX ? 1 : hash + 1)
        if (email_equal(cloud->users[index]->email, email))
            return cloud->users[index];
    *free_out = hash;
    return NULL;
}

struct box_user *box_cloud_user(box_cloud *cloud, tide_text email)
{
    uint64_t hash = 0;
    struct box_user *user = user_of(cloud, email, &hash);
    if (user == NULL)
        return NULL;
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (service->user_now != NULL)
            service->user_now(user, cloud->now_ms);
    }
    return user;
}

struct box_user *box_cloud_user_at(box_cloud *cloud, size_t index)
{
    return index < cloud->users_count ? cloud->users[index] : NULL;
}

/* ---- adding ---- */

/* An address that can stand in a header: something@something, no blanks. */
static bool email_is_plain(tide_text email)
{
    const char *at = email.bytes == 0 ? NULL : memchr(email.data, '@', email.bytes);
    if (at == NULL || at == email.data || at == email.data + email.bytes - 1 ||
        email.bytes > BOX_EMAIL_BYTES_MAX)
        return false;
    for (size_t i = 0; i < email.bytes; i++)
        if ((unsigned char)email.data[i] <= ' ' || (unsigned char)email.data[i] >= 127 ||
            strchr("<>\"(),:;[]\\", email.data[i]) != NULL)
            return false;
    return true;
}

static void user_free(struct box_user *user)
{
    const struct box_service *service = NULL;
    for (each_service(user->cloud, i, service)) {
        if (service->user_close != NULL && user->parts[i] != NULL)
            service->user_close(user->parts[i]);
    }
    tide_mem_free(tide_mem_heap(), user, sizeof *user);
}

void box_users_free(box_cloud *cloud)
{
    for (size_t i = 0; i < cloud->users_count; i++)
        user_free(cloud->users[i]);
    tide_mem_free(tide_mem_heap(), cloud->users, cloud->users_capacity * sizeof(struct box_user *));
}

static tide_status user_new(box_cloud *cloud, tide_text email, json_t *settings,
                            struct box_user **user_out, tide_error *err)
{
    struct box_user *user = tide_mem_new(tide_mem_heap(), sizeof *user);
    TIDE_ASSERT(user != NULL);
    user->cloud = cloud;
    user->number = (uint32_t)cloud->users_count + 1;
    for (size_t i = 0; i < email.bytes; i++)
        user->email[i] = (char)tolower((unsigned char)email.data[i]);
    json_object_set_new(settings, "email", json_string(user->email));

    tide_status rc = TIDE_OK;
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (rc == TIDE_OK && service->user_open != NULL)
            rc = service->user_open(user, settings, &user->parts[i], err);
    }
    if (rc != TIDE_OK)
        user_free(user);
    else
        *user_out = user;
    return rc;
}

static tide_status add_user(box_cloud *cloud, tide_text email, json_t *settings, tide_error *err)
{
    uint64_t hash = 0;
    if (!email_is_plain(email))
        return tide_error_set(err, TIDE_INVALID, "not an e-mail address: %.*s",
                              (int)(email.bytes > 200 ? 200 : email.bytes), email.data);
    if (user_of(cloud, email, &hash) != NULL)
        return tide_error_set(err, TIDE_EXISTS, "there is a user %.*s already", (int)email.bytes,
                              email.data);
    if (cloud->users_count == BOX_USERS_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d users", BOX_USERS_MAX);
    struct box_user *user = NULL;
    const tide_status rc = user_new(cloud, email, settings, &user, err);
    if (rc != TIDE_OK)
        return rc;
    TIDE_ASSERT(
        TIDE_GROW(cloud->users, cloud->users_capacity, cloud->users_count + 1, BOX_USERS_MAX));
    TIDE_ASSERT(tide_map_put(&cloud->by_email, hash, (uint32_t)cloud->users_count));
    cloud->users[cloud->users_count++] = user;
    return TIDE_OK;
}

tide_status box_cloud_user_add(box_cloud *cloud, tide_text email, json_t *settings, tide_error *err)
{
    json_t *kept = json_pack("{s:s, s:s}", "op", "user", "email", "");
    TIDE_ASSERT(kept != NULL);
    if (settings != NULL)
        TIDE_ASSERT(json_object_update(kept, settings) == 0);
    json_decref(settings);
    const tide_status rc = add_user(cloud, email, kept, err);
    if (rc == TIDE_OK)
        box_cloud_keep(cloud, kept);
    else
        json_decref(kept);
    return rc;
}

struct box_user *box_cloud_user_need(box_cloud *cloud, tide_text email, tide_error *err)
{
    struct box_user *user = box_cloud_user(cloud, email);
    if (user == NULL && box_cloud_user_add(cloud, email, NULL, err) == TIDE_OK)
        user = box_cloud_user(cloud, email);
    return user;
}

tide_status box_users_replay(box_cloud *cloud, const json_t *change, tide_error *err)
{
    tide_text email;
    const tide_status rc = tide_json_get_text(change, "email", &email, err);
    return rc != TIDE_OK ? rc : box_cloud_user_add(cloud, email, json_deep_copy(change), err);
}

/* ---- changes ---- */

void box_user_changed(struct box_user *user, json_t *change)
{
    user->changed = true;
    user->cloud->any_changed = true;
    json_object_set_new(change, "user", json_string(user->email));
    box_cloud_keep(user->cloud, change);
}

static void tell(struct box_user *user)
{
    const struct box_service *service = NULL;
    for (each_service(user->cloud, i, service)) {
        if (service->changed != NULL)
            service->changed(user->cloud, user);
    }
}

void box_users_tell(box_cloud *cloud)
{
    if (!cloud->any_changed)
        return;
    cloud->any_changed = false;
    for (size_t i = 0; i < cloud->users_count; i++) {
        struct box_user *user = cloud->users[i];
        if (user->changed)
            tell(user);
        user->changed = false;
    }
}

tide_status box_user_setting(json_t *settings, const char *what, const char *key, uint64_t fallback,
                             uint64_t max, uint64_t *number_out, tide_error *err)
{
    tide_status rc = TIDE_OK;
    *number_out = 0;
    if (json_object_get(settings, key) != NULL)
        rc = tide_json_get_u64(settings, key, number_out, err);
    if (rc == TIDE_OK && *number_out > max)
        rc = tide_error_set(err, TIDE_INVALID, "\"%s\" of a %s cannot be %llu", key, what,
                            (unsigned long long)*number_out);
    if (*number_out == 0)
        *number_out = fallback;
    json_object_set_new(settings, key, json_integer((json_int_t)*number_out));
    return rc;
}
