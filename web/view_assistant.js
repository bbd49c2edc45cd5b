// view_assistant.js - the records of the mail assistant, read only: users, threads, events, model calls, runs of agents; a
// thread as one timeline; what a model was asked and answered.  All of it may be written by strangers: it is shown as text.
import { get as fetched, path } from './api.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { live } from './live.js'
import { Loader, button, card, empty, facts, link, marksOf, page, select } from './page.js'
import { tellTrouble } from './say.js'
import { systemView } from './view_system.js'
import { ago, count, number, size, time, title } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {{ name: string, title: string, columns: string[], row: (one: any) => import('./grid.js').Row, filters: Record<string, string[]>, text?: string[], none: string }} Table */

const LIMIT = 100
/** What the API gives at once; a longer list stays as it is until it is opened anew. */
const LIMIT_MAX = 500
const LEVELS = /** @type {Record<string, string>} */ ({
  pending: 'busy', drafted: 'ok', rework_requested: 'busy', sent: 'ok', skipped: 'idle', archived: 'idle',
  answered: 'ok', failed: 'bad', open: 'busy', running: 'busy', done: 'ok', limit: 'warn', escalated: 'warn',
})
const ORDER = ['newest', 'oldest']
const CALL_KINDS = ['classify', 'context', 'draft', 'rework', 'agent']
const EVENT_KINDS = ['classified', 'retriaged', 'manual_draft', 'draft_created', 'draft_reworked', 'draft_discarded', 'rework_requested', 'rework_limit_reached', 'pending', 'drafted', 'sent',
  'skipped', 'archived', 'thread_gone', 'agent_started', 'agent_ended', 'escalated', 'resumed', 'given_up']

/** Characters that act instead of being read, and hidden ones, become visible: they reorder what a person reads, or speak to
 * a model behind its back.
 * @param {string} text */
const plain = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\u{e0000}-\u{e0fff}]/gu, '\ufffd')

/** @param {string} route @param {Record<string, string | number>} [params] */
const get = async (route, params) => JSON.parse(JSON.stringify(await fetched(route, params)), (_, value) => (typeof value === 'string' ? plain(value) : value))

/** @param {string} word */
const words = (word) => word.replaceAll('_', ' ')

/** @param {string} state */
const stateOf = (state) => h('span', { class: 'state ' + (LEVELS[state] ?? 'idle') }, words(state))

/** @param {any} one */
const threadOf = (one) => `/thread/${path(one.account, one.thread)}`

/** @param {any} one */
const threadLink = (one) => (one.thread ? link(threadOf(one), one.thread, 'wrap') : '-')

// ---- the tables

/** @type {Table[]} */
const TABLES = [
  {
    name: 'emails', title: 'Threads', none: 'No thread yet.', columns: ['Status', 'Category', 'From', 'Subject', 'Account', 'Changed'], text: ['sender'],
    filters: { status: ['pending', 'drafted', 'rework_requested', 'sent', 'skipped', 'archived'], category: ['needs_response', 'action_required', 'payment_request', 'fyi', 'waiting'] },
    row: (one) => ({
      key: one.account + '/' + one.thread, open: () => page.go(threadOf(one)), label: `${one.subject}, ${words(one.status)}`,
      cells: [[stateOf(one.status)], [words(one.category)], [one.sender], [link(threadOf(one), one.subject || '(no subject)')], [one.account], [ago(one.updated_unix_ms)]],
    }),
  },
  {
    name: 'events', title: 'Events', none: 'No event yet.', columns: ['When', 'Event', 'Detail', 'Thread', 'Account'], text: ['thread'], filters: { kind: EVENT_KINDS },
    row: (one) => ({
      key: String(one.id), open: () => page.go(threadOf(one)), label: `event ${words(one.kind)}`,
      cells: [[time(one.at_unix_ms)], [words(one.kind)], [h('span', { class: 'muted' }, one.detail)], [threadLink(one)], [one.account]],
    }),
  },
  {
    name: 'calls', title: 'Model calls', none: 'No model was asked yet.', columns: ['Call', 'State', 'For', 'Model', 'Tokens', 'Took', 'When', 'Thread', 'Error'], text: ['thread'],
    filters: { kind: CALL_KINDS, state: ['answered', 'failed', 'open'] },
    row: (one) => ({
      key: String(one.id), open: () => page.go(`/call/${one.id}`), label: `call ${one.id}, ${one.kind}, ${one.state}`,
      cells: [[link(`/call/${one.id}`, String(one.id))], [stateOf(one.state)], [one.kind], [one.model], [tokens(one)], [one.state === 'open' ? '-' : `${number(one.latency_ms)} ms`],
        [ago(one.begun_unix_ms)], [threadLink(one)], [h('span', { class: 'bad' }, one.error)]],
    }),
  },
  {
    name: 'runs', title: 'Agent runs', none: 'No agent ran yet.', columns: ['Run', 'Status', 'Profile', 'Rule', 'Answers', 'When', 'Thread', 'Error'], text: ['thread'],
    filters: { status: ['running', 'done', 'limit', 'escalated', 'failed'] },
    row: (one) => ({
      key: String(one.id), open: () => page.go(`/run/${one.id}`), label: `run ${one.id}, ${one.profile}, ${one.status}`,
      cells: [[link(`/run/${one.id}`, String(one.id))], [stateOf(one.status)], [one.profile], [one.rule], [number(one.iterations)], [ago(one.begun_unix_ms)], [threadLink(one)],
        [h('span', { class: 'bad' }, one.error)]],
    }),
  },
]

/** @param {any} one */
const tokens = (one) => (one.state === 'open' ? '-' : `${number(one.tokens_in)} in, ${number(one.tokens_out)} out`)

/** Where a detail goes back to: the list that it was opened from. */
let cameFrom = '/assistant?table=emails'

/** @param {string} now */
const tabs = (now) => h('nav', { class: 'tabs', 'aria-label': 'Records of the assistant', key: 'tabs' }, ...[{ name: '', title: 'Overview' }, ...TABLES].map((table) =>
  h('a', { href: '#/assistant' + (table.name ? '?table=' + table.name : ''), 'aria-current': table.name === now ? 'page' : null }, table.title)))

/** Keys 1 to 5, in the order of the tabs. */
const tabKeys = () => Object.fromEntries([{ name: '', title: 'Overview' }, ...TABLES].map((table, i) =>
  [String(i + 1), { words: table.title.toLowerCase(), run: () => page.go('/assistant' + (table.name ? '?table=' + table.name : '')) }]))

/** The list that was shown last: going back to it from a detail finds its rows, and the marked one, at once.
 * @type {{ address: string, loader: Loader<any> } | null} */
let last = null

/** @param {string} address @param {(data: any) => Promise<any>} ask gets what is shown @returns {Loader<any>} */
function listOf(address, ask) {
  if (last?.address !== address) {
    /** @type {Loader<any>} */
    const loader = new Loader(async () => ask(loader.data))
    last = { address, loader }
  }
  return last.loader
}

/** @param {Table} table @param {URLSearchParams} params */
function tableView(table, params) {
  const names = ['account', ...Object.keys(table.filters), ...(table.text ?? []), 'order']
  const filter = /** @type {Record<string, string>} */ (Object.fromEntries(names.map((name) => [name, params.get(name) ?? ''])))
  const address = (/** @type {Record<string, string>} */ part) => '/assistant?' +
    new URLSearchParams([['table', table.name], ...Object.entries({ ...filter, ...part }).filter(([, value]) => value !== '')])
  const marks = marksOf('assistant ' + address({}))
  const ask = (/** @type {string} */ after, limit = LIMIT) => get('assistant/' + table.name, { ...filter, limit, after })
  const list = listOf(address({}), (/** @type {any} */ data) => {
    const shown = data?.[table.name].length ?? 0
    return shown > LIMIT_MAX ? data : ask('', Math.max(LIMIT, shown))
  })
  const users = new Loader(() => get('assistant/users'))
  cameFrom = address({})
  const more = async () => {
    const shown = list.data
    try {
      const found = await ask(shown.next)
      list.data = { ...found, [table.name]: [...shown[table.name], ...found[table.name]] }
    } catch (error) {
      tellTrouble(error, table.title)
    }
    page.redraw()
  }
  const narrow = (/** @type {string} */ name, /** @type {string} */ value) => page.turn(address({ [name]: value.trim() }))
  return {
    title: 'Assistant', marks, up: '/', live: true, keys: tabKeys,
    load: async () => { await Promise.all([list.load(), users.data ? null : users.load()]) },
    /** @returns {Child[]} */
    draw() {
      const accounts = (users.data?.users ?? []).map((/** @type {any} */ one) => one.account)
      return [
        tabs(table.name),
        h('div', { class: 'filters', key: 'filters ' + table.name },
          select('Account', filter.account, [['', 'any'], ...new Set([...accounts, ...(filter.account ? [filter.account] : [])])], (value) => narrow('account', value)),
          ...Object.entries(table.filters).map(([name, choices]) => select(title(name), filter[name],
            [['', 'any'], ...choices.map((one) => /** @type {[string, string]} */ ([one, words(one)])), ...(filter[name] && !choices.includes(filter[name]) ? [filter[name]] : [])], (value) => narrow(name, value))),
          ...(table.text ?? []).map((name) => h('label', { class: 'field' }, h('span', {}, title(name)),
            h('input', { type: 'search', value: filter[name], autocomplete: 'off', spellcheck: 'false', on: { change: (event) => narrow(name, event.target.value) } }))),
          select('First', filter.order || 'newest', ORDER, (value) => narrow('order', value === 'newest' ? '' : value))),
        ...list.shown((data) => data[table.name].length === 0 ? [empty(names.some((name) => name !== 'order' && filter[name]) ? 'Nothing matches.' : table.none)] : [
          h('p', { class: 'muted count' }, data.total > 0 ? `${number(data[table.name].length)} of ${number(data.total)}` : count(data[table.name].length, 'row') + (data.next ? ' so far' : '')),
          grid({ label: table.title, marks, class: 'a-' + table.name, total: data.total > 0 ? data.total : data[table.name].length, rows: data[table.name].map(table.row),
            columns: table.columns.map((name) => ({ name, class: 'c-' + name.toLowerCase() })) }),
          data.next ? button('Show more', () => void more(), { class: 'plain more' }) : null,
        ]),
      ]
    },
  }
}

// ---- users

/** @param {any} user @param {any} counts of `assistant status` */
function userCard(user, counts) {
  const by = counts?.by_status ?? {}
  const of = (/** @type {string} */ status) => link(`/assistant?${new URLSearchParams({ table: 'emails', account: user.account, status })}`, `${number(by[status] ?? 0)} ${words(status)}`)
  /** @type {[string, Child][]} */
  const failed = counts?.given_up
    ? [['Failed', link(`/assistant?${new URLSearchParams({ table: 'events', account: user.account, kind: 'given_up' })}`, count(counts.given_up, 'thread'))]] : []
  return card(user.account, [
    facts([
      ['Threads', [`${number(counts?.records ?? 0)}: `, ...Object.keys(by).flatMap((status, i) => [i ? ', ' : '', of(status)])]],
      ...failed,
      ['Today', `${count(counts?.model_calls_today ?? 0, 'model call')}, ${number(counts?.tokens_in_today ?? 0)} tokens in, ${number(counts?.tokens_out_today ?? 0)} out`],
      ['Synced', `${ago(user.synced_unix_ms)}, all of the inbox ${ago(user.full_sync_unix_ms)}`],
      ['Last push', counts?.pushed_unix_ms ? ago(counts.pushed_unix_ms) : 'none yet'],
      ['History', user.history_id || 'none yet'],
    ]),
    h('details', {}, h('summary', {}, `${count(user.labels.length, 'label')}, ${count(user.settings.length, 'setting')}`),
      facts([...user.labels.map((/** @type {any} */ label) => [label.name, label.id ?? 'not known yet']),
        ...user.settings.map((/** @type {any} */ one) => [one.name, one.value])])),
  ], [h('span', { class: 'state ' + (user.state === 'ready' ? 'ok' : user.state === 'ended' ? 'idle' : 'busy') }, user.state)])
}

/** The users of the assistant, and its chat models, which are its accounts. */
function overview() {
  const models = systemView('assistant')
  const about = new Loader(async () => {
    const [users, status] = await Promise.all([get('assistant/users'), get('assistant/status')])
    return { users: users.users, counts: status.accounts }
  })
  return {
    ...models, title: 'Assistant', live: true, keys: tabKeys, load: () => about.load(),
    /** @returns {Child[]} */
    draw: () => [
      tabs(''),
      ...about.shown(({ users, counts }) => [users.length === 0 ? h('p', { class: 'empty' }, 'The assistant works for no account yet. Run: ', h('code', {}, 'tidemark assistant onboard EMAIL'))
        : h('div', { class: 'columns' }, ...users.map((/** @type {any} */ user) => userCard(user, counts.find((/** @type {any} */ one) => one.account === user.account))))]),
      h('h2', { key: 'models' }, 'Chat models'), ...models.draw(),
    ],
  }
}

/** @param {URLSearchParams} params */
export function assistantView(params) {
  const table = TABLES.find((one) => one.name === params.get('table'))
  return table ? tableView(table, params) : overview()
}

// ---- texts

const DEPTH = 6
const PARTS = 400

/** JSON as lists of names and texts, in which line ends are line ends; else the text itself.
 * @param {string} text */
function readable(text) {
  let left = PARTS
  /** @type {(value: any, depth: number) => HTMLElement} */
  const show = (value, depth) => {
    if (--left < 0 || depth > DEPTH || value === null || typeof value !== 'object') return h('div', { class: 'text' }, plain(typeof value === 'string' ? value : JSON.stringify(value)))
    if (Array.isArray(value)) return h('ol', {}, ...value.map((one) => h('li', {}, show(one, depth + 1))))
    return h('dl', { class: 'facts' }, ...Object.entries(value).flatMap(([name, one]) => [h('dt', {}, name), h('dd', {}, show(one, depth + 1))]))
  }
  try {
    const value = JSON.parse(text)
    if (value !== null && typeof value === 'object') return show(value, 0)
  } catch { /* it is a text */ }
  return h('div', { class: 'text' }, text)
}

/** @param {string} name @param {string} text @param {number} [bytes] as it is stored */
function textBox(name, text, bytes = 0) {
  if (!text) return null
  const left = bytes - new TextEncoder().encode(text).length
  return h('div', { class: 'texts', tabindex: 0, role: 'group', 'aria-label': name }, h('b', {}, name), readable(text), left > 0 ? h('p', { class: 'muted' }, `and ${size(left)} more, in the terminal.`) : null)
}

/** @param {any} call */
const callTexts = (call) => [
  call.error ? h('p', { class: 'bad' }, call.error) : null, textBox('System', call.system, call.system_bytes), textBox('Prompt', call.prompt, call.prompt_bytes),
  call.state === 'open' ? empty('No answer yet.') : textBox('Answer', call.answer, call.answer_bytes),
]

/** @param {any} run */
const runTexts = (run) => [
  run.error ? h('p', { class: 'bad' }, run.error) : null,
  ...(Array.isArray(run.tools) ? run.tools : []).map((/** @type {any} */ tool) => h('div', { class: 'texts', tabindex: 0, role: 'group', 'aria-label': 'Tool' },
    h('b', {}, `${number(tool.number)}. ${tool.tool}`), h('span', { class: tool.failed ? 'bad' : 'muted' }, ` ${tool.failed ? 'failed' : 'answered'} in ${number(tool.ms)} ms`),
    readable(JSON.stringify(tool.arguments ?? {})), readable(String(tool.result ?? '')))),
  textBox('Last message', run.final),
]

/** @param {string} id */
export function callView(id) {
  const about = new Loader(() => get(`assistant/calls/${path(id)}`))
  return {
    title: `Model call ${id}`, up: cameFrom, load: () => about.load(),
    get live() { return about.data?.state === 'open' },
    draw: () => about.shown((call) => [
      card('Call', [facts([['State', stateOf(call.state)], ['For', call.kind], ['Model', call.model], ['Tokens', tokens(call)], ['Took', `${number(call.latency_ms)} ms`],
        ['Asked', time(call.begun_unix_ms)], ['Account', call.account], ['Thread', threadLink(call)], ['Job', link(`/jobs/${call.job}`, String(call.job))]])]),
      card('Prompt and answer', callTexts(call)),
    ]),
  }
}

/** @param {string} id */
export function runView(id) {
  const about = new Loader(() => get(`assistant/runs/${path(id)}`))
  return {
    title: `Agent run ${id}`, up: cameFrom, load: () => about.load(),
    get live() { return about.data?.status === 'running' },
    draw: () => about.shown((run) => [
      card('Run', [facts([['Status', stateOf(run.status)], ['Profile', run.profile], ['Rule', run.rule], ['Answers', number(run.iterations)], ['Began', time(run.begun_unix_ms)],
        ['Ended', time(run.ended_unix_ms)], ['Account', run.account], ['Thread', threadLink(run)],
        ['Model calls', link(`/assistant?${new URLSearchParams({ table: 'calls', account: run.account, thread: run.thread })}`, 'of this thread')]])]),
      card('Tools and last message', runTexts(run)),
    ]),
  }
}

// ---- one thread

/** @param {any} record */
function recordCard(record) {
  return card(record.subject || '(no subject)', [facts([
    ['From', record.sender], ['Category', `${words(record.category)}, confidence ${record.confidence || 'not known'}`], ['Why', record.reasoning || '-'],
    ['Style', `${record.style || '-'}, language ${record.language || '-'}`], ['Messages', number(record.messages)], ['Reworked', count(record.reworks, 'time')],
    ['Draft', record.draft || 'none'], ['First seen', time(record.created_unix_ms)], ['Changed', time(record.updated_unix_ms)],
  ])], [stateOf(record.status)])
}

/** @param {string} account @param {string} thread */
export function threadView(account, thread) {
  /** @type {Loader<any>} */
  const about = new Loader(() => get(`assistant/${path(account)}/threads/${path(thread)}`))
  /** Texts of calls and runs that were opened here. @type {Map<string, Loader<any>>} */
  const opened = new Map()
  const again = () => [...opened.values()].filter(({ data }) => data?.state === 'open' || data?.status === 'running').map((loader) => loader.load())
  const open = (/** @type {string} */ what, /** @type {any} */ id) => {
    const name = `assistant/${what}s/${path(String(id))}`
    let loader = opened.get(name)
    if (!loader) {
      opened.set(name, loader = new Loader(() => get(name)))
      void loader.load()
    }
  }
  /** @param {any} one */
  const more = (one) => {
    if (one.what !== 'call' && one.what !== 'run') return null
    const loader = opened.get(`assistant/${one.what}s/${one.id}`)
    return h('details', { on: { toggle: (event) => { if (event.target.open) open(one.what, one.id) } } },
      h('summary', {}, one.what === 'call' ? `Prompt and answer of call ${one.id}` : `Tools of run ${one.id}`), ...(loader ? loader.shown((/** @type {any} */ data) => one.what === 'call' ? callTexts(data) : runTexts(data)) : []))
  }
  return {
    title: 'Thread', up: cameFrom, live: true, load: async () => { await Promise.all([about.load(), ...again()]) },
    draw: () => about.shown(({ record, timeline }) => [
      record ? recordCard(record) : null,
      card('Timeline', [h('ol', { class: 'timeline' }, ...timeline.map((/** @type {any} */ one) => h('li', { key: `${one.what} ${one.id ?? one.draft + one.at_unix_ms}`, class: one.error ? 'bad' : one.what },
        h('time', { datetime: new Date(one.at_unix_ms).toISOString() }, time(one.at_unix_ms)), h('b', {}, one.what), h('span', { class: 'wrap' }, one.text), more(one))))],
      [h('span', { class: 'muted' }, `${account}, thread ${thread}`), live.state?.accounts.some((one) => one.system === 'mail' && one.account === account) && record
        ? link(`/message/${path(account, record.message)}`, 'message') : null]),
    ]),
  }
}
