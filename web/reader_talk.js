// reader_talk.js - a conversation: its messages in order, the opened one in full.  A body that is not
// stored here is asked for, and shown when it comes.
import { Trouble, get, path, post } from './api.js'
import { h, render } from './dom.js'
import { button, failed, grey } from './page.js'
import { takeAhead } from './reader_ahead.js'
import { nameOf } from './reader_list.js'
import { ids, rowOf } from './reader_rows.js'
import { zip } from './reader_zip.js'
import { tellTrouble } from './say.js'
import { attachments, body, remoteImages } from './view_mail.js'
import { SAID, count, sentence, shortTime, size, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {import('./reader_data.js').News} News */
/** What a conversation asks and tells.
 * @typedef {{ offline: () => boolean, shown: () => boolean, changed: () => void, read: (rows: Row[]) => void, write: (url: string) => void, label: (id: string) => string,
 *   buttons: () => Child, resume: (message: any) => void, answer: (how: 'reply' | 'all' | 'forward', message: any) => void }} Owner */

const HOLDS_MS = 540000
const AGAIN_MS = 20
const AGAIN_MS_MAX = 100
const AWAITED_MS = 10000
const IMAGE = /^image\/(png|jpeg|gif|webp)$/i

/** @param {string} href @param {string} name */
const download = (href, name) => h('a', { href, download: name }).click()

export class Talk {
  /** @param {string} account @param {string} id of the opened message @param {Row | undefined} row what is known of it @param {Owner} owner */
  constructor(account, id, row, owner) {
    this.account = account
    this.id = id
    this.thread = row?.thread ?? ''
    this.subject = row?.subject
    /** Whether its body is here, as far as the list knows. */
    this.body = row?.body
    this.owner = owner
    /** Messages of the conversation, oldest first.
     * @type {any[]} */
    this.messages = []
    this.more = false
    /** Those shown in full.
     * @type {Set<string>} */
    this.open = new Set([id])
    /** In full.
     * @type {Map<string, any>} */
    this.full = new Map()
    /** @type {Set<string>} */
    this.images = new Set()
    /** What was done to messages, and when: an answer that was asked for before does not know of it.
     * @type {Map<string, { labels: string[], pinned: boolean | undefined, at_ms: number }>} */
    this.acted = new Map()
    /** Bodies that were asked for.
     * @type {Set<string>} */
    this.asked = new Set()
    /** @type {Trouble | null} */
    this.trouble = null
    this.began = Date.now()
    this.drawn = ''
    this.version = 0
  }

  changed() {
    this.version++
    this.owner.changed()
  }

  async load() {
    setTimeout(() => { if (!this.full.has(this.id)) this.changed() }, 160)
    const known = this.thread !== ''
    if (this.body === 'none') this.fetchBody({ id: this.id, body: 'none' }) // who waits for it does not wait for the headers first
    await Promise.all([this.loadOne(this.id), known ? this.loadThread() : null])
    if (!known && this.thread) await this.loadThread()
  }

  /** @param {any} message of an answer @param {number} asked_ms */
  asActed(message, asked_ms) {
    const acted = this.acted.get(message.id)
    return acted && acted.at_ms >= asked_ms ? { ...message, labels: acted.labels, pinned: acted.pinned } : message
  }

  /** @param {string} id */
  ask(id) {
    return get(`mail/${path(this.account)}/messages/${path(id)}`, this.images.has(id) ? { images: 'yes' } : {})
  }

  /** What was looked ahead for is shown at once, with the first drawing.
   * @param {string} id */
  async loadOne(id) {
    try {
      const ahead = this.images.has(id) ? undefined : takeAhead({ account: this.account, id })
      const loaded_ms = ahead?.at_ms ?? Date.now()
      const message = this.asActed(ahead?.message ?? await ahead?.coming ?? await this.ask(id), loaded_ms)
      this.full.set(id, { ...message, images: this.images.has(id), loaded_ms })
      this.thread ||= message.thread
      this.trouble = null
      this.fetchBody(message)
      const row = this.row(message)
      if (row.unread) this.owner.read([row])
    } catch (error) {
      if (id === this.id) this.trouble = error instanceof Trouble ? error : new Trouble(-1, { detail: String(error) })
      else tellTrouble(error, 'Message')
    }
    this.changed()
  }

  async loadThread() {
    try {
      const asked_ms = Date.now()
      const thread = await get(`mail/${path(this.account)}/threads/${path(this.thread)}`)
      /** @type {any[]} */
      const messages = thread.messages
      this.messages = messages.map((one) => this.asActed(one, asked_ms)).sort((a, b) => a.internal_unix_ms - b.internal_unix_ms)
      this.more = thread.more
      this.changed()
      const unread = this.messages.filter((one) => ids(one.labels).includes('UNREAD') && !this.open.has(one.id))
      for (const one of unread.slice(-5)) this.toggle(one.id)
    } catch {
      // The opened message is shown alone.
    }
  }

  /** @param {any} message */
  fetchBody(message) {
    if (message.body !== 'none' || this.asked.has(message.id)) return
    this.asked.add(message.id)
    post(`mail/${path(this.account)}/refresh`, { message: message.id }).then(() => this.awaitBody(message.id), (error) => {
      this.asked.delete(message.id)
      tellTrouble(error, 'Fetch')
    })
  }

  /** Looks whether the body has come; the stream tells of it too, up to a second later.
   * @param {string} id */
  async awaitBody(id) {
    const end_ms = Date.now() + AWAITED_MS
    for (let wait_ms = AGAIN_MS; Date.now() < end_ms; wait_ms = Math.min(AGAIN_MS_MAX, wait_ms * 1.25)) {
      await new Promise((go) => setTimeout(go, wait_ms))
      if (!this.owner.shown() || this.owner.offline() || (this.full.has(id) && !this.awaits(id))) return
      await this.lookAgain(id)
    }
  }

  /** Whether a body is still to come.
   * @param {string} id */
  awaits(id) {
    const message = this.full.get(id)
    return message?.body === 'none' && !message.gone && !message.refused
  }

  /** @param {string} id */
  async lookAgain(id) {
    if (this.full.get(id)?.body !== 'none') return
    const message = await this.ask(id).catch(() => null)
    const known = this.full.get(id)
    if (!message || known?.body !== 'none' || (message.body === 'none' && message.refused === known.refused && message.gone === known.gone)) return
    // Labels as they are known by now: a person may have acted since it was asked.
    this.full.set(id, { ...message, labels: known.labels, pinned: known.pinned, images: this.images.has(id), loaded_ms: Date.now() })
    this.changed()
  }

  /** A message once its body is here; after ten seconds what is known of it.  An answer quotes the body and names its headers.
   * @param {any} message @returns {Promise<any>} */
  async whole(message) {
    for (let tries = 0; tries < 100 && this.awaits(message.id) && !this.owner.offline(); tries++) await new Promise((go) => setTimeout(go, 100))
    return this.full.get(message.id) ?? message
  }

  /** A message of it as a row of a list.
   * @param {any} message @returns {Row} */
  row(message) {
    return rowOf(message, this.account)
  }

  /** All of it, as rows. */
  rows() {
    const all = this.messages.length > 0 ? this.messages : [...this.full.values()]
    return all.map((one) => this.row(this.full.get(one.id) ?? one))
  }

  /** Another state of one of its messages.
   * @param {Row} row */
  replace(row) {
    const full = this.full.get(row.id)
    if (row.account === this.account) this.acted.set(row.id, { labels: row.labels, pinned: row.pinned, at_ms: Date.now() })
    if (row.account !== this.account || (!full && !this.messages.some((one) => one.id === row.id))) return
    const { labels, pinned } = row
    if (full) this.full.set(row.id, { ...full, labels, pinned })
    this.messages = this.messages.map((one) => (one.id === row.id ? { ...one, labels, pinned } : one))
    this.changed()
  }

  /** @param {News} news */
  take(news) {
    if (news.reset) void this.load()
    for (const row of news.items) {
      const full = this.full.get(row.id)
      if (full?.body === 'none' && row.body !== 'none') void this.loadOne(row.id)
      else if (full || this.messages.some((one) => one.id === row.id)) this.replace(row)
      if (full?.body === 'none' && row.body === 'none') void this.lookAgain(row.id)
    }
    for (const id of news.gone) void this.lookAgain(id)
    if (news.items.some((row) => row.thread === this.thread && row.id !== this.id && !this.messages.some((one) => one.id === row.id))) void this.loadThread()
  }

  /** @param {string} id */
  toggle(id) {
    if (this.open.delete(id)) {
      this.changed()
      return
    }
    this.open.add(id)
    if (!this.full.has(id)) void this.loadOne(id)
    this.changed()
  }

  /** @param {string} [id] */
  loadImages(id = this.id) {
    if (!this.full.get(id)?.remote_images || this.images.has(id)) return
    this.images.add(id)
    void this.loadOne(id)
  }

  // ---- drawing

  /** Not stored: why, and what happens.
   * @param {any} message @returns {Child[]} */
  missing(message) {
    const words = message.gone ? SAID.gone_there : message.refused ? `Gmail refused: ${sentence(message.refused)}` : this.owner.offline() ? SAID.unreachable : SAID.fetching
    return [h('p', { class: 'no-body', role: 'status' }, words),
      message.snippet ? h('p', { class: 'muted' }, message.snippet) : null]
  }

  /** Where its parts are.  An address holds for ten minutes; that of a message that was opened long ago is asked for again.
   * @param {any} message @returns {Promise<string>} */
  async base(message) {
    const { view } = Date.now() - message.loaded_ms < HOLDS_MS ? message : await get(`mail/${path(this.account)}/messages/${path(message.id)}`)
    return String(view?.path ?? '').replace(/^\//, '')
  }

  /** @param {MouseEvent} event @param {any} message */
  save(event, message) {
    const at = /** @type {Element} */ (event.target).closest('a[download]')
    if (!at || Date.now() - message.loaded_ms < HOLDS_MS) return
    event.preventDefault()
    const file = /** @type {string} */ (at.getAttribute('href')).replace(/^.*\/att\//, 'att/')
    this.base(message).then((base) => download(base + file, at.getAttribute('download') ?? ''), (error) => tellTrouble(error, 'Save'))
  }

  /** @param {any} message @param {any[]} files */
  async saveAll(message, files) {
    try {
      const base = await this.base(message)
      const all = await Promise.all(files.map(async (one) => {
        const answer = await fetch(`${base}att/${one.number}`)
        if (!answer.ok) throw new Trouble(answer.status, { detail: `${one.file} cannot be read.` })
        return { name: one.file, data: new Uint8Array(await answer.arrayBuffer()) }
      }))
      const url = URL.createObjectURL(zip(all))
      download(url, `${(message.subject || 'attachments').replace(/[^\p{L}\p{N} ._-]+/gu, '_').slice(0, 80)}.zip`)
      setTimeout(() => URL.revokeObjectURL(url), 60000)
    } catch (error) {
      tellTrouble(error, 'Save all')
    }
  }

  /** @param {any} message @param {string} base @returns {Child[]} */
  content(message, base) {
    const files = (message.attachments ?? []).filter((/** @type {any} */ one) => !one.inline)
    return [
      message.problem ? h('p', { class: 'warn' }, message.problem) : null, remoteImages(message, () => this.loadImages(message.id)),
      body(message, base, (url) => this.owner.write(url)),
      h('div', { on: { click: (event) => this.save(event, message) } }, attachments(message, base)),
      ...files.filter((/** @type {any} */ one) => IMAGE.test(one.type)).map((/** @type {any} */ one) =>
        h('details', { key: 'view' + one.number, class: 'preview' }, h('summary', {}, `View ${one.name || one.file}`), h('img', { src: `${base}att/${one.number}`, alt: one.name || one.file, loading: 'lazy' }))),
      files.length > 1 ? h('p', { class: 'muted' }, button('Save all', () => void this.saveAll(message, files), { class: 'quiet' }),
        ` ${count(files.length, 'file')}, ${size(files.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.bytes, 0))}`) : null,
    ]
  }

  /** @param {any} short of the conversation */
  one(short) {
    const message = { ...short, ...this.full.get(short.id) }
    const open = this.open.has(short.id)
    const base = String(message.view?.path ?? '').replace(/^\//, '')
    const row = this.row(message)
    const labels = row.labels.filter((id) => !['UNREAD', 'INBOX', 'STARRED', 'SENT'].includes(id))
    return h('article', { key: short.id, class: 'turn' + (open ? ' open' : ''), 'aria-label': `${nameOf(message.from ?? '')}, ${time(message.internal_unix_ms)}` },
      h('div', { class: 'turn-head' },
        h('button', { type: 'button', class: 'plain turn-who', 'aria-expanded': String(open), on: { click: () => this.toggle(short.id) } },
          h('b', {}, open ? message.from || '(nobody)' : nameOf(message.from ?? '')), row.starred ? h('span', { title: 'starred' }, '★') : null),
        h('span', { class: 'muted' }, open ? time(message.date_unix_ms ?? message.internal_unix_ms) : shortTime(message.internal_unix_ms))),
      ...(open ? [
        h('p', { class: 'muted' }, `to ${message.to || 'nobody'}${message.cc ? ', cc ' + message.cc : ''}`, ...labels.map((id) => h('span', { class: 'label' }, this.owner.label(id))),
          row.pinned ? h('span', { class: 'label' }, 'kept offline') : null),
        ...(!this.full.has(short.id) ? [grey()] : message.body === 'none' ? this.missing(message) : this.content(message, base)),
        row.labels.includes('DRAFT') && !message.gone ? (row.labels.includes('TRASH') ? null : h('div', { class: 'buttons turn-answer' }, button('Continue', () => this.owner.resume(message)))) : this.full.has(short.id) ? h('div', { class: 'buttons turn-answer' },
          button('Reply', () => this.owner.answer('reply', message), { key: short.id === this.id ? 'r' : undefined, class: 'quiet' }),
          button('Reply to all', () => this.owner.answer('all', message), { key: short.id === this.id ? 'a' : undefined, class: 'quiet' }),
          button('Forward', () => this.owner.answer('forward', message), { key: short.id === this.id ? 'f' : undefined, class: 'quiet' })) : null,
      ] : [h('p', { class: 'muted turn-short' }, (message.snippet || message.text || '').slice(0, 160))]))
  }

  /** Draws it again if it has changed.
   * @param {Element} pane */
  draw(pane) {
    const state = `${this.account}/${this.id} ${this.version} ${this.owner.offline()}`
    if (this.drawn === state && pane.firstChild) return
    this.drawn = state
    const opened = this.full.get(this.id)
    const all = this.messages.length > 0 ? this.messages : opened ? [opened] : []
    const subject = opened?.subject ?? all[0]?.subject ?? this.subject
    if (!opened && all.length === 0 && this.trouble) {
      render(pane, failed(this.trouble, () => void this.load()))
      return
    }
    render(pane, this.owner.buttons(),
      h('h2', { tabindex: -1, key: 'subject', class: 'talk-subject' }, subject === undefined ? 'Loading' : subject || '(no subject)', all.length > 1 ? h('span', { class: 'muted' }, ` ${count(all.length, 'message')}`) : null),
      ...all.map((one) => this.one(one)), all.length === 0 && Date.now() - this.began >= 150 ? grey() : null,
      this.more ? h('p', { class: 'muted', key: 'more' }, 'Only the first messages of this conversation are shown; search finds the others.') : null)
  }

  get opened() {
    return this.full.get(this.id)
  }
}
