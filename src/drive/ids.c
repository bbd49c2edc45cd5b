#include "drive/ids.h"

#include <ctype.h>
#include <string.h>

void tide_drive_id_lower(tide_text id, char out[TIDE_DRIVE_LOOK_ID_BYTES])
{
    const size_t bytes =
        id.bytes < TIDE_DRIVE_LOOK_ID_BYTES ? id.bytes : TIDE_DRIVE_LOOK_ID_BYTES - 1;
    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)tolower((unsigned char)id.data[i]);
    out[bytes] = '\0';
}

bool tide_drive_id_is_personal(tide_text id)
{
    for (size_t i = 0; i < id.bytes; i++)
        if (isxdigit((unsigned char)id.data[i]) == 0)
            return false;
    return id.bytes > 0;
}

void tide_drive_id_of_drive(tide_text id, char out[TIDE_DRIVE_LOOK_ID_BYTES])
{
    static const char zeros[] = "0000000000000000";
    char lower[TIDE_DRIVE_LOOK_ID_BYTES];
    tide_drive_id_lower(id, lower);
    const size_t bytes = strlen(lower);
    const size_t missing = bytes < sizeof zeros - 1 ? sizeof zeros - 1 - bytes : 0;
    if (tide_drive_id_is_personal(id)) {
        memcpy(out, zeros, missing);
        memcpy(out + missing, lower, bytes + 1);
    } else {
        memcpy(out, id.data == NULL ? "" : id.data, bytes); /* letters of both cases differ in it */
        out[bytes] = '\0';
    }
}
