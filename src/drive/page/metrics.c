/* metrics.c - what this process does for its drives, all together; and what a user should know of each, by
 * its name.  There are at most TIDE_DRIVES_OPEN_MAX of them. */
#include "drive/page/page.h"

static double of(const json_t *drive, const char *side, const char *name)
{
    const json_t *object = side == NULL ? drive : json_object_get(drive, side);
    return json_number_value(json_object_get(object, name));
}

static double sum(const json_t *shown, const char *side, const char *name)
{
    const char *number = NULL;
    json_t *one = NULL;
    double all = 0;
    json_object_foreach((json_t *)(uintptr_t)shown, number, one) all += of(one, side, name);
    return all;
}

static void both(tide_metrics *lines, const char *name, const char *type, const char *meaning,
                 double down, double up)
{
    tide_metric(lines, name, type, meaning);
    tide_metric_line(lines, down, TIDE_LABELS({"direction", "down"}));
    tide_metric_line(lines, up, TIDE_LABELS({"direction", "up"}));
}

/* One line for each drive that was looked at and has it. */
static void each(tide_metrics *lines, const json_t *shown, const char *name, const char *meaning,
                 const char *field, double scale)
{
    const char *number = NULL;
    json_t *one = NULL;
    tide_metric(lines, name, "gauge", meaning);
    json_object_foreach((json_t *)(uintptr_t)shown, number, one)
    {
        const char *drive = json_string_value(json_object_get(one, "name"));
        if (drive != NULL && json_object_get(one, field) != NULL)
            tide_metric_line(lines, of(one, NULL, field) * scale, TIDE_LABELS({"drive", drive}));
    }
}

void drive_page_metrics(const json_t *shown, tide_metrics *lines)
{
    both(lines, "drive_transfers", "gauge", "Files of drives that are transferred now.",
         sum(shown, "downloading", "files"), sum(shown, "uploading", "files"));
    both(lines, "drive_transfers_bytes", "gauge", "Planned bytes of these files.",
         sum(shown, "downloading", "bytes"), sum(shown, "uploading", "bytes"));
    both(lines, "drive_transferred_total", "counter", "Files of drives that were transferred.",
         sum(shown, NULL, "downloaded"), sum(shown, NULL, "uploaded"));
    both(lines, "drive_transferred_bytes_total", "counter", "Bytes of these files.",
         sum(shown, NULL, "downloaded_bytes"), sum(shown, NULL, "uploaded_bytes"));
    tide_metric_single(lines, "drive_actions_waiting", "gauge",
                       "Actions of drives that are planned and not begun.",
                       sum(shown, NULL, "waiting"));
    each(lines, shown, "drive_conflicts", "Conflicts that are listed.", "conflicts", 1);
    each(lines, shown, "drive_deletions_waiting", "Deletions that wait for consent.",
         "deletions_waiting", 1);
    each(lines, shown, "drive_owed", "Items that failed and are tried again.", "owed", 1);
    each(lines, shown, "drive_bad", "Of these, items that are refused for what they are.", "bad",
         1);
    each(lines, shown, "drive_round_age_seconds",
         "Time since the last complete round: all that was there then is on both sides, or owed.",
         "round_age_ms", 0.001);
}
