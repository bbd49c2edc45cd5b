/* labels.h - the numbers of Gmail's own labels. */
#ifndef BOX_LABELS_H
#define BOX_LABELS_H

/* Labels are small numbers; the system ones are fixed. */
enum {
    BOX_LABEL_INBOX,
    BOX_LABEL_SPAM,
    BOX_LABEL_TRASH,
    BOX_LABEL_UNREAD,
    BOX_LABEL_STARRED,
    BOX_LABEL_IMPORTANT,
    BOX_LABEL_SENT,
    BOX_LABEL_DRAFT,
    BOX_LABEL_CHAT,
    BOX_LABEL_CATEGORY_PERSONAL,
    BOX_LABEL_CATEGORY_SOCIAL,
    BOX_LABEL_CATEGORY_PROMOTIONS,
    BOX_LABEL_CATEGORY_UPDATES,
    BOX_LABEL_CATEGORY_FORUMS,
    BOX_LABELS_SYSTEM, /* how many */
};

#endif
