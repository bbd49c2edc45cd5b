/* account.h - the key file of a service account, as Google's console gives it. */
#ifndef BOX_SERVE_ACCOUNT_H
#define BOX_SERVE_ACCOUNT_H

#include "cloudbox/gate/cloud.h"

/* Makes the account and writes its key to `file`, readable by its owner alone; the
 * key asks for its tokens at `origin`.  An account that a kept state knows
 * already keeps its key: only the origin in the file is brought up to date. */
tide_status box_account_write(box_cloud *cloud, tide_text email, const char *file,
                              const char *origin, tide_error *err);

#endif
