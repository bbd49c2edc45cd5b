#include "cloudbox/generate/text.h"
#include "base/check.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct box_person people[] = {
    {"Amelia Hartwell", "amelia.hartwell"},
    {"Ben Okafor", "ben.okafor"},
    {"Carol Lindqvist", "carol"},
    {"Daniel Abara", "d.abara"},
    {"Eleanor Marsh", "eleanor.marsh"},
    {"Farid Noor", "farid"},
    {"Grace Tolliver", "grace.tolliver"},
    {"Hugh Penrose", "hpenrose"},
    {"Imogen Vale", "imogen"},
    {"James Whitlock", "james.whitlock"},
    {"Kavya Raman", "kavya.raman"},
    {"Liam Corrigan", "liam"},
    {"Maya Feldstein", "maya.feldstein"},
    {"Nathan Brook", "nbrook"},
    {"Olivia Castellan", "olivia"},
    {"Peter Kimathi", "peter.kimathi"},
    {"Rosa Delmar", "rosa.delmar"},
    {"Samuel Achterberg", "sam"},
    {"Tessa Winslow", "tessa.winslow"},
    {"Umar Siddiq", "umar"},
    {"Vera Holloway", "vera.holloway"},
    {"Walter Nyberg", "walter"},
    {"Yasmin Tavares", "yasmin.tavares"},
    {"Zachary Moon", "zmoon"},
};

static const struct box_topic talks[] = {
    {"Meeting about {p} on {w}",
     {"Could we meet about {p} this {w}? I would suggest {t}, in the small room on the second "
      "floor, but any time that day works for me.",
      "I need a decision on the timeline and on who writes the summary for {c}. Please tell me "
      "which time suits you, and I will send an invitation."},
     {"{t} on {w} works for me. Could you book the room?",
      "I cannot make {t}, I have a call with {c} until lunch. Would an hour later be possible?",
      "Fine with me. I will bring the numbers for {p}.",
      "Could we do it by phone? I am in {v} that day and the train arrives late.",
      "Moved to {d}, same time. Please confirm so that I can tell the others.",
      "Confirmed, see you on {w} at {t}."}},
    {"Budget for {p}",
     {"Attached to this thread you will find my notes on the budget for {p}. We are at {a} so far, "
      "which leaves little room for travel.",
      "Please check the second section and tell me by {d} whether we can drop the extra licence."},
     {"I went through it. The hosting costs look too high to me, where does that figure come from?",
      "We can drop the licence, nobody has used it since spring.",
      "Then we would be at {a}. I can defend that figure.",
      "Please wait with the order until I have talked to {c}.",
      "Talked to them, they agree. Please go ahead before {d}.",
      "Done. Thanks for being so quick about this."}},
    {"Dinner on {w}?",
     {"We are having a few people over on {w} at {t} and would love to see you. Nothing formal, "
      "just soup and bread and whatever is left of the wine from {v}.",
      "Let me know if you can come and whether you bring anybody."},
     {"Lovely idea, we will be there. What can we bring?",
      "I would like to but the children are with me that evening. Another time?",
      "Bring them! Ours will be glad of the company.",
      "Then we are seven. Could you bring a salad?",
      "Salad it is. Is there parking near your place?", "Yes, behind the school. See you on {w}!"}},
    {"Contract with {c}",
     {"{c} sent back the contract with two changes. They want to pay within forty-five days "
      "instead of thirty, and they struck out the sentence about {v}.",
      "I can live with the first one. The second one needs somebody from legal. Could you look at "
      "it before {d}?"},
     {"Forty-five days is long, but they have always paid on time.",
      "The sentence about {v} protects us if the delivery is late. I would keep it.",
      "I asked them, they only object to the wording. I will propose another one tomorrow.",
      "The new wording is fine for me. Please send it for signature.",
      "Signed and sent back. The original goes to the archive.",
      "Good. Who tells the team of {p} that they can start?"}},
    {"Application of {f} for the open position",
     {"We have an application that I find promising: six years of experience, the last three of "
      "them with {c}, and a very clear letter.",
      "Could we talk to this person in the week of {d}? I would like you and somebody from {p} to "
      "join the interview."},
     {"The letter is good indeed. I have time on {w} at {t}.",
      "I would like to see a sample of work first. Did they send anything?",
      "Yes, two reports. I put them in the usual folder.",
      "Read them. Well written, and honest about what went wrong. Let us invite this person.",
      "Invited for {w}, {t}. Please keep the hour free.",
      "That went well, I think. Shall we make an offer?"}},
    {"Trip to {v}",
     {"I am planning the trip to {v} and found a train that leaves at {t}. It would get us there "
      "in the early afternoon, with time to see the site before the meeting with {c}.",
      "Hotel or back the same evening? I need to book by {d}."},
     {"One night would be good. The last train back is too early for dinner.",
      "I booked two rooms near the station, breakfast included, {a} in all.",
      "Could you take the large bag? I come directly from another appointment.",
      "Of course. Let us meet on the platform ten minutes before.",
      "There is a strike announced for that {w}. Should we take the car?",
      "Trains run again, I just checked. See you at the station."}},
    {"The import of {p} is slow again",
     {"Since the update the nightly import of {p} takes more than five hours, it used to be less "
      "than one. The log shows the same warning again and again, about a missing index.",
      "Has anybody changed something in {z}? If not, I would roll back tonight."},
     {"I touched {z} last week but nothing near the import.",
      "The index is missing on the new machine. The migration must have stopped half way.",
      "Please do not roll back, I would lose the traces. Give me until {t}.",
      "Found it: the disk was full during the migration. Index created, import took 41 minutes.",
      "Great work. Can we get an alarm for the disk?",
      "Alarm is in place, it rings at {q} percent."}},
    {"Photos and the keys to the house",
     {"Thank you for a wonderful weekend! The children still talk about the boat. I will send the "
      "photos as soon as I have sorted them.",
      "One more thing: I think we took your keys with us by mistake. I can post them on {w} or "
      "bring them to {v} when we come through."},
     {"Ha, I looked everywhere. Please post them, we have a second set.",
      "Posted this morning, they should arrive by {d}.", "The keys are here. Thank you!",
      "The photos are lovely, could you send me the one on the pier in full size?",
      "Sent. It is large, tell me if it does not arrive.",
      "It arrived, thank you. It will hang in the hall."}},
    {"Draft of the report on {p}",
     {"Here is the draft of the report on {p}. The first two chapters are nearly final, the third "
      "one still lacks the figures from {c}.",
      "I would be glad of comments by {d}, above all on the summary: it is too long, but I do not "
      "see what to leave out."},
     {"Read it on the train. The summary can lose its second paragraph, it repeats the title page.",
      "The figures from {c} arrived, I put them in. Chapter three is complete now.",
      "Page {q} says the opposite of page 4. Which one is right?", "Page 4 is right, corrected.",
      "I have no further comments. Ready to print from my side.", "Sent to print. Thank you all."}},
    {"Question about {b}",
     {"A customer in {v} asks whether {b} can be delivered before {d}. They would take {q} pieces "
      "if the price stays at {a}.",
      "What may I promise? They want an answer by {w}."},
     {"We have that many in stock. Delivery takes four working days.",
      "The price holds until the end of the month.",
      "Then I will tell them yes. Who writes the offer?",
      "I do. You will have it today before {t}.", "They accepted. Please prepare the shipment.",
      "On its way. Tracking number {k}."}},
};

static const struct box_topic reviews[] = {
    {"[{y}] Retry the upload when the connection drops (#{q})",
     {"This keeps what was already sent and continues from there, instead of starting again. It "
      "touches {z} and two tests.",
      "Before: a dropped connection at 90 percent cost the whole upload. After: it costs one "
      "request. Measured with a link that fails every ten seconds."},
     {"Reviewed. Two remarks in {z}: the counter is never reset, and the error is swallowed in "
      "line {q}.",
      "Good catch, both fixed in the last commit.",
      "Could you add a test in which the server forgets the session? I think we would loop.",
      "Added, and we did loop. Fixed, there is a ceiling now.", "Looks good to me. Approved.",
      "Merged into main. Thank you!"}},
    {"[{y}] Parser accepts a line without a colon (#{q})",
     {"A header line without a colon ends the headers in our parser, in others it is skipped. The "
      "attached input shows the difference.",
      "I would skip it too and count it. The fix is eight lines in {z}."},
     {"Skipping is what everybody else does, agreed.",
      "Please keep the strict mode for our own output.",
      "The build on the older compiler fails: comparison of different signs in line {q} of {z}.",
      "Fixed. All {q} checks pass now.", "Approved with one small remark about naming.",
      "Merged."}},
    {"[{y}] Nightly build failed on {w}",
     {"The build of {y} failed in step 4 of 7 (tests). First failing test: {z}, expected 200, got "
      "503.",
      "The full log is kept for {q} days. Reference {h}."},
     {"That one depends on the clock, it fails around midnight.",
      "I can reproduce it by setting the clock forward. Working on it.", "Fix is up for review.",
      "Green again since the last run.", "Please also remove the retry we added to hide it.",
      "Removed."}},
};

static const struct box_topic forums[] = {
    {"How large should the cache be?",
     {"I run a small server with 4 GB of memory and wonder how large the cache should be. With "
      "the default the hit rate stays at {q} percent.",
      "Are there any rules of thumb, or does one have to measure?"},
     {"Measure. A cache that holds a working day of requests is usually enough.",
      "On our machines a quarter of the memory works well, more only starves the file system.",
      "What does your request size look like? If a few large ones push out the small ones, size "
      "is not your problem.",
      "That was it, thank you. With a limit per entry the rate went up to 93 percent.",
      "Would you write that up for the handbook?", "Gladly, by {d}."}},
    {"Allotment society: work day on {w}",
     {"Dear members, our spring work day is on {w}, {d}, from {t}. The fence by the brook needs "
      "mending and the shared tools want oil.",
      "Please tell me who brings gloves and who brings cake. Last year we had {q} pairs of gloves "
      "and one cake."},
     {"I bring cake, and gloves for two.", "I can bring the saw and the long ladder.",
      "Sorry, away that week. I will mend the gate on another day.",
      "We still need somebody with a trailer for the old boards.",
      "My brother has one, we come at {t}.",
      "Thank you all, that was a good day. The fence stands!"}},
    {"Choir: programme for the concert in {v}",
     {"The church in {v} has confirmed {d}. We have {q} minutes, so one piece has to go. I would "
      "leave out the second motet.",
      "Please come to the extra rehearsal on {w} at {t}. Low voices half an hour earlier."},
     {"A pity about the motet, but I understand.", "Could we leave out the encore instead?",
      "I cannot come on {w}. Is there a recording?", "I will record it and send the link.",
      "Who can drive? I have three free seats.",
      "What an evening. Thank you to everybody who sang and carried chairs."}},
};

static const char *const sentences[] = {
    "I have put the latest version in the shared folder, the older ones are in the archive.",
    "If anything is unclear, just call me, I am at my desk until five.",
    "The numbers from last month are complete now, with the exception of two late invoices.",
    "I talked to the people at {c}, and they see it the same way.",
    "We should keep the first milestone as it is and move the second one by a week.",
    "Nobody has asked for the old format in the last half year.",
    "By the way, the heating on the third floor is being repaired on {w}.",
    "My suggestion would be to start small and look at the results after a month.",
    "The team in {v} has already begun, and their first impression is good.",
    "I checked the list twice and found only one entry that appears more than once.",
    "Could you please forward this to whoever looks after {p} at the moment?",
    "There is no hurry, but I would like to have it off my desk before the holidays.",
    "As far as I can tell, nothing speaks against it.",
    "The supplier promised an answer by {d}, and so far they have kept their promises.",
    "I attach no importance to the order of the items.",
    "We had the same question two years ago and decided to leave it open.",
    "The customer is happy with the quality, less so with the delivery time.",
    "Let us talk about the remaining points when we see each other.",
    "It took longer than I thought, mostly because of the many small exceptions.",
    "The training for new colleagues takes place in {v} again this year.",
    "Please keep this to yourself until it has been announced.",
    "I would rather do one thing well than three things in a hurry.",
    "The last test ran overnight without a single error.",
    "Both variants cost about the same, the second one is easier to maintain.",
    "We are still waiting for the signature of the second partner.",
    "I have marked the passages in question in yellow.",
    "The figures for {p} look better than expected, mainly thanks to lower travel costs.",
    "Somebody should write down how this works before we all forget it.",
    "In the worst case we lose a day, in the best case we gain a week.",
    "The meeting room has been changed, it is now the one next to the kitchen.",
    "I will be out of office from {d} and read my mail again a week later.",
    "Thank you for the detailed answer, that helped a lot.",
    "What we still lack is a short description for people who see this for the first time.",
    "The old contract runs out at the end of the quarter.",
    "I noticed that the second page refers to an appendix that does not exist.",
    "For me the most important point is that we can undo it.",
    "On the phone they sounded much more relaxed than in their letter.",
    "Please send me your travel expenses before the end of the month.",
    "We can decide that later, it does not block anybody.",
    "See you soon, and greetings to everybody.",
};

static const char *const print[] = {
    "You receive this message because you have an account with us.",
    "If you no longer wish to receive messages like this one, change your settings at any time.",
    "Please do not answer this message, the address is not read by people.",
    "Our terms of service and our privacy notice apply in the version of the day of your order.",
    "All prices include value added tax unless stated otherwise.",
    "We will never ask for your password by mail or on the phone.",
    "Delivery times are estimates and depend on the carrier.",
    "You can return unused goods within thirty days of delivery.",
    "Payments reach your account within two working days.",
    "Opening hours of our customer service: Monday to Friday, eight to six.",
    "This notice was created by machine and is valid without a signature.",
    "Keep this message for your records.",
    "Registered office: {v}. Registration number {r}.",
    "Questions? Our help pages answer most of them, and our team answers the rest.",
};

static const char *const articles[] = {
    "Small changes in the morning often decide how the rest of the day goes.",
    "We visited a workshop in {v} where everything is still made by hand.",
    "Three out of four readers told us that they would buy it again.",
    "The new season brings lighter fabrics and, at last, pockets that deserve the name.",
    "Our editors tried {q} of them so that you do not have to.",
    "The recipe needs five ingredients and less than half an hour.",
    "Experts agree on one thing: start early and do not overdo it.",
    "What looks like a detail turns out to be the whole story.",
    "Tickets for the spring programme are available from {d}.",
    "Read the full interview on our pages, with photos from {v}.",
    "Members save {q} percent until the end of the month.",
    "The market has been calm this week, and analysts expect it to stay so.",
    "A walk of two hours leads along the river and back through the old town.",
    "This week we look at {b}, a reader favourite since last autumn.",
    "How do you keep plants alive through the winter? Water less than you think.",
    "The number of visitors doubled within a year, and nobody quite knows why.",
    "Next week: a look behind the scenes at {c}.",
    "Good tools last longer than the people who buy them, says the founder.",
    "In our archive you will find more than {q} articles on this subject.",
    "The jury was unanimous, for the first time in the history of the prize.",
    "If you only read one book this month, make it this one.",
    "Our survey closes on {d}; among all answers we give away {b}.",
};

static const struct box_tongue tongue_en = {
    people,
    COUNT(people),
    {talks, reviews, forums},
    {COUNT(talks), COUNT(reviews), COUNT(forums)},
    sentences,
    COUNT(sentences),
    print,
    COUNT(print),
    articles,
    COUNT(articles),
    "Hi",
    "Best regards,",
    "wrote",
    {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
};

const struct box_tongue *box_tongue(box_lang lang)
{
    static const struct box_tongue *const tongues[BOX_LANGS] = {
        &tongue_en,     &box_tongue_de, &box_tongue_fr, &box_tongue_es,
        &box_tongue_ja, &box_tongue_ru, &box_tongue_ar,
    };
    TIDE_ASSERT(lang < BOX_LANGS);
    return tongues[lang];
}

static const char *const projects[] = {
    "Harbour", "Lighthouse", "Northwind", "Bluebell", "Cedar",   "Orchard",
    "Atlas",   "Kingfisher", "Meridian",  "Granite",  "Juniper", "Sandpiper",
};
static const char *const companies[] = {
    "Aldertree Supplies", "Brightwater Energy", "Calloway Print",    "Dunmore Logistics",
    "Eastgate Insurance", "Fennel Foods",       "Greyfriars Legal",  "Hollis Instruments",
    "Ironbridge Tools",   "Kestrel Telecom",    "Larkspur Software", "Millbrook Dental",
};
static const char *const cities[] = {
    "Bristol", "Hamburg", "Lyon",  "Sevilla", "Osaka", "Utrecht",
    "Galway",  "Leipzig", "Turku", "Bergen",  "Porto", "Winnipeg",
};
static const char *const products[] = {
    "the oak desk lamp",        "the travel kettle", "the field notebook, pack of five",
    "the folding bicycle lock", "the wool blanket",  "the ceramic water filter",
    "the standing desk frame",  "the rain jacket",   "the cast iron pan",
    "the noise meter",
};
static const char *const repositories[] = {
    "harbour/ledger", "atlas/parser",  "cedar/mirror",    "granite/cache",
    "juniper/web",    "meridian/jobs", "orchard/reports", "kingfisher/sync",
};
static const char *const sources[] = {
    "upload.c", "parser.c", "session.c",  "test_import.py",
    "queue.go", "cache.rs", "schema.sql", "retry.c",
};
static const char *const domains[] = {
    "larkspur.example",      "mail.harbour.example", "dunmore.example",   "fennel-foods.example",
    "post.meridian.example", "hollis.example",       "kestrel.example",   "inbox.example",
    "greyfriars.example",    "calloway.example",     "orchard.example",   "uni-osterfeld.example",
    "studio-lumen.example",  "nordlicht.example",    "casaverde.example", "sakura-net.example",
};

/* One picker each, so that a hash chooses the same entry for ever. */
#define PICKER(function, table)                                                                    \
    const char *function(uint64_t hash)                                                            \
    {                                                                                              \
        return table[hash % COUNT(table)];                                                         \
    }
PICKER(box_project, projects)
PICKER(box_company, companies)
PICKER(box_city, cities)
PICKER(box_product, products)
PICKER(box_repository, repositories)
PICKER(box_source, sources)
PICKER(box_domain, domains)
