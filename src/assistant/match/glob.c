#include "assistant/match/glob.h"

#include "assistant/match/fold.h"

/* After a mismatch only the last '*' is extended: an earlier one could do nothing that the last
 * cannot do as well (GLB1). */
bool tide_glob_match(tide_text glob, tide_text text)
{
    bool starred = false;
    tide_text after_star = TIDE_TEXT_NONE, resume = TIDE_TEXT_NONE;
    while (text.bytes > 0) {
        if (glob.bytes > 0 && glob.data[0] == '*') {
            glob = (tide_text){glob.data + 1, glob.bytes - 1};
            starred = true;
            after_star = glob;
            resume = text;
            continue;
        }
        tide_text glob_rest = glob, text_rest = text;
        const bool any = glob.bytes > 0 && glob.data[0] == '?';
        if (glob.bytes > 0) {
            const uint32_t wanted = tide_fold_take(&glob_rest);
            if (tide_fold_take(&text_rest) == wanted || any) {
                glob = glob_rest;
                text = text_rest;
                continue;
            }
        }
        if (!starred)
            return false;
        (void)tide_fold_take_exact(&resume);
        glob = after_star;
        text = resume;
    }
    while (glob.bytes > 0 && glob.data[0] == '*')
        glob = (tide_text){glob.data + 1, glob.bytes - 1};
    return glob.bytes == 0;
}

bool tide_glob_match_address(tide_text glob, tide_text address)
{
    if (glob.bytes > 0 && memchr(glob.data, '@', glob.bytes) != NULL)
        return tide_glob_match(glob, address);
    const char *at = address.bytes == 0 ? NULL : memrchr(address.data, '@', address.bytes);
    if (at == NULL)
        return false;
    return tide_glob_match(glob,
                           (tide_text){at + 1, address.bytes - (size_t)(at + 1 - address.data)});
}
