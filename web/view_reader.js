// view_reader.js - mail to read, find, answer and tidy: folders, a list, a conversation, and a line that
// says what runs and why.  The panes stay the same elements while somebody reads.
import { standing } from './accounts.js'
import { h, render, renderFrom } from './dom.js'
import { live } from './live.js'
import { button, command, empty, failed } from './page.js'
import { canUndo, tellRefused, undo } from './reader_act.js'
import { forgetAhead, forgetAllAhead } from './reader_ahead.js'
import { accounts, begin, belongs, boxOf, boxesOf, end, followNews, loadFolders, offline } from './reader_data.js'
import { choose, isKept, keep, onMarked, refresh, run, selectAll, star, trash } from './reader_do.js'
import * as notes from './reader_notify.js'
import { answer, back, loadDrafts, openRow, openSide, side, turn, write, writing, written, writtenAt } from './reader_open.js'
import { bare } from './reader_quote.js'
import { keyOf } from './reader_rows.js'
import { fromServer, list, openNew, readAnew, readOn, relist, renewSoon, typed } from './reader_source.js'
import { NAMES, addressOf, drawn, enterAt, folderName, go, inFolder, leave, redraw, shown, sum, talk, where } from './reader_where.js'
import { running } from './reader_words.js'
import { unsaved, writeForm } from './reader_write.js'
import { SAID, number } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./reader_data.js').Box} Box */
/** @typedef {import('./reader_data.js').Folder} Folder */

const ORDER = ['INBOX', 'STARRED', 'IMPORTANT', 'SENT', 'DRAFT', 'ALL', 'SPAM', 'TRASH']
const opened_ms = Date.now()

// ---- the panes

const folders = h('nav', { class: 'folders', 'aria-label': 'Folders' })
const tools = h('div', { class: 'reader-tools' })
const note = h('div', { class: 'reader-note' })
const now = h('p', { class: 'now' })
const root = h('div', { key: 'reader', class: 'reader' }, folders, h('section', { class: 'box', 'aria-label': 'List of messages' }, tools, note, list.element), side, now)

// ---- drawing

/** @param {Box[]} of @param {string} who @param {Folder} one */
function folderLine(of, who, one) {
  const many = one.id === 'DRAFT' ? sum(of, one.id, 'total') + written.filter((draft) => of.some((box) => box.account === draft.account)).length : sum(of, one.id, 'unread')
  const name = NAMES[one.id] ?? one.name
  const here = where.who === who && where.folder === one.id && !where.q
  return h('li', { key: who + one.id }, h('a', { href: '#' + `/reader/${encodeURIComponent(who)}/${encodeURIComponent(one.id)}`, 'aria-current': here ? 'page' : null, class: many > 0 ? 'has' : null },
    h('span', {}, name), many > 0 ? h('b', {}, number(many), h('span', { class: 'unseen' }, one.id === 'DRAFT' ? ' drafts' : ' unread')) : null))
}

/** @param {Box} box */
function sorted(box) {
  const rank = (/** @type {Folder} */ one) => (ORDER.includes(one.id) ? ORDER.indexOf(one.id) : one.type === 'user' ? 50 : 99)
  return box.folders.filter((one) => one.type === 'user' || ORDER.includes(one.id)).sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name))
}

function drawFolders() {
  const of = accounts().map(boxOf)
  const inbox = { id: 'INBOX', name: 'Inbox', type: 'system', total: 0, unread: 0, known_unix_ms: 0 }
  const state = JSON.stringify([where.who, where.folder, where.q, notes.wanted(), written.map((draft) => draft.account), ...of.map((box) => [box.account, box.trouble?.message, box.folders])])
  renderFrom(folders, state, () => [
    button('Compose', () => write(), { key: 'c' }),
    of.length > 1 ? h('h2', { key: 'all' }, 'All accounts') : null, of.length > 1 ? h('ul', { key: 'all list' }, folderLine(of, 'all', inbox)) : null,
    ...of.flatMap((box) => [of.length > 1 ? h('h2', { key: box.account }, box.account) : null,
      box.trouble && box.trouble.status !== 0 && box.folders.length === 0 ? h('p', { key: box.account + ' trouble', class: 'bad' }, box.trouble.message) : null, h('ul', { key: box.account + ' list' }, ...sorted(box).map((one) => folderLine([box], box.account, one)))]),
    h('label', { class: 'check', key: 'notify' }, h('input', { type: 'checkbox', checked: notes.wanted(), on: { change: (event) => void notes.want(event.target.checked).then((on) => { event.target.checked = on }) } }), 'Notify me')])
}

/** @returns {Child[]} */
function actionButtons() {
  const inTrash = inFolder('TRASH')
  const inSpam = inFolder('SPAM')
  return [
    inTrash ? button('Put back', () => run('untrash'), { class: 'quiet' }) : button('Archive', () => run('archive'), { key: 'e', class: 'quiet' }),
    button(inTrash ? 'Delete for ever' : 'Trash', trash, { key: '#', class: 'quiet' }),
    button(inSpam ? 'No spam' : 'Spam', () => run(inSpam ? 'unspam' : 'spam'), { key: '!', class: 'quiet' }),
    button('Star', star, { key: 's', class: 'quiet' }), button('Label', () => choose('label'), { key: 'l', class: 'quiet' }), button('Move', () => choose('move'), { key: 'v', class: 'quiet' }),
    button('Unread', () => run('unread'), { key: 'U', class: 'quiet' }),
    button(isKept() ? 'Not offline' : 'Keep offline', keep, { key: 'o', class: 'quiet' }),
  ]
}

/** What those depend on. */
const actionState = () => [inFolder('TRASH'), inFolder('SPAM'), isKept()].join()

const talkTools = h('div', { class: 'buttons talk-tools', key: 'tools' })

function talkButtons() {
  renderFrom(talkTools, actionState(), () => [button('Back', back, { key: 'u', class: 'quiet' }), ...actionButtons(),
    button('Newer', () => turn(-1), { key: '[', class: 'quiet' }), button('Older', () => turn(1), { key: ']', class: 'quiet' }), button('Print', () => window.print(), { class: 'quiet' })])
  return talkTools
}

const listTools = h('div', { class: 'buttons', key: 'buttons' })

function listButtons() {
  const many = list.selected.size
  const any = (list.rows?.total ?? 0) > 0
  const own = any && (many > 0 || !talk)
  const dated = list.rows?.counted && any
  renderFrom(listTools, [own && actionState(), many > 0, any, dated, canUndo(), document.activeElement?.matches('input[type=date]')].join(), () => [
    own ? h('span', { class: 'buttons' }, ...actionButtons(), many > 0 ? button('Read', () => run('read'), { key: 'I', class: 'quiet' }) : null) : null,
    any ? button(many > 0 ? 'Select none' : 'Select all', () => void selectAll(), { key: '* a', class: 'plain' }) : null,
    button('Refresh', () => void refresh(), { key: '.', class: 'plain' }), canUndo() ? button('Undo', () => void undo(), { key: 'z', class: 'plain' }) : null,
    dated ? h('label', { class: 'field' }, h('span', {}, 'Go to'), h('input', { type: 'date', 'aria-label': 'Go to a day', on: { change: (event) => void jump(event.target.value) } })) : null])
  return listTools
}

function drawTools() {
  render(tools,
    h('form', { class: 'search', role: 'search', key: 'search', on: { submit: (event) => { event.preventDefault(); list.element.focus() } } }, h('label', { class: 'unseen', for: 'reader-q' }, 'Search mail'),
      h('input', { id: 'reader-q', type: 'search', value: where.q, placeholder: 'Search mail: from:ben has:attachment', autocomplete: 'off', spellcheck: 'false', on: { input: (event) => typed(event.target.value) } })),
    listButtons(),
    h('p', { class: 'muted count', key: 'count' }, [list.words(), where.q ? fromServer() : `${number(sum(boxesOf(where.who), where.folder, 'unread'))} unread`].filter(Boolean).join(', ')))
}

/** @param {string} day "2019-03-04" */
async function jump(day) {
  const { rows } = list
  if (!day || !rows) return
  const place = await rows.locate({ key: '', ms: Date.parse(day) + 86399999 }).catch(() => -1)
  if (place < 0) return
  list.take(rows, place)
  list.mark(place)
}

/** What stands where there are no rows. */
function drawNote() {
  const { rows } = list
  const gone = live.phase === 'gone'
  const trouble = rows?.trouble ?? null
  const none = rows?.opened && !rows.loading && rows.total === 0 && !trouble
  list.element.hidden = !rows || (rows.total === 0 && (none || trouble !== null))
  render(note, ...standings(), where.folder === 'DRAFT' && !where.q ? drafts() : null,
    trouble && trouble.status !== 0 && rows?.total === 0 ? failed(trouble, readAnew) : null,
    none && !gone ? empty(where.q ? SAID.unmatched : SAID.empty) : null)
}

/** What is wrong with the accounts that are shown. */
function standings() {
  const of = new Set(boxesOf(where.who).map((box) => box.account))
  const said = (live.state?.accounts ?? []).filter((one) => one.system === 'mail' && of.has(one.account)).map((one) => ({ key: one.account, ...standing(one) }))
  return said.filter((one) => one.words.length > 0).map((one) => h('p', { key: one.key, class: one.level }, ...one.words))
}

/** Drafts that are kept here. */
function drafts() {
  if (Date.now() - writtenAt > 3000) void loadDrafts()
  const here = written.filter((one) => where.who === 'all' || one.account === where.who)
  return here.length === 0 ? null : h('ul', { class: 'drafts', 'aria-label': 'Drafts kept here' }, ...here.map((one) => h('li', { key: keyOf(one) },
    h('a', { href: '#' + addressOf({ d: keyOf(one) }) }, one.subject || '(no subject)'), h('span', { class: 'muted' }, one.to ? ` to ${one.to}` : ''))))
}

/** Who wrote lately, for the fields of a message. */
function people() {
  const own = new Set(accounts().map(bare))
  return [...new Set([...(list.rows?.rows.values() ?? [])].map((row) => row.from).filter((one) => one && !own.has(bare(one))))]
}

function drawSide() {
  side.hidden = !talk && !where.d
  root.classList.toggle('reading', !side.hidden)
  if (writing) {
    const one = writing
    if (talk) talk.drawn = ''
    const leave = () => go({ d: '' })
    const send = () => void one.send(leave, () => go({ d: keyOf(one) }))
    const move = (/** @type {string} */ account) => void one.moveTo(account).then((moved) => {
      const field = side.querySelector('select')
      if (moved && writing === one) go({ d: keyOf(moved) })
      else if (field && writing === one) field.value = one.account
    })
    render(side, ...writeForm(one, { accounts: accounts(), people: people(), leave, send, discard: () => void one.discard(leave), move }))
  } else if (talk) talk.draw(side)
  else render(side)
}

function drawNow() {
  const of = boxesOf(where.who).filter((box) => box.status)
  const name = (/** @type {Box} */ box) => (of.length > 1 ? `${box.account.split('@')[0]}: ` : '')
  const words = of.map((box) => name(box) + running(/** @type {import('./reader_data.js').Status} */ (box.status), (id) => NAMES[id] ?? box.folder(id)?.name ?? id)).join(' ')
  render(now, live.phase === 'gone' ? `${SAID.gone} What was loaded can be read.` : words || 'Asking what runs…')
}

/** @type {Map<string, number>} */
const refused = new Map()

followNews((box, news) => {
  if (news) {
    if (writing?.account === box.account) void writing.look()
    notes.notify(box, news, (key) => list.rows?.places.has(key) === true, openNew)
    if (news.reset) forgetAllAhead(box.account)
    forgetAhead([...news.items, ...news.gone.map((id) => ({ account: box.account, id }))])
    takeNews(box, news)
  }
  const ended = (box.status?.actions?.refused ?? 0) * 1e6 - (box.status?.actions?.waiting ?? 0)
  if (box.status && refused.get(box.account) !== ended) {
    void tellRefused(box.account, !refused.has(box.account), opened_ms - 60000).catch(() => refused.delete(box.account))
    refused.set(box.account, ended)
    if (written.some((one) => one.sending)) void loadDrafts()
  }
  if (shown) redraw()
})

/** @param {Box} box @param {import('./reader_data.js').News} news */
function takeNews(box, news) {
  if (!shown || (where.who !== 'all' && where.who !== box.account)) return
  const { rows } = list
  if (talk?.account === box.account) talk.take(news)
  if (!rows) return
  const left = where.q ? [] : news.items.filter((row) => !belongs(row.labels, where.folder)).map(keyOf)
  for (const row of news.items) if (list.selected.has(keyOf(row))) list.selected.set(keyOf(row), row)
  for (const key of [...left, ...news.gone.map((id) => keyOf({ account: box.account, id }))]) list.selected.delete(key)
  for (const row of news.items) if (!rows.replace(row) && (where.q || belongs(row.labels, where.folder))) renewSoon() // a search may match it now
  rows.remove([...left, ...news.gone.map((id) => keyOf({ account: box.account, id }))])
  if (news.reset || news.archive) renewSoon()
  list.find()
  list.settle()
}

/** @returns {import('./keys.js').Keys} */
function keys() {
  const reading = talk !== null
  return {
    j: { words: 'next', run: () => turn(1) }, k: { words: 'previous', run: () => turn(-1) },
    Enter: { words: 'open', run: () => onMarked(() => { const row = list.marked(); if (row) openRow(row) }) },
    u: { words: 'back to the list', run: back }, x: { words: 'select', run: () => onMarked(() => { const row = list.marked(); if (row) list.select(row) }) },
    '* a': { words: 'select all', run: () => void selectAll() }, '.': { words: 'refresh', run: () => void refresh() },
    e: { words: 'archive', run: () => run('archive') }, '#': { words: 'trash', run: trash }, '!': { words: 'spam', run: () => run(inFolder('SPAM') ? 'unspam' : 'spam') },
    s: { words: 'star', run: star }, l: { words: 'label', run: () => choose('label') }, v: { words: 'move', run: () => choose('move') }, z: { words: 'undo', run: () => void undo() },
    c: { words: 'compose', run: () => write() }, I: { words: 'read', run: () => run('read') }, U: { words: 'unread', run: () => run('unread') },
    o: { words: 'keep offline', run: keep },
    ...(reading ? {
      r: { words: 'reply', run: () => void answer('reply') }, a: { words: 'reply to all', run: () => void answer('all') }, f: { words: 'forward', run: () => void answer('forward') },
      i: { words: 'load remote images', run: () => talk?.loadImages() }, Space: { words: 'scroll', run: () => scroll() },
    } : {}),
    '[': { words: 'newer', run: () => turn(-1) }, ']': { words: 'older', run: () => turn(1) },
  }
}

/** A page further; at the end to the next message. */
function scroll() {
  const by = side.clientHeight - 60
  if (side.scrollTop + side.clientHeight >= side.scrollHeight - 2) turn(1)
  else side.scrollTop += by
}

function enter() {
  begin()
  for (const box of boxesOf(where.who)) if (box.folders.length === 0) void loadFolders(box)
  if (writtenAt === 0) void loadDrafts()
}

window.addEventListener('beforeunload', (event) => { if (unsaved()) event.preventDefault() })
notes.watchHidden(() => (shown ? accounts().map(boxOf) : []))

/** @param {string | undefined} who @param {string | undefined} folder @param {URLSearchParams} params @returns {import('./page.js').View} */
export function readerView(who, folder, params) {
  const of = accounts()
  if (of.length === 0) return { title: 'Reader', up: '/', draw: () => [h('section', { class: 'card first' }, h('p', {}, ...command('No account yet. Run: `tidemark account add gmail you@example.com`')))] }
  enterAt({ who: who ?? (of.length > 1 ? 'all' : of[0]), folder: folder ?? 'INBOX', q: params.get('q') ?? '', m: params.get('m') ?? '', d: params.get('d') ?? '' })
  enter()
  relist()
  openSide(talkButtons)
  return {
    get title() { return folderName() },
    keys, up: '/', count: () => sum(accounts().map(boxOf), 'INBOX', 'unread'), offline: () => offline(accounts().map(boxOf)),
    leave: () => {
      leave()
      void writing?.close()
      queueMicrotask(() => { if (!shown) end() })
    },
    draw: () => {
      drawn()
      relist() // an account may have come
      drawFolders()
      drawTools()
      drawNote()
      drawSide()
      drawNow()
      list.draw()
      readOn()
      return [root]
    },
  }
}
