/* words.h - actions and decisions in words, for people and for --json. */
#ifndef TIDE_DRIVE_COMMANDS_WORDS_H
#define TIDE_DRIVE_COMMANDS_WORDS_H

#include "drive/plan/plan.h"

enum { DRIVE_VERBS = TIDE_DRIVE_DROP + 1 };

const char *drive_verb_name(tide_drive_verb verb);  /* "upload_new", in --json */
const char *drive_verb_words(tide_drive_verb verb); /* "upload (new)" */
const char *drive_state_name(tide_drive_action_state state);
const char *drive_state_words(tide_drive_action_state state); /* "": it is ready */
const char *drive_notice_name(tide_drive_notice notice);      /* "edit_edit" */
const char *drive_notice_words(tide_drive_notice notice); /* the end of a sentence about a path */

/* Why an item online is not synced: "is a shared folder that is not synced". */
const char *drive_reason_text(tide_drive_reason reason);

#endif
