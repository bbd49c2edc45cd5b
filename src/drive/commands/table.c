/* table.c - the commands of the drive system and their flags. */
#include "drive/commands/home.h"

static const struct cli_flag add_flags[] = {
    {"account", "ACCOUNT", "use this OneDrive account (default: the only one)"},
    {"name", "NAME", "call the drive so (default: the last part of DIR)"},
    {"mode", "MODE:two-way download-only upload-only",
     "sync two-way, download-only or upload-only (default: two-way)"},
    {"drive", "ID",
     "sync the drive with this id, such as a SharePoint library (default: your own)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag sync_flags[] = {
    {"account", "ACCOUNT", "sync the drives of this account, instead of DRIVE"},
    {"full", NULL, "list all items online again, and compare them"},
    {"timeout", "TIME", "stop after this time, such as 30m; the next run resumes"},
    {"no-wait", NULL, "ask the running process (`tidemark serve`) to do it, and do not wait"},
    {NULL, NULL, NULL},
};

static const struct cli_flag plan_flags[] = {
    {"stored", NULL, "plan from what was seen last, without looking at both sides first"},
    {NULL, NULL, NULL},
};

static const struct cli_flag conflicts_flags[] = {
    {"keep", "WHICH:both local remote",
     "with resolve: keep both versions, the local or the remote one (default: both)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag deletions_flags[] = {
    {"listed", "NUMBER", "with accept and restore: decide on the deletions that list has shown"},
    {NULL, NULL, NULL},
};

static const struct cli_flag ignore_flags[] = {
    {"format", "FORMAT:patterns onedrive sync-list rclone",
     "with import: FILE is a list of patterns, a config or sync_list of onedrive, or of rclone"},
    {NULL, NULL, NULL},
};

const struct cli_command drive_commands[] = {
    {"drive", "add", "DIR", 1, 1, add_flags,
     "Sync a folder with OneDrive; files that are there already are recognized by their hashes.",
     cli_drive_add},
    {"drive", "list", "", 0, 0, NULL, "List the drives.", cli_drive_list},
    {"drive", "sync", "[DRIVE...]", 0, CLI_ARGUMENTS_MAX, sync_flags,
     "Sync once, both ways at the same time. Safe to interrupt; the next run resumes.",
     cli_drive_sync},
    {"drive", "watch", "[DRIVE...]", 0, CLI_ARGUMENTS_MAX, NULL,
     "Sync as files change, here and online, until it is stopped. `tidemark serve` does so too.",
     cli_drive_watch},
    {"drive", "status", "[DRIVE...]", 0, CLI_ARGUMENTS_MAX, NULL,
     "Show how far each drive is, what runs, and what is owed, by name.", cli_drive_status},
    {"drive", "plan", "[DRIVE...]", 0, CLI_ARGUMENTS_MAX, plan_flags,
     "Show what a sync would do, and change nothing on either side.", cli_drive_plan},
    {"drive", "verify", "[DRIVE...]", 0, CLI_ARGUMENTS_MAX, NULL,
     "Hash the files here again and compare them with what was synced.", cli_drive_verify},
    {"drive", "conflicts", "[list|show|resolve] [DRIVE] [ID]", 0, 60, conflicts_flags,
     "List versions that were kept beside each other, or choose between them.",
     cli_drive_conflicts},
    {"drive", "deletions", "[list|accept|restore] [DRIVE]", 0, 60, deletions_flags,
     "List deletions that wait for your consent, accept them, or bring the files back.",
     cli_drive_deletions},
    {"drive", "accept", "DRIVE PATH", 2, 2, NULL,
     "Take a file whose size or hash never fits, as OneDrive sends it.", cli_drive_accept},
    {"drive", "ignore", "[list|add|remove|import] [DRIVE] [PATTERN|FILE...]", 0, CLI_ARGUMENTS_MAX,
     ignore_flags, "List or change the paths that are not synced.", cli_drive_ignore},
    {"drive", "mode", "DRIVE MODE", 2, 2, NULL,
     "Change a drive to two-way, download-only or upload-only.", cli_drive_mode},
    {"drive", "remove", "DRIVE", 1, 1, NULL,
     "Stop syncing a folder; all files stay, here and online.", cli_drive_remove},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
