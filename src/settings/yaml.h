/* yaml.h - reads a YAML file as a list of names and values, with their lines.
 *
 * Private to the settings module, but for tide_yaml_check(), which every reader of YAML calls
 * first.  Mappings become dotted names; anchors,
 * aliases, sequences, tags, a second document and a key given twice are
 * refused with file and line. */
#ifndef TIDE_ENGINE_SETTINGS_YAML_H
#define TIDE_ENGINE_SETTINGS_YAML_H

#include "base/status.h"
#include "base/text.h"

struct tide_yaml_entry {
    tide_text name;    /* dotted; borrowed during the visit */
    tide_text value;   /* borrowed during the visit */
    unsigned line;     /* from 1 */
    size_t start, end; /* bytes of the value in the file, quotes included */
    bool editable;     /* on one line, plain or quoted */
};

/* Refuses bytes that are not text, and directives ("%"): libfyaml does not end on some of them. */
tide_status tide_yaml_check(const char *path, tide_text yaml, tide_error *err);
/* Calls `visit` for each entry until it fails; its status is returned. */
typedef tide_status tide_yaml_visit(void *arg, const struct tide_yaml_entry *entry,
                                    tide_error *err);
tide_status tide_yaml_walk(const char *path, tide_text yaml, tide_yaml_visit *visit, void *arg,
                           tide_error *err);

#endif
