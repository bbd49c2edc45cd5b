// view_mail.js - finds and shows stored mail.  A message's HTML is in a frame without scripts, under an
// address of its own; the page reads its height, and opens its links itself.
import { get, path } from './api.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { live } from './live.js'
import { Loader, button, card, empty, link, marksOf, page, select } from './page.js'
import { tellTrouble } from './say.js'
import { searchBox } from './view_system.js'
import { SAID, count, date, number, size, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */

const LIMIT = 50
const COLUMNS = ['From', 'Subject', 'Date'].map((name) => ({ name, class: 'c-' + name.toLowerCase() }))

const mailAccounts = () => (live.state?.accounts ?? []).filter((account) => account.system === 'mail').map((account) => account.account)

/** The name alone, of "Ben Ochoa <ben@harbour.example>".
 * @param {string} from */
const sender = (from) => from.replace(/\s*<[^>]*>\s*$/, '').replace(/^"(.*)"$/, '$1') || from

/** What was found is between two control characters.
 * @param {string} text @returns {Child[]} */
const highlit = (text) => text.split(/[\x01\x02]/).map((part, i) => (i % 2 ? h('mark', {}, part) : part))

/** @param {any} row @returns {import('./grid.js').Row} */
function messageRow(row) {
  const to = `/message/${encodeURIComponent(row.account)}/${encodeURIComponent(row.id)}`
  return {
    key: row.account + '/' + row.id, open: () => page.go(to), label: `${sender(row.from)}: ${row.subject}, ${date(row.internal_unix_ms)}`,
    cells: [[sender(row.from)], [link(to, row.subject || '(no subject)'), row.snippet ? h('span', { class: 'muted snippet' }, ' ', ...highlit(row.snippet)) : null],
      [date(row.internal_unix_ms)]],
  }
}

/** @param {URLSearchParams} params */
export function searchView(params) {
  const q = params.get('q') ?? ''
  const account = params.get('account') ?? ''
  const marks = marksOf('search?' + params)
  const ask = (/** @type {string} */ after) => get('mail/search', { q, account, limit: LIMIT, after })
  const list = new Loader(async () => (q ? ask('') : { messages: [], next: null }))
  const more = async () => {
    const shown = list.data
    try {
      const found = await ask(shown.next)
      list.data = { messages: [...shown.messages, ...found.messages], next: found.next }
    } catch (error) {
      tellTrouble(error, 'Search')
    }
    page.redraw()
  }
  return {
    title: 'Search', marks, up: '/mail', load: () => list.load(),
    /** @returns {Child[]} */
    draw() {
      return [
        searchBox(q, account),
        mailAccounts().length > 1 ? h('div', { class: 'filters' }, select('Account', account, [['', 'all'], ...mailAccounts()], (name) =>
          page.turn(`/search?q=${encodeURIComponent(q)}${name ? '&account=' + encodeURIComponent(name) : ''}`))) : null,
        ...(!q ? [] : list.shown((found) => found.messages.length === 0 ? [empty(SAID.unmatched)] : [
          grid({ label: 'Messages', marks, class: 'messages', total: found.messages.length, rows: found.messages.map(messageRow), columns: COLUMNS }),
          found.next ? button('Show more', () => void more(), { class: 'plain more' }) : h('p', { class: 'muted' }, count(found.messages.length, 'message') + '.'),
        ])),
      ]
    },
  }
}

/** The frame reports nothing by itself: it has no scripts.  The page looks into it.
 * @param {HTMLIFrameElement} frame @param {(url: string) => void} [write] takes a mailto link */
function watchFrame(frame, write) {
  const inside = frame.contentDocument
  if (!inside?.documentElement) return
  const fit = () => { frame.style.height = Math.min(20000, Math.max(60, inside.documentElement.scrollHeight + 8)) + 'px' }
  fit()
  new ResizeObserver(fit).observe(inside.documentElement)
  inside.addEventListener('click', (event) => {
    const at = /** @type {Element} */ (event.target).closest?.('a[href]')
    if (!at) return
    event.preventDefault()
    const url = at.getAttribute('href') ?? ''
    if (/^https?:/i.test(url)) window.open(url, '_blank', 'noopener,noreferrer')
    else if (/^mailto:/i.test(url)) write?.(url)
  })
  inside.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (!document.dispatchEvent(new KeyboardEvent('keydown', { key: event.key, bubbles: true, cancelable: true }))) event.preventDefault()
  })
}

/** @param {any} message @param {string} base @param {(url: string) => void} [write] */
export function body(message, base, write) {
  if (message.html) {
    return h('iframe', { key: base, class: 'mail', sandbox: 'allow-same-origin', referrerpolicy: 'no-referrer', title: 'Message', src: base + 'html',
      on: { load: (event) => watchFrame(event.target, write) } })
  }
  return h('pre', { class: 'mail-text', tabindex: 0 }, message.text || '')
}

/** @param {any} message @param {string} base */
export function attachments(message, base) {
  const files = (message.attachments ?? []).filter((/** @type {any} */ file) => !file.inline)
  if (files.length === 0) return null
  return h('ul', { class: 'files', 'aria-label': 'Attachments' }, ...files.map((/** @type {any} */ file) => h('li', { key: String(file.number) },
    h('a', { href: `${base}att/${file.number}`, download: file.file }, file.name || file.file), h('span', { class: 'muted' }, ` ${size(file.bytes)}`))))
}

/** @param {any} message @param {() => void} load */
export function remoteImages(message, load) {
  const many = message.remote_images ?? 0
  if (many === 0 || message.images) return null
  return h('p', { class: 'remote' }, `${count(many, 'remote image')} not loaded.`, button('Load', load, { key: 'i', class: 'quiet' }))
}

/** @param {string} account @param {string} id */
export function messageView(account, id) {
  const marks = marksOf(`thread ${account}`)
  // Only what was agreed to here, and only for this message.
  let images = false
  const about = new Loader(async () => {
    const message = await get(`mail/${path(account)}/messages/${path(id)}`, images ? { images: 'yes' } : {})
    const thread = message.thread ? await get(`mail/${path(account)}/threads/${path(message.thread)}`).catch(() => null) : null
    return { message: { ...message, images }, thread }
  })
  const load = () => {
    images = true
    void about.load()
  }
  return {
    title: 'Message', marks, up: '/mail', load: () => about.load(),
    keys: () => ({ i: { words: 'load remote images', run: () => { if ((about.data?.message.remote_images ?? 0) > 0) load() } } }),
    draw: () => about.shown(({ message, thread }) => {
      const base = String(message.view?.path ?? '').replace(/^\//, '')
      const others = (thread?.messages ?? []).filter((/** @type {any} */ one) => one.id !== message.id)
      return [
        h('article', { class: 'card message', 'aria-label': message.subject || 'Message' },
          h('h2', {}, message.subject || '(no subject)'),
          h('div', { class: 'message-head' },
            h('b', {}, message.from || '(nobody)'), h('span', { class: 'muted' }, time(message.date_unix_ms ?? message.internal_unix_ms)),
            h('span', { class: 'muted' }, `to ${message.to || 'nobody'}${message.cc ? ', cc ' + message.cc : ''}`),
            h('span', { class: 'labels' }, ...(message.labels ?? []).map((/** @type {any} */ label) => h('span', { class: 'label' }, label.name)))),
          message.problem ? h('p', { class: 'warn' }, message.problem) : null,
          remoteImages(message, load), body(message, base), attachments(message, base)),
        others.length === 0 ? null : card('Thread', [grid({ label: 'Thread', marks, class: 'messages', total: others.length, columns: COLUMNS,
          rows: others.map((/** @type {any} */ one) => messageRow({ ...one, account })) })], [h('span', { class: 'muted' }, `${number(others.length + 1)} messages`)]),
      ]
    }),
  }
}
