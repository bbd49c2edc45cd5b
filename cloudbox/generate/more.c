#include "cloudbox/generate/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* Of arrays whose names end in the same letters; then a greeting, an ending, "wrote", the days. */
#define TONGUE(x, greeting, ending, wrote, ...)                                                    \
    {                                                                                              \
        people_##x, COUNT(people_##x), {talks_##x, talks_##x, talks_##x},                          \
            {COUNT(talks_##x), COUNT(talks_##x), COUNT(talks_##x)}, sentences_##x,                 \
            COUNT(sentences_##x), print_##x, COUNT(print_##x), print_##x, COUNT(print_##x),        \
            greeting, ending, wrote,                                                               \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* ---- German ---- */

static const struct box_person people_de[] = {
    {"Jürgen Müller", "juergen.mueller"}, {"Käthe Schröder", "k.schroeder"},
    {"Anna Weiß", "anna.weiss"},          {"Björn Köhler", "bkoehler"},
    {"Sabine Grünwald", "sabine"},        {"Tobias Lehmann", "tobias.lehmann"},
    {"Ulrike Jäger", "u.jaeger"},         {"Matthias Vogt", "matthias"},
};
static const struct box_topic talks_de[] = {
    {"Besprechung zu {p} am {w}",
     {"hast du am {w} um {t} Uhr Zeit für eine kurze Besprechung zu {p}? Wir müssen den Zeitplan "
      "festlegen und klären, wer den Bericht für {c} schreibt.",
      "Bitte sag mir bis zum {d} Bescheid, dann verschicke ich die Einladung."},
     {"{w} um {t} Uhr passt mir gut.",
      "Da bin ich leider in {v}. Ginge es auch eine Stunde später?", "Ich bringe die Zahlen mit.",
      "Können wir das am Telefon machen?",
      "Neuer Termin: {d}, gleiche Uhrzeit. Bitte kurz bestätigen.", "Bestätigt, bis {w}!"}},
    {"Angebot für {b}",
     {"ein Kunde aus {v} fragt nach {q} Stück, Lieferung spätestens am {d}. Können wir das "
      "schaffen?",
      "Er würde {a} EUR je Stück zahlen und wartet bis {w} auf Antwort."},
     {"Auf Lager sind genug. Die Lieferung dauert vier Werktage.",
      "Der Preis gilt bis zum Ende des Monats.", "Dann sage ich zu. Wer schreibt das Angebot?",
      "Ich übernehme das, du hast es heute bis {t} Uhr.",
      "Auftrag ist da, bitte Versand vorbereiten.", "Schon unterwegs, Sendungsnummer {k}."}},
    {"Grillen am {w}?",
     {"am {w} ab {t} Uhr wollen wir im Garten grillen. Habt ihr Lust? Für Getränke ist gesorgt, "
      "über einen Salat würden wir uns freuen.",
      "Bei Regen sitzen wir in der Küche."},
     {"Sehr gern, wir bringen Kartoffelsalat mit.", "Schade, da sind wir bei meinen Eltern.",
      "Können die Kinder auch kommen?", "Natürlich, unsere freuen sich schon.",
      "Wo kann man bei euch parken?", "Schön war es, vielen Dank!"}},
};
static const char *const sentences_de[] = {
    "Die neueste Fassung liegt im gemeinsamen Ordner, die älteren sind im Archiv.",
    "Wenn etwas unklar ist, ruf mich einfach an, ich bin bis fünf am Platz.",
    "Mit den Leuten von {c} habe ich gesprochen, sie sehen es genauso.",
    "Den ersten Meilenstein sollten wir so lassen und den zweiten um eine Woche verschieben.",
    "Übrigens wird am {w} die Heizung im dritten Stock repariert.",
    "Die Zahlen vom letzten Monat sind jetzt vollständig, bis auf zwei späte Rechnungen.",
    "Es eilt nicht, aber vor den Ferien hätte ich es gern vom Tisch.",
    "Der Lieferant hat eine Antwort bis zum {d} versprochen.",
    "Im schlimmsten Fall verlieren wir einen Tag, im besten gewinnen wir eine Woche.",
    "Der letzte Test lief über Nacht ohne einen einzigen Fehler.",
    "Das können wir später entscheiden, es hält niemanden auf.",
    "Vielen Dank für die ausführliche Antwort, das hat sehr geholfen.",
};
static const char *const print_de[] = {
    "Sie erhalten diese Nachricht, weil Sie bei uns ein Konto haben.",
    "Bitte antworten Sie nicht auf diese Nachricht, das Postfach wird nicht gelesen.",
    "Alle Preise enthalten die gesetzliche Mehrwertsteuer.",
    "Wir fragen niemals per Mail oder am Telefon nach Ihrem Passwort.",
    "Unser Kundendienst ist montags bis freitags von acht bis achtzehn Uhr erreichbar.",
    "Sitz der Gesellschaft: {v}. Registernummer {r}.",
};
const struct box_tongue box_tongue_de =
    TONGUE(de, "Hallo", "Viele Grüße", "schrieb", "Sonntag", "Montag", "Dienstag", "Mittwoch",
           "Donnerstag", "Freitag", "Samstag");

/* ---- French ---- */

static const struct box_person people_fr[] = {
    {"Hélène Dubreuil", "helene.dubreuil"},
    {"François Maréchal", "f.marechal"},
    {"Zoé Lefèvre", "zoe"},
    {"Benoît Carpentier", "benoit.carpentier"},
    {"Maëlle Rousset", "maelle"},
    {"André Gauthier", "andre.gauthier"},
};
static const struct box_topic talks_fr[] = {
    {"Réunion sur {p} {w}",
     {"Pourrions-nous nous voir {w} à {t} au sujet de {p} ? Il faut fixer le calendrier et décider "
      "qui rédige le résumé pour {c}.",
      "Dites-moi quelle heure vous convient avant le {d}, j'enverrai l'invitation."},
     {"{w} à {t}, c'est parfait pour moi.",
      "Je suis à {v} ce jour-là. Une heure plus tard, peut-être ?", "J'apporterai les chiffres.",
      "Serait-il possible de le faire par téléphone ?",
      "La réunion est déplacée au {d}, même heure.", "Très bien, à {w} !"}},
    {"Devis pour {c}",
     {"Le client demande un devis avant le {d} pour {q} pièces. Le montant serait d'environ {a} "
      "EUR.",
      "Pouvez-vous vérifier les prix et me répondre d'ici {w} ?"},
     {"Les prix sont bons, rien à changer.", "La livraison prend quatre jours ouvrables.",
      "Je prépare le devis aujourd'hui.", "Le client a accepté, bravo à tous.",
      "L'expédition est prête, numéro de suivi {k}.", "Merci pour votre rapidité."}},
};
static const char *const sentences_fr[] = {
    "La dernière version se trouve dans le dossier partagé.",
    "N'hésitez pas à m'appeler si quelque chose n'est pas clair.",
    "J'ai parlé avec les collègues de {c}, ils sont du même avis.",
    "Les chiffres du mois dernier sont complets, à deux factures près.",
    "Rien ne presse, mais j'aimerais régler cela avant les vacances.",
    "Le fournisseur a promis une réponse avant le {d}.",
    "Le dernier essai s'est déroulé toute la nuit sans la moindre erreur.",
    "Nous pourrons en décider plus tard, cela ne bloque personne.",
    "Merci pour cette réponse détaillée, elle nous a beaucoup aidés.",
};
static const char *const print_fr[] = {
    "Vous recevez ce message parce que vous avez un compte chez nous.",
    "Merci de ne pas répondre à ce message, cette adresse n'est pas relevée.",
    "Tous les prix s'entendent toutes taxes comprises.",
    "Nous ne vous demanderons jamais votre mot de passe par courriel.",
    "Notre service client est ouvert du lundi au vendredi, de huit à dix-huit heures.",
};
const struct box_tongue box_tongue_fr =
    TONGUE(fr, "Bonjour", "Bien cordialement,", "a écrit", "dimanche", "lundi", "mardi", "mercredi",
           "jeudi", "vendredi", "samedi");

/* ---- Spanish ---- */

static const struct box_person people_es[] = {
    {"María Ibáñez", "maria.ibanez"}, {"José Luis Peña", "jl.pena"},
    {"Lucía Fernández", "lucia"},     {"Andrés Muñoz", "andres.munoz"},
    {"Inés Calderón", "ines"},        {"Raúl Domínguez", "raul.dominguez"},
};
static const struct box_topic talks_es[] = {
    {"Reunión sobre {p} el {w}",
     {"¿Podemos vernos el {w} a las {t} para hablar de {p}? Hay que fijar el calendario y decidir "
      "quién escribe el resumen para {c}.",
      "Dime antes del {d} qué hora te viene bien y mando la invitación."},
     {"El {w} a las {t} me viene bien.", "Ese día estoy en {v}. ¿Podría ser una hora más tarde?",
      "Yo llevo los números.", "¿Lo hacemos por teléfono?",
      "La reunión pasa al {d}, a la misma hora.", "Confirmado, ¡hasta el {w}!"}},
    {"Fin de semana en {v}",
     {"Estamos pensando en pasar el fin de semana en {v}. El tren sale a las {t} y el hotel cuesta "
      "{a} EUR por noche.",
      "¿Os apuntáis? Tengo que reservar antes del {d}."},
     {"¡Claro que sí! ¿Cuántos somos?", "No podemos, los niños tienen exámenes.",
      "Ya he reservado dos habitaciones.", "¿Nos vemos en el andén diez minutos antes?",
      "Hay huelga de trenes ese {w}. ¿Vamos en coche?",
      "Ha sido un fin de semana estupendo, gracias."}},
};
static const char *const sentences_es[] = {
    "La última versión está en la carpeta compartida.",
    "Si algo no queda claro, llámame, estoy hasta las cinco.",
    "He hablado con la gente de {c} y opinan lo mismo.",
    "Los números del mes pasado ya están completos, salvo dos facturas.",
    "No corre prisa, pero me gustaría cerrarlo antes de las vacaciones.",
    "El proveedor ha prometido una respuesta antes del {d}.",
    "La última prueba funcionó toda la noche sin un solo error.",
    "Podemos decidirlo más adelante, no bloquea a nadie.",
    "Gracias por la respuesta tan detallada, nos ha ayudado mucho.",
};
static const char *const print_es[] = {
    "Recibes este mensaje porque tienes una cuenta con nosotros.",
    "Por favor, no respondas a este mensaje, nadie lee esta dirección.",
    "Todos los precios incluyen impuestos.",
    "Nunca te pediremos tu contraseña por correo ni por teléfono.",
    "Nuestro servicio de atención abre de lunes a viernes, de ocho a seis.",
};
const struct box_tongue box_tongue_es =
    TONGUE(es, "Hola", "Un saludo,", "escribió", "domingo", "lunes", "martes", "miércoles",
           "jueves", "viernes", "sábado");

/* ---- Japanese ---- */

static const struct box_person people_ja[] = {
    {"佐藤 花子", "hanako.sato"},   {"田中 健一", "k.tanaka"}, {"山本 ゆき", "yuki"},
    {"中村 太郎", "taro.nakamura"}, {"小林 美香", "mika"},
};
static const struct box_topic talks_ja[] = {
    {"{p}の打ち合わせについて",
     {"{w}の{t}から、{p}の打ち合わせをお願いできますでしょうか。",
      "日程と、{c}への報告の担当を決めたいと思います。{d}までにお返事をいただけますと助かります。"},
     {"{w}の{t}で大丈夫です。", "その日は{v}におりますので、一時間後でもよろしいでしょうか。",
      "資料は私が用意します。", "電話でもよろしいでしょうか。",
      "{d}の同じ時間に変更になりました。ご確認ください。",
      "承知しました。よろしくお願いいたします。"}},
    {"旅行の写真",
     {"先日はありがとうございました。とても楽しい旅行でした。",
      "写真を整理しましたので、{w}にお送りします。"},
     {"写真、ありがとうございます。", "橋の上の写真がとても好きです。",
      "大きいサイズで送っていただけますか。", "送りました。届いたら教えてください。",
      "無事に届きました。", "また行きましょう。"}},
};
static const char *const sentences_ja[] = {
    "最新の資料は共有フォルダーに入れてあります。",
    "ご不明な点がありましたら、お電話ください。",
    "先月の数字はほぼそろいました。",
    "急ぎではありませんが、休みの前に終わらせたいと思います。",
    "昨夜のテストはエラーなしで終わりました。",
    "くわしいお返事をありがとうございました。",
    "この件は後で決めても問題ありません。",
    "{c}の皆さんも同じ意見でした。",
};
static const char *const print_ja[] = {
    "このメールは会員の方にお送りしています。",
    "このメールには返信できません。",
    "表示価格は税込みです。",
    "メールや電話でパスワードをおたずねすることはありません。",
    "お問い合わせは月曜日から金曜日まで受け付けております。",
};
const struct box_tongue box_tongue_ja =
    TONGUE(ja, "こんにちは、", "よろしくお願いいたします。", "からのメール", "日曜日", "月曜日",
           "火曜日", "水曜日", "木曜日", "金曜日", "土曜日");

/* ---- Russian ---- */

static const struct box_person people_ru[] = {
    {"Анна Соколова", "a.sokolova"}, {"Дмитрий Орлов", "dmitry.orlov"},
    {"Елена Кузьмина", "elena"},     {"Пётр Журавлёв", "p.zhuravlev"},
    {"Ольга Белова", "olga.belova"},
};
static const struct box_topic talks_ru[] = {
    {"Встреча по проекту {p}",
     {"Можем ли мы встретиться {d} в {t} по проекту {p}? Нужно согласовать сроки и решить, кто "
      "пишет отчёт для {c}.",
      "Сообщите, пожалуйста, какое время вам удобно, и я отправлю приглашение."},
     {"Мне подходит, буду в {t}.", "В этот день я в отъезде. Можно на час позже?",
      "Цифры я подготовлю.", "Давайте обсудим по телефону.",
      "Встреча перенесена, новое время: {d}, {t}.", "Хорошо, договорились."}},
    {"Договор с {c}",
     {"Нам вернули договор с двумя изменениями. Срок оплаты теперь сорок пять дней вместо "
      "тридцати.",
      "Посмотрите, пожалуйста, до {d}. Сумма прежняя: {a}."},
     {"Срок большой, но они всегда платят вовремя.", "Предлагаю оставить старую формулировку.",
      "Я с ними поговорю завтра.", "Новая редакция меня устраивает.", "Подписано и отправлено.",
      "Спасибо всем за помощь!"}},
};
static const char *const sentences_ru[] = {
    "Последняя версия лежит в общей папке, старые в архиве.",
    "Если что-то непонятно, просто позвоните мне.",
    "Цифры за прошлый месяц готовы, не хватает двух счетов.",
    "Это не срочно, но хотелось бы закончить до отпуска.",
    "Поставщик обещал ответить до {d}.",
    "Последняя проверка прошла за ночь без единой ошибки.",
    "Это можно решить позже, никто не ждёт.",
    "Спасибо за подробный ответ, он очень помог.",
};
static const char *const print_ru[] = {
    "Вы получили это письмо, потому что у вас есть учётная запись.",
    "Пожалуйста, не отвечайте на это письмо.",
    "Мы никогда не спрашиваем пароль по почте или по телефону.",
    "Служба поддержки работает с понедельника по пятницу.",
};
const struct box_tongue box_tongue_ru =
    TONGUE(ru, "Здравствуйте,", "С уважением,", "пишет", "воскресенье", "понедельник", "вторник",
           "среда", "четверг", "пятница", "суббота");

/* ---- Arabic ---- */

static const struct box_person people_ar[] = {
    {"ليلى حداد", "layla.haddad"},
    {"عمر النجار", "omar"},
    {"سارة منصور", "sara.mansour"},
    {"يوسف الخطيب", "y.khatib"},
};
static const struct box_topic talks_ar[] = {
    {"اجتماع حول {p}",
     {"هل يمكننا الاجتماع يوم {w} الساعة {t} لمناقشة {p}؟ نحتاج إلى تحديد الجدول الزمني.",
      "أرجو الرد قبل {d} حتى أرسل الدعوة."},
     {"الموعد مناسب لي.", "لا أستطيع في هذا الوقت، هل يمكن بعد ساعة؟", "سأحضر الأرقام معي.",
      "هل يمكن أن نتحدث عبر الهاتف؟", "تم نقل الاجتماع إلى {d}.", "تم التأكيد، إلى اللقاء."}},
};
static const char *const sentences_ar[] = {
    "النسخة الأخيرة موجودة في المجلد المشترك.", "إذا كان هناك شيء غير واضح فاتصل بي.",
    "أرقام الشهر الماضي أصبحت كاملة تقريبا.",   "الأمر ليس عاجلا، لكنني أود إنهاءه قبل العطلة.",
    "شكرا على الرد المفصل، لقد ساعدنا كثيرا.",
};
static const char *const print_ar[] = {
    "وصلتك هذه الرسالة لأن لديك حسابا لدينا.",
    "نرجو عدم الرد على هذه الرسالة.",
    "لن نطلب منك كلمة المرور أبدا.",
};
const struct box_tongue box_tongue_ar =
    TONGUE(ar, "مرحبا", "مع أطيب التحيات،", "كتب", "الأحد", "الاثنين", "الثلاثاء", "الأربعاء",
           "الخميس", "الجمعة", "السبت");
