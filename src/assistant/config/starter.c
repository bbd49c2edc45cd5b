/* starter.c - the configuration that `assistant onboard` writes.  It is complete: a test reads it,
 * and what it says about defaults is compared with them. */
#include "assistant/config/config.h"
#include "base/json.h"

static const char head[] = "# The mail assistant.  `tidemark assistant rules test MESSAGE` says "
                           "what these rules do with a\n"
                           "# message.  Values that are commented out show the default.\n"
                           "\n"
                           "models:                 # names as your endpoint has them\n";

static const char rest[] =
    "\n"
    "sync:\n"
    "#  fallback_interval_minutes: 15   # also when no push came\n"
    "#  full_sync_interval_hours: 1     # looks at the inbox itself\n"
    "  full_sync_days: 60              # how far back it looks (10 without this line)\n"
    "#  watch_renewal_hours: 24\n"
    "\n"
    "drafts:\n"
    "#  default_style: business\n"
    "#  rework_limit: 3\n"
    "#  max_tokens: 2000\n"
    "#  context_searches: 3             # searches for related mail; 0: none\n"
    "#  context_threads: 5\n"
    "#  context_chars: 2000             # of each thread\n"
    "#  quote_original: false           # the answered message below the draft\n"
    "\n"
    "budget:\n"
    "#  tokens_per_day: 2000000         # 0: no budget\n"
    "\n"
    "# Mail of a blacklisted sender is FYI, without asking a model: addresses or domains, with *.\n"
    "triage:\n"
    "  blacklist:\n"
    "    - \"*@newsletter.example.com\"\n"
    "    - \"*.ads.example.com\"\n"
    "#  automated_senders: [noreply, no-reply, donotreply, do-not-reply, mailer-daemon,\n"
    "#    postmaster, bounce, bounces, notification, notifications]\n"
    "\n"
    "# How drafts are written.  A style is a text, or file: NAME below the folder of this file.\n"
    "styles:\n"
    "  business: |\n"
    "    Polite, clear and concise. Whole sentences, no slang, no emoji.\n"
    "    Where a fact is missing, leave a gap in [brackets] for me to fill.\n"
    "  friendly: |\n"
    "    Warm and short, as to a friend. First names. No formal closing.\n"
    "\n"
    "# Who gets which style.  Without an entry the model chooses.\n"
    "contacts:\n"
    "  senders:\n"
    "    \"friend@example.com\": friendly\n"
    "  domains:\n"
    "    \"*.gov.example\": business\n"
    "\n"
    "# The first rule that fits decides.  Without one, a message goes to the pipeline: "
    "classified,\n"
    "# labelled, and answered with a draft if it needs a response.\n"
    "rules:\n"
    "  - name: everything\n"
    "    when: {all: true}\n"
    "    route: pipeline\n"
    "\n"
    "# An agent works with tools.  To use one, put a rule like this in front of the others:\n"
    "#  - name: helpdesk\n"
    "#    when:\n"
    "#      sender_domain: crisp.chat        # also sender_email, subject_contains, "
    "forwarded_from,\n"
    "#      header_match: {X-Mailer: crisp}  # and patterns for headers; all must hold\n"
    "#    route: agent\n"
    "#    profile: support\n"
    "profiles:\n"
    "  support:\n"
    "    system_prompt: |\n"
    "      You answer customers of our shop. Look for earlier conversations first.\n"
    "      Write a draft; escalate what you cannot answer from what you found.\n"
    "    tools: [search_archive, read_thread, create_draft, escalate]\n"
    "    max_iterations: 10\n"
    "    preprocessor: crisp\n"
    "#    may_send: true    # needed for the tool send_reply; without it only drafts are made\n"
    "\n"
    "# Tools of your own: a program (no shell is run; the arguments come as JSON on its standard\n"
    "# input) or an HTTP endpoint.  A profile has the tools that it lists.\n"
    "#tools:\n"
    "#  order_status:\n"
    "#    description: Look up an order by its number.\n"
    "#    parameters:\n"
    "#      type: object\n"
    "#      properties: {number: {type: string}}\n"
    "#      required: [number]\n"
    "#    command: [/usr/local/bin/order-status, --json]\n"
    "#    timeout_seconds: 20\n"
    "#    output_bytes: 16384\n";

tide_status tide_assistant_starter(const char *account, const char *model_fast,
                                   const char *model_better, tide_buf *yaml)
{
    TIDE_TRY(tide_buf_add_text(yaml, head));
    if (account != NULL) {
        TIDE_TRY(tide_buf_add_text(yaml, "  account: "));
        TIDE_TRY(tide_json_escape(tide_text_of(account), yaml));
        TIDE_TRY(tide_buf_add_text(yaml, "   # of `tidemark account list`\n"));
    }
    TIDE_TRY(tide_buf_add_text(yaml, "  fast: "));
    /* What JSON quotes, YAML reads. */
    TIDE_TRY(tide_json_escape(tide_text_of(model_fast == NULL ? "gpt-4o-mini" : model_fast), yaml));
    TIDE_TRY(tide_buf_add_text(yaml, "   # classifies, looks for context\n  better: "));
    TIDE_TRY(tide_json_escape(tide_text_of(model_better == NULL ? "gpt-4o" : model_better), yaml));
    TIDE_TRY(tide_buf_add_text(yaml, "      # writes drafts\n"));
    return tide_buf_add_text(yaml, rest);
}
