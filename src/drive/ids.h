/* ids.h - ids of OneDrive as rows have them and as they are sent (D13).
 *
 * An item's id is kept in lower case: answers spell it in both.  So is the id of a personal drive, which
 * some answers give without its leading zeros.  The id of any other drive is a text in which both
 * cases mean something: it is kept and sent as the server gave it.
 */
#ifndef TIDE_DRIVE_IDS_H
#define TIDE_DRIVE_IDS_H

#include "drive/store/look.h"

/* Of an item. */
void tide_drive_id_lower(tide_text id, char out[TIDE_DRIVE_LOOK_ID_BYTES]);
/* Of a drive: of a personal one lower case and 16 digits, of others as it is. */
void tide_drive_id_of_drive(tide_text id, char out[TIDE_DRIVE_LOOK_ID_BYTES]);
bool tide_drive_id_is_personal(tide_text id);

#endif
