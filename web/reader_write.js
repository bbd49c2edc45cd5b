// reader_write.js - a message that is being written: kept as a draft every two seconds, copied to the server
// when it is closed, sent with ten seconds to think again.
import { Trouble, get, path, post, put, remove } from './api.js'
import { h } from './dom.js'
import { button, page, select } from './page.js'
import { offer } from './reader_act.js'
import { boxOf, catchUp } from './reader_data.js'
import { askPeople, completed } from './reader_people.js'
import { confirmed, tell, tellTrouble } from './say.js'
import { clock, size } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./reader_quote.js').Letter} Letter */

const SAVE_MS = 2000
const FILE_BYTES_MAX = 25e6

/** @type {Map<string, Writing>} */
const all = new Map()

let tellKept = () => {}

/** @param {() => void} tell called when a draft was begun, or thrown away */
export const onKept = (tell) => { tellKept = tell }

/** @returns {Letter} */
export const blank = () => ({ to: '', cc: '', bcc: '', subject: '', text: '', in_reply_to: '', references: '', thread: '' })

export class Writing {
  /** @param {string} account @param {string} id @param {Letter} letter */
  constructor(account, id, letter) {
    this.account = account
    this.id = id
    this.letter = letter
    /** `data`: while it is in this page; another account's draft can have it too.
     * @type {{ name: string, bytes: number, state: string, data?: Blob }[]} */
    this.files = []
    this.dirty = false
    /** One request after another: what belongs to a draft waits until the draft is there.
     * @type {Promise<unknown>} */
    this.line = Promise.resolve()
    this.moving = false
    this.savedAt = 0
    this.trouble = ''
    this.timer = 0
    this.gone = false
    this.sent = false
    /** Its formatting is in Gmail still; it is there no more. */
    this.formatted = false
    this.removed = false
    all.set(account + '/' + id, this)
  }

  get at() {
    return `mail/${path(this.account)}/drafts/${path(this.id)}`
  }

  /** @param {keyof Letter} name @param {string} value */
  edit(name, value) {
    this.letter[name] = value
    this.dirty = true
    this.sent = false
    this.plan()
  }

  plan() {
    if (!this.timer && !this.gone) this.timer = window.setTimeout(() => { this.timer = 0; void this.save() }, SAVE_MS)
  }

  /** What is typed while it is being saved is saved next time.
   * @param {boolean} [untouched] also if nothing was typed @returns {Promise<boolean>} */
  save(untouched = false) {
    const saved = this.line.then(() => this.saveNow(untouched))
    this.line = saved
    return saved
  }

  /** @param {boolean} untouched */
  async saveNow(untouched) {
    if (this.gone) return false
    if (!this.dirty && (this.savedAt || !untouched)) return true
    const first = !this.savedAt
    this.dirty = false
    try {
      const answer = await put(this.at, this.letter)
      if (answer.created && !first) this.lose()
      this.savedAt = answer.saved_unix_ms
      this.trouble = ''
      await this.attachAgain()
    } catch (error) {
      this.dirty = true
      this.trouble = error instanceof Error ? error.message : String(error)
      this.plan()
    }
    if (first && this.savedAt) tellKept()
    page.redraw()
    return this.trouble === ''
  }

  /** What is kept of it now; the text too, unless something is typed that is not kept.
   * @param {any} draft */
  take(draft) {
    this.formatted = draft.formatted
    this.removed ||= draft.removed
    if (!this.moving && this.files.every((one) => one.state === 'added')) {
      const known = this.files
      this.files = draft.attachments.map((/** @type {any} */ one) => known.find(({ name, bytes }) => name === one.name && bytes === one.bytes) ?? { ...one, state: 'added' })
    }
    if (!this.dirty) this.letter = Object.assign(blank(), Object.fromEntries(Object.keys(blank()).map((name) => [name, draft[name] ?? ''])))
  }

  /** Its form, if it is shown, says what it says: a field that is typed in is never drawn again. */
  show() {
    for (const [name, value] of Object.entries(this.letter)) {
      const at = document.getElementById('write-' + name)
      if ((at instanceof HTMLInputElement || at instanceof HTMLTextAreaElement) && at.value !== value) at.value = value
    }
  }

  /** It was kept, and is no more, nor are its files: those that this page has go along with the next save. */
  lose() {
    const lost = this.files.filter((one) => !one.data && one.state === 'added').map((one) => one.name)
    for (const one of this.files) if (one.data && one.state === 'added') one.state = 'lost'
    Object.assign(this, { removed: true, formatted: false, savedAt: 0, files: this.files.filter((one) => one.state !== 'added') })
    if (lost.length > 0) tell(`No longer attached: ${lost.join(', ')}.`, { bad: true, help: 'The draft was sent or deleted in Gmail meanwhile.' })
  }

  async attachAgain() {
    const lost = this.files.filter((one) => one.state === 'lost')
    if (lost.length > 0) await this.attach(lost.map((one) => new File([/** @type {Blob} */ (one.data)], one.name, { type: one.data?.type })))
  }

  /** Looks what became of it at Gmail; what is written here stays. */
  look() {
    this.line = this.line.then(async () => {
      if (!this.savedAt || this.gone || this.sent) return
      try {
        this.take(await get(this.at))
        if (!this.dirty && document.querySelector('.write')?.getAttribute('data-draft') === this.id) this.show()
      } catch (error) {
        if (!(error instanceof Trouble) || error.status !== 404 || this.sent) return
        this.lose()
      }
      page.redraw()
    })
    return this.line
  }

  /** Nobody writes on: the server gets it at once.  Without this it gets it later. */
  async close() {
    if (!(await this.save()) || !this.savedAt || this.sent || this.gone) return
    await post(`mail/${path(this.account)}/actions`, { do: 'keep', messages: [], draft: this.id }).catch(() => {})
  }

  /** @param {Iterable<File>} files */
  async attach(files) {
    for (const file of files) {
      const one = { name: file.name, bytes: file.size, state: 'adding', data: file }
      if (file.size > FILE_BYTES_MAX) {
        tell(`${file.name} is larger than ${size(FILE_BYTES_MAX)}.`, { bad: true, help: 'Gmail takes no larger file.' })
        continue
      }
      this.files = [...this.files.filter((other) => other.name !== one.name), one]
      page.redraw()
      try {
        if (!this.savedAt && !(await this.save(true))) throw new Error(this.trouble)
        await put(`${this.at}/attachments/${path(one.name)}`, file)
        one.state = 'added'
      } catch (error) {
        this.files = this.files.filter((other) => other !== one)
        tellTrouble(error, 'Attach ' + one.name)
      }
      page.redraw()
    }
  }

  /** @param {string} name */
  async detach(name) {
    try {
      if (!this.files.some((one) => one.name === name && one.state === 'lost')) await remove(`${this.at}/attachments/${path(name)}`)
      this.files = this.files.filter((one) => one.name !== name)
    } catch (error) {
      tellTrouble(error, 'Take out ' + name)
    }
    page.redraw()
  }

  /** Those of the message that is passed on.
   * @param {any} message */
  async bring(message) {
    const base = String(message.view?.path ?? '').replace(/^\//, '')
    for (const one of (message.attachments ?? []).filter((/** @type {any} */ file) => !file.inline)) {
      const answer = await fetch(`${base}att/${one.number}`).catch(() => null)
      if (answer?.ok) await this.attach([new File([await answer.blob()], one.file)])
      else tell(`${one.file} could not be added.`, { bad: true, help: 'Save it from the message, and attach it.' })
    }
  }

  /** @param {() => void} leave @param {() => void} again */
  async send(leave, again) {
    if (!`${this.letter.to}${this.letter.cc}${this.letter.bcc}`.trim()) {
      tell('There is nobody to send it to.', { bad: true })
      document.getElementById('write-to')?.focus()
      return
    }
    if (this.moving || this.files.some((one) => one.state === 'adding')) {
      tell('A file is still being added.', { bad: true })
      return
    }
    const files = this.files.length
    try {
      for (let tries = 0; (this.dirty || !this.savedAt) && tries < 3; tries++) await this.save(true)
      if (this.dirty) throw new Error(this.trouble)
      if (this.files.length < files) return // it was told which is not attached any more
      const { id } = await post(`mail/${path(this.account)}/actions`, { do: 'send', messages: [], draft: this.id })
      this.sent = true
      offer({ words: 'Sending in 10 s.', parts: [{ account: this.account, id }], back: () => { this.sent = false; again() } })
      leave()
    } catch (error) {
      tellTrouble(error, 'Send')
    }
    void catchUp(boxOf(this.account))
  }

  /** The same from another account.  A draft and its files belong to one: it is made anew there, and ends here once all is there.
   * @param {string} account @returns {Promise<Writing | null>} null: it stays as it is */
  async moveTo(account) {
    if (this.moving || account === this.account) return null
    const stays = this.files.filter((one) => one.state === 'adding' || !one.data)
    if (stays.length > 0) {
      tell(`${stays.map((one) => one.name).join(', ')} cannot go along to ${account}.`, { bad: true, help: `Take it out and choose the account again, or send it from ${this.account}.` })
      return null
    }
    this.moving = true
    // A conversation belongs to one mailbox; who answers is known by the headers.
    const moved = begun(account, { ...this.letter, thread: '' })
    moved.dirty = true
    const there = await moved.save()
    if (there) await moved.attach(this.files.map((one) => new File([/** @type {Blob} */ (one.data)], one.name)))
    this.moving = false
    if (this.gone || !there || moved.files.length < this.files.length) {
      if (!there) tell(`From ${account}: ${moved.trouble}`, { bad: true, help: `It is still from ${this.account}.` })
      await moved.end()
      return null
    }
    Object.assign(moved, { letter: { ...this.letter, thread: '' }, dirty: true })
    moved.plan()
    await this.end()
    return moved
  }

  /** Nothing of it is kept any more. */
  async end() {
    this.gone = true
    clearTimeout(this.timer)
    all.delete(this.account + '/' + this.id)
    await this.line // what is being saved now would come back
    if (this.savedAt) await remove(this.at).then(tellKept, (error) => tellTrouble(error, 'Throw away'))
  }

  /** @param {() => void} leave */
  async discard(leave) {
    if ((this.savedAt || this.dirty) && !(await confirmed('Throw this draft away?', 'Throw it away'))) return
    await this.end()
    leave()
  }

  /** How safe it is. */
  words() {
    if (this.trouble) return `Not saved: ${this.trouble} It is tried again.`
    return this.savedAt && !this.dirty ? `Saved ${clock(this.savedAt)}.` : this.savedAt || this.dirty ? 'Saving…' : ''
  }
}

/** One that was begun here or elsewhere.
 * @param {string} account @param {string} id @returns {Promise<Writing>} */
export async function reopen(account, id) {
  const known = all.get(account + '/' + id)
  if (known) {
    await known.look()
    return known
  }
  const draft = await get(`mail/${path(account)}/drafts/${path(id)}`)
  const writing = new Writing(account, id, blank())
  writing.take(draft)
  writing.savedAt = draft.saved_unix_ms
  return writing
}

/** @param {string} account @param {Letter} letter */
export const begun = (account, letter) => new Writing(account, crypto.randomUUID().replaceAll('-', ''), letter)

/** Whether something typed is nowhere but in this page. */
export const unsaved = () => [...all.values()].some((one) => one.dirty && !one.gone)

/** @param {Writing} writing @param {keyof Letter} name @param {string} label @param {string[]} [people] who wrote lately */
function field(writing, name, label, people) {
  const edit = (/** @type {string} */ text) => {
    writing.edit(name, text)
    if (people) askPeople(writing.account, text)
    page.redraw()
  }
  return h('label', { class: 'field write-line' }, h('span', {}, label),
    h('input', { type: 'text', id: 'write-' + name, value: writing.letter[name], autocomplete: 'off', spellcheck: people ? 'false' : 'true', list: people ? 'people-' + name : null,
      on: { input: (event) => edit(event.target.value) } }),
    people ? h('datalist', { id: 'people-' + name }, ...completed(writing.account, writing.letter[name], people).map((one) => h('option', { value: one }))) : null)
}

/** @param {Writing} writing @param {{ accounts: string[], people: string[], move: (account: string) => void, send: () => void, discard: () => void, leave: () => void }} more @returns {Child[]} */
export function writeForm(writing, { accounts, people, move, send, discard, leave }) {
  const keydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    send()
  }
  return [h('form', { key: 'write ' + writing.id, class: 'write', 'data-draft': writing.id, 'aria-label': 'Message', on: { submit: (event) => event.preventDefault(), keydown } },
    h('h2', { tabindex: -1 }, writing.letter.subject || 'New message'),
    writing.removed ? h('p', { class: 'warn', role: 'status' }, 'It was sent or deleted in Gmail meanwhile. What is written here is a draft of its own.') : null,
    writing.formatted ? h('p', { class: 'warn' }, 'Gmail has this draft with formatting. It is plain text here: the first change takes the formatting away there, too.') : null,
    accounts.length > 1 ? select('From', writing.account, accounts, move) : null,
    field(writing, 'to', 'To', people), field(writing, 'cc', 'Cc', people), field(writing, 'bcc', 'Bcc', people), field(writing, 'subject', 'Subject'),
    h('label', { class: 'unseen', for: 'write-text' }, 'Text'),
    h('textarea', { id: 'write-text', value: writing.letter.text, rows: 14, on: { input: (event) => writing.edit('text', event.target.value) } }),
    writing.files.length > 0 ? h('ul', { class: 'files', 'aria-label': 'Attachments' }, ...writing.files.map((one) => h('li', { key: one.name }, `${one.name} ${size(one.bytes)}${one.state === 'adding' ? ', adding…' : ''} `,
      button('×', () => void writing.detach(one.name), { class: 'plain', label: 'Take out ' + one.name })))) : null,
    h('div', { class: 'buttons' },
      h('button', { type: 'button', 'aria-keyshortcuts': 'Control+Enter', on: { click: send } }, 'Send', h('kbd', { 'aria-hidden': 'true' }, 'Ctrl+Enter')),
      h('label', { class: 'attach' }, h('span', {}, 'Attach'), h('input', { type: 'file', multiple: true, on: { change: (event) => { void writing.attach([...event.target.files]); event.target.value = '' } } })),
      button('Close', leave, { class: 'quiet' }), button('Throw away', discard, { class: 'quiet' }),
      h('span', { class: 'muted saved', role: 'status' }, writing.words())))]
}
