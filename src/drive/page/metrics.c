/* metrics.c - what this process does for its drives, all together: names of drives are no labels. */
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
}
