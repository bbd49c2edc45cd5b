/* temp_dir.h - the end of a test's temporary directory. */
#ifndef TIDE_TESTS_TEMP_DIR_H
#define TIDE_TESTS_TEMP_DIR_H

#include <ftw.h>
#include <stdio.h>

static inline int temp_dir_remove_one(const char *path, const struct stat *info, int type,
                                      struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

/* Removes the directory with all that is in it, following no link; 0: nothing of it is
 * left. */
static inline int temp_dir_remove(const char *dir)
{
    return nftw(dir, temp_dir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
