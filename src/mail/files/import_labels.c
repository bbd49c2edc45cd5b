/* import_labels.c - labels of imported mail: maps names in any language to ids. */
#include "base/json.h"
#include "mail/files/import_inside.h"
#include "mail/files/mbox.h"

/* Google's names for its own labels, in the language of the account.  An empty id: the name has no
 * equivalent in Gmail's API ("Opened" is not "Unread").  A name that is missing here becomes a user
 * label, until a sync reads the labels of the server. */
static const struct {
    const char *id;
    const char *names; /* separated by '|' */
} systems[] = {
    {"INBOX",
     "Inbox|Posteingang|Boîte de réception|Recibidos|Bandeja de entrada|Posta in arrivo|"
     "Caixa de entrada|Postvak IN|Odebrane|受信トレイ|收件箱|收件匣|Inkorgen|Indbakke|Innboks|"
     "Postilaatikko|Saapuneet|Doručená pošta|Входящие|Вхідні|Gelen Kutusu|받은편지함|"
     "Beérkező levelek|Εισερχόμενα|Mesaje primite|Kotak Masuk|Hộp thư đến|Safata d'entrada"},
    {"SENT", "Sent|Sent Mail|Gesendet|Messages envoyés|Enviados|Posta inviata|Verzonden|"
             "Verzonden berichten|Wysłane|送信済み|送信済みメール|已发邮件|寄件備份|Skickat|Sendt|"
             "Lähetetyt|Odeslaná pošta|Отправленные|Надіслані|Gönderilmiş Postalar|Gönderilenler|"
             "보낸편지함|Elküldött levelek|Απεσταλμένα|Mesaje trimise|Terkirim|Đã gửi|Enviats"},
    {"DRAFT",
     "Drafts|Draft|Entwürfe|Brouillons|Borradores|Bozze|Rascunhos|Concepten|"
     "Wersje robocze|下書き|草稿|草稿箱|Utkast|Kladder|Luonnokset|Koncepty|Черновики|Чернетки|"
     "Taslaklar|임시보관함|Piszkozatok|Πρόχειρα|Mesaje nefinalizate|Draf|Thư nháp|Esborranys"},
    {"SPAM", "Spam|Junk|迷惑メール|垃圾邮件|垃圾郵件|Skräppost|Søppelpost|Roskaposti|Спам|스팸함|"
             "Ανεπιθύμητα|Thư rác|Correu brossa"},
    {"TRASH",
     "Trash|Bin|Papierkorb|Corbeille|Papelera|Cestino|Lixeira|Lixo|Prullenbak|Kosz|"
     "ゴミ箱|已删除邮件|垃圾桶|Papperskorgen|Papirkurv|Roskakori|Koš|Корзина|Кошик|Çöp Kutusu|"
     "휴지통|Kuka|Κάδος|Coș de gunoi|Sampah|Thùng rác|Paperera"},
    {"STARRED",
     "Starred|Markiert|Favoris|Messages suivis|Suivis|Destacados|Speciali|Com estrela|"
     "Met ster|Oznaczone gwiazdką|スター付き|已加星标|已加星號|Stjärnmärkt|Stjernemarkeret|"
     "Stjernemerket|Tähdellä merkityt|S hvězdičkou|Помеченные|Із зірочкою|Yıldızlı|"
     "별표편지함|Csillagozott|Με αστέρι|Cu stea|Berbintang|Có gắn dấu sao|Destacats"},
    {"IMPORTANT", "Important|Wichtig|Importante|Importantes|Importanti|Belangrijk|Ważne|重要|"
                  "重要邮件|重要郵件|Viktigt|Vigtigt|Viktig|Tärkeät|Důležité|Важное|Важливі|Önemli|"
                  "중요편지함|Fontos|Σημαντικά|Penting|Quan trọng|Importants"},
    {"UNREAD", "Unread|Ungelesen|Non lus|Non lu|No leídos|Da leggere|Não lidas|Não lidos|"
               "Ongelezen|Nieprzeczytane|未読|未读|未讀|Olästa|Ulæst|Ulest|Lukemattomat|Nepřečtené|"
               "Непрочитанные|Непрочитані|Okunmamış|읽지않음|Olvasatlan|Μη αναγνωσμένα|Necitite|"
               "Belum dibaca|Chưa đọc|No llegits"},
    {"CHAT", "Chat|Chats"},
    {"CATEGORY_PERSONAL", "Category Personal|CATEGORY_PERSONAL"},
    {"CATEGORY_SOCIAL", "Category Social|CATEGORY_SOCIAL"},
    {"CATEGORY_PROMOTIONS", "Category Promotions|CATEGORY_PROMOTIONS"},
    {"CATEGORY_UPDATES", "Category Updates|CATEGORY_UPDATES"},
    {"CATEGORY_FORUMS", "Category Forums|CATEGORY_FORUMS"},
    {"", "Opened|Geöffnet|Ouvert|Abierto|Abiertos|Aperti|Aberto|Geopend|Archived|Archiviert|"
         "Messages archivés|Archivados|Archiviati|Arquivado|Gearchiveerd"},
};

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool is_one_of(tide_text name, const char *names)
{
    while (*names != '\0') {
        const size_t bytes = strcspn(names, "|");
        bool same = bytes == name.bytes;
        for (size_t i = 0; same && i < bytes; i++)
            same = lower(names[i]) == lower(name.data[i]);
        if (same)
            return true;
        names += bytes + (names[bytes] == '|');
    }
    return false;
}

/* ---- labels of the archive --------------------------------------------------------------- */

static tide_status remember(struct tide_importing *importing, tide_text id, tide_text name)
{
    struct tide_import_label *label = NULL;
    const size_t bytes = sizeof *label + id.bytes + name.bytes;
    for (label = importing->labels; label != NULL; label = label->next)
        if (tide_text_equal(label->id, id))
            return TIDE_OK;
    label = tide_mem_new(importing->mem, bytes);
    if (label == NULL)
        return tide_error_set(importing->err, TIDE_NO_MEMORY, "no memory for a label");
    char *room = (char *)(label + 1);
    memcpy(room, id.data, id.bytes);
    if (name.bytes > 0)
        memcpy(room + id.bytes, name.data, name.bytes);
    *label = (struct tide_import_label){.next = importing->labels,
                                        .id = {room, id.bytes},
                                        .name = {room + id.bytes, name.bytes},
                                        .bytes = bytes};
    importing->labels = label;
    return TIDE_OK;
}

struct loading {
    struct tide_importing *importing;
    tide_status rc;
};

static void load(const struct tide_label_row *row, void *arg)
{
    struct loading *loading = arg;
    if (loading->rc == TIDE_OK && row->id.bytes > 0)
        loading->rc =
            remember(loading->importing, row->id, row->name.bytes > 0 ? row->name : row->id);
}

tide_status tide_import_labels_load(struct tide_importing *importing)
{
    struct loading loading = {.importing = importing, .rc = TIDE_OK};
    if (importing->wanted->archive == NULL)
        return TIDE_OK;
    tide_status rc =
        tide_archive_labels_all(importing->wanted->archive, load, &loading, importing->err);
    return rc == TIDE_OK ? loading.rc : rc;
}

void tide_import_labels_free(struct tide_importing *importing)
{
    while (importing->labels != NULL) {
        struct tide_import_label *label = importing->labels;
        importing->labels = label->next;
        tide_mem_free(importing->mem, label, label->bytes);
    }
}

/* ---- the labels of a message ---------------------------------------------------------------- */

void tide_import_labels_clear(struct tide_importing *importing)
{
    tide_buf_clear(&importing->texts);
    importing->ends_count = 0;
}

tide_status tide_import_label_id(struct tide_importing *importing, tide_text id)
{
    size_t begin = 0;
    for (size_t i = 0; i < importing->ends_count; i++) {
        const tide_text one = {importing->texts.data + begin, importing->ends[i] - begin};
        if (tide_text_equal(one, id))
            return TIDE_OK;
        begin = importing->ends[i];
    }
    if (importing->ends_count == TIDE_IMPORT_LABELS_MAX)
        return TIDE_OK; /* ignore the excess labels; the message matters more */
    tide_status rc = tide_buf_add(&importing->texts, id.data, id.bytes);
    if (rc != TIDE_OK)
        return tide_error_set(importing->err, rc, "no memory for the labels of a message");
    importing->ends[importing->ends_count++] = importing->texts.bytes;
    return TIDE_OK;
}

/* The id for a name: the archive's own, else the name itself, which is added to the archive. */
static tide_status label_of(struct tide_importing *importing, tide_text name, const char *type,
                            tide_text *id_out)
{
    bool taken = false;
    for (struct tide_import_label *label = importing->labels; label != NULL; label = label->next) {
        if (tide_text_equal(label->name, name)) {
            *id_out = label->id;
            return TIDE_OK;
        }
        taken = taken || tide_text_equal(label->id, name);
    }
    char room[512];
    tide_text id = name;
    if (taken) { /* another label's id equals this name */
        memcpy(room, "import:", 7);
        memcpy(room + 7, name.data, name.bytes);
        id = (tide_text){room, name.bytes + 7};
    }
    tide_status rc = remember(importing, id, name);
    if (rc == TIDE_OK && !importing->wanted->dry_run)
        rc = tide_archive_label_name(importing->wanted->archive, id, name, tide_text_of(type), NULL,
                                     importing->err);
    *id_out = rc == TIDE_OK ? importing->labels->id : TIDE_TEXT_NONE;
    return rc;
}

/* `type`: "user" for a label of the server, "local" for one that only this archive has. */
static tide_status label_add(struct tide_importing *importing, tide_text name, const char *type)
{
    tide_text id = TIDE_TEXT_NONE;
    name = tide_text_trimmed(name);
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
        if (!is_one_of(name, systems[i].names))
            continue;
        id = tide_text_of(systems[i].id);
        return id.bytes == 0 ? TIDE_OK : tide_import_label_id(importing, id);
    }
    name = tide_utf8_cut(name, 400); /* Gmail's are 225 characters at most */
    if (name.bytes == 0 || memchr(name.data, '\0', name.bytes) != NULL)
        return TIDE_OK;
    TIDE_TRY(label_of(importing, name, type, &id));
    return tide_import_label_id(importing, id);
}

tide_status tide_import_label_name(struct tide_importing *importing, tide_text name)
{
    return label_add(importing, name, "user");
}

tide_status tide_import_label_local(struct tide_importing *importing, tide_text name)
{
    return label_add(importing, name, "local");
}

/* Names separated by commas; one that contains a comma is in quotes, with quotes inside doubled.
 * Decoded first: an encoded word hides its commas. */
tide_status tide_import_labels_takeout(struct tide_importing *importing, tide_text value)
{
    tide_buf *words = &importing->words;
    tide_buf_clear(words);
    tide_status rc = tide_header_words(&importing->decoder, value, words);
    if (rc == TIDE_NO_MEMORY)
        return tide_error_set(importing->err, rc, "no memory for the labels of a message");
    rc = TIDE_OK; /* keep what fits */
    char name[1024];
    size_t used = 0;
    bool quoted = false;
    for (size_t i = 0; rc == TIDE_OK && i <= words->bytes; i++) {
        const char c = i < words->bytes ? words->data[i] : ',';
        if (i < words->bytes && c == '"' && quoted && i + 1 < words->bytes &&
            words->data[i + 1] == '"') {
            i++;
        } else if (c == '"' && i < words->bytes) {
            quoted = !quoted;
            continue;
        } else if (c == ',' && (!quoted || i == words->bytes)) {
            rc = tide_import_label_name(importing, (tide_text){name, used});
            used = 0;
            continue;
        }
        if (used < sizeof name)
            name[used++] = c;
    }
    return rc;
}

/* Gmail's own ids of system labels. */
static bool is_system(tide_text id)
{
    for (size_t i = 0; i < id.bytes; i++)
        if (!(id.data[i] >= 'A' && id.data[i] <= 'Z') && id.data[i] != '_')
            return false;
    return id.bytes > 0 && id.bytes <= 64;
}

tide_status tide_import_labels_note(struct tide_importing *importing, tide_text labels)
{
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && labels.bytes > 0) {
        const char *comma = memchr(labels.data, ',', labels.bytes);
        tide_text piece = {labels.data,
                           comma == NULL ? labels.bytes : (size_t)(comma - labels.data)};
        const size_t step = piece.bytes + (comma != NULL);
        labels.data += step;
        labels.bytes -= step;
        const char *colon = piece.bytes == 0 ? NULL : memchr(piece.data, ':', piece.bytes);
        /* A name takes precedence over an id: ids of user labels belong to one account. */
        const bool system = colon == NULL && is_system(piece);
        if (colon != NULL && is_system((tide_text){piece.data, (size_t)(colon - piece.data)}))
            piece.bytes = (size_t)(colon - piece.data);
        else if (colon != NULL)
            piece = (tide_text){colon + 1, piece.bytes - (size_t)(colon + 1 - piece.data)};
        tide_buf_clear(&importing->words);
        rc = tide_mbox_decode(piece, &importing->words);
        if (rc != TIDE_OK)
            return tide_error_set(importing->err, rc, "no memory for the labels of a message");
        const tide_text text = tide_buf_text(&importing->words);
        rc = system || is_system(text) ? tide_import_label_id(importing, text)
                                       : tide_import_label_name(importing, text);
    }
    return rc;
}
