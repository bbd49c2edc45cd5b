// reader_list.js - a list of any length in a few rows that are used again and again.  A browser clips
// what is higher than some 33 million pixels, so a long list has a lower ground: small steps move as
// they are, far ones by their share of it.
import { h } from './dom.js'
import { keyOf } from './reader_rows.js'
import { number, shortTime } from './words.js'

/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {import('./reader_rows.js').Rows} Rows */
/** What a list is asked and tells; `words`: what is said in a row about its labels.
 * @typedef {{ open: (row: Row) => void, ahead: (row: Row) => void, star: (row: Row) => void, changed: () => void, words: (row: Row) => string }} Owner */

const GROUND_PX = 8000000
const POOL = 40
const AROUND = 6
const QUIET_MS = 150

/** "Ben Ochoa" of "Ben Ochoa <ben@harbour.example>"
 * @param {string} from */
export const nameOf = (from) => from.replace(/\s*<[^>]*>\s*$/, '').replace(/^"(.*)"$/, '$1') || from

/** One of the rows that are used again. */
class Slot {
  /** @param {List} list @param {number} number */
  constructor(list, number) {
    this.list = list
    this.place = -1
    this.state = ''
    this.top = -1
    /** @type {Row | undefined} */
    this.row = undefined
    this.check = h('input', { type: 'checkbox', tabindex: -1, on: { change: () => { if (this.row) list.select(this.row) } } })
    this.star = h('button', { type: 'button', class: 'star plain', tabindex: -1, on: { click: () => { if (this.row) list.owner.star(this.row) } } })
    this.from = h('div', { role: 'gridcell', class: 'm-from' })
    this.subject = h('span', {})
    this.snippet = h('span', { class: 'muted' })
    this.labels = h('span', { class: 'label' })
    this.files = h('span', { class: 'm-files', title: 'has attachments' }, '@')
    this.date = h('div', { role: 'gridcell', class: 'm-date' })
    this.element = h('div', { role: 'row', id: 'mail-' + number, class: 'mrow', on: { click: (event) => this.click(event), pointerdown: () => { if (this.row) list.owner.ahead(this.row) } } },
      h('div', { role: 'gridcell', class: 'm-pick' }, this.check), h('div', { role: 'gridcell', class: 'm-star' }, this.star), this.from,
      h('div', { role: 'gridcell', class: 'm-subject' }, this.labels, this.subject, ' ', this.snippet), h('div', { role: 'gridcell', class: 'm-clip' }, this.files), this.date)
  }

  /** @param {MouseEvent} event */
  click(event) {
    if (!this.row || /** @type {Element} */ (event.target).closest('input, button')) return
    if (event.shiftKey) {
      this.list.selectTo(this.place)
      return
    }
    if (event.ctrlKey || event.metaKey) {
      this.list.select(this.row)
      return
    }
    this.list.mark(this.place)
    this.list.owner.open(this.row)
  }

  /** @param {number} place @param {number} top */
  show(place, top) {
    const row = this.list.rows?.at(place)
    const marked = place === this.list.place
    const selected = row ? this.list.selected.has(keyOf(row)) : false
    const state = `${place} ${marked} ${selected} ${this.list.day}`
    if (this.top !== top) this.element.style.transform = `translateY(${top}px)`
    this.top = top
    if (this.state === state && this.row === row && this.place === place) return
    Object.assign(this, { state, row, place })
    this.element.setAttribute('aria-rowindex', String(place + 1))
    this.element.setAttribute('aria-selected', String(selected))
    this.element.className = 'mrow' + (marked ? ' marked' : '') + (selected ? ' selected' : '') + (row ? (row.unread ? ' unread' : '') + (row.pending ? ' pending' : '') : ' ghost')
    if (row) this.fill(row, selected)
    else this.empty()
  }

  empty() {
    this.element.setAttribute('aria-label', 'Loading')
    this.check.setAttribute('aria-label', 'Select')
    this.star.setAttribute('aria-label', 'Star')
    this.check.checked = false
    for (const one of [this.from, this.subject, this.snippet, this.labels, this.date, this.star]) one.textContent = ''
    this.labels.hidden = this.files.hidden = true
  }

  /** @param {Row} row @param {boolean} selected */
  fill(row, selected) {
    const subject = row.subject || '(no subject)'
    const from = nameOf(row.from)
    const date = shortTime(row.internal_unix_ms)
    const words = this.list.owner.words(row)
    this.element.setAttribute('aria-label', `${row.unread ? 'Unread, ' : ''}${row.starred ? 'starred, ' : ''}${from}: ${subject}, ${date}${row.files ? ', has attachments' : ''}${row.pending ? ', waits for Gmail' : ''}`)
    this.check.checked = selected
    this.check.setAttribute('aria-label', `Select ${from}: ${subject}`)
    this.star.textContent = row.starred ? '★' : '☆'
    this.star.setAttribute('aria-label', `${row.starred ? 'Take the star from' : 'Star'} ${from}: ${subject}`)
    this.from.textContent = from
    this.subject.textContent = subject
    this.snippet.textContent = (row.snippet ?? '').replace(/[\x01\x02]/g, '')
    this.labels.textContent = words
    this.labels.hidden = words === ''
    this.files.hidden = !row.files
    this.date.textContent = date
  }
}

export class List {
  /** @param {Owner} owner */
  constructor(owner) {
    this.owner = owner
    /** @type {Rows | null} */
    this.rows = null
    /** The marked place, and the message that was there, with its time; -1: none, until that message is here. */
    this.place = 0
    this.key = ''
    this.ms = 0
    /** The row that a key means which had to wait for it.
     * @type {Row | null} */
    this.meant = null
    /** @type {Map<string, Row>} */
    this.selected = new Map()
    /** @type {Slot[]} */
    this.slots = []
    this.ground = h('div', { role: 'rowgroup', class: 'ground' })
    this.element = h('div', { role: 'grid', class: 'vlist', tabindex: 0, 'aria-label': 'Messages', 'aria-multiselectable': 'true', on: {
      scroll: () => this.scrolled(), keydown: (event) => this.keydown(event) } }, this.ground)
    /** Where the view is in the whole list, in pixels. */
    this.top = 0
    this.last = 0
    this.height = 0
    this.row_px = 32
    this.quiet = 0
    this.scrolledAt = 0
    this.day = ''
    new ResizeObserver(() => this.fit()).observe(this.element)
  }

  get whole() {
    return (this.rows?.total ?? 0) * this.row_px
  }

  get span() {
    return Math.min(this.whole, GROUND_PX)
  }

  get top_max() {
    return Math.max(0, this.whole - this.height)
  }

  get scroll_max() {
    return Math.max(0, this.span - this.height)
  }

  /** Shows other rows, from a place on.
   * @param {Rows | null} rows @param {number} [place] @param {number} [offset_px] */
  take(rows, place = 0, offset_px = 0) {
    this.rows = rows
    this.top = Math.min(this.top_max, Math.max(0, place * this.row_px + offset_px))
    this.find()
    this.settle()
  }

  /** The marked message may have another place now; one that was awaited comes into view. */
  find() {
    const place = this.key ? this.rows?.places.get(this.key) : undefined
    const awaited = this.place < 0
    if (place !== undefined) this.place = place
    if (this.place < 0) return
    this.place = Math.max(0, Math.min(this.place, (this.rows?.total ?? 1) - 1))
    const row = this.rows?.at(this.place)
    if (row) this.note(row)
    if (awaited && !this.moves) this.reveal()
  }

  /** Whether the mark is wholly in view. */
  sees() {
    const top = this.place * this.row_px
    return this.place >= 0 && top >= this.top && top + this.row_px <= this.top + this.height
  }

  /** Moves the view as far as it takes to see the mark; `settle` then shows it. */
  reveal() {
    const top = this.place * this.row_px
    if (top < this.top || this.height === 0) this.top = top
    else if (top + this.row_px > this.top + this.height) this.top = top + this.row_px - this.height
  }

  /** @param {Row | undefined} row */
  note(row) {
    this.key = row ? keyOf(row) : ''
    this.ms = row?.internal_unix_ms ?? 0
  }

  /** Marks a message once it is here, and nothing until then.
   * @param {string} key */
  expect(key) {
    this.place = -1
    this.key = key
    this.find()
  }

  /** What is at the top of the view; null: the newest, and it stays the newest; undefined: not known yet. */
  anchor() {
    const place = Math.floor(this.top / this.row_px)
    const row = this.rows?.at(place)
    if (this.top < this.row_px / 2) return null
    return !row ? undefined : { key: keyOf(row), ms: row.internal_unix_ms, offset_px: this.top - place * this.row_px }
  }

  fit() {
    const height = this.element.clientHeight
    if (height === 0) return
    const seen = this.sees()
    this.height = height
    this.last = this.element.scrollTop // it may have been out of the page
    const row_px = parseFloat(getComputedStyle(this.element).getPropertyValue('--row')) || 32
    this.top *= row_px / this.row_px
    this.row_px = row_px
    if (seen) this.reveal() // also at the lower edge of a view that became smaller
    this.settle()
  }

  /** Puts the ground where its share of the whole is.  It does not ask the browser where that is: the answer would need a layout
   * of all that was changed before, in the middle of a key. */
  settle() {
    const height = `${this.span}px`
    if (this.ground.style.height !== height) this.ground.style.height = height
    this.top = Math.min(this.top, this.top_max)
    const at = this.whole <= GROUND_PX ? this.top : Math.round((this.top / (this.top_max || 1)) * this.scroll_max)
    if (Math.abs(this.last - at) >= 1) {
      this.element.scrollTop = at
      this.last = this.element.scrollTop
    }
    this.draw()
  }

  scrolled() {
    const at = this.element.scrollTop
    const step = at - this.last
    if (step === 0 || this.element.clientHeight === 0) return
    this.scrolledAt = Date.now()
    if (this.whole <= GROUND_PX) this.top = at
    else if (Math.abs(step) > 3 * this.height) this.top = (at / this.scroll_max) * this.top_max
    else this.top += step
    if (at <= 0) this.top = 0
    if (at >= this.scroll_max - 1) this.top = this.top_max
    this.top = Math.max(0, Math.min(this.top, this.top_max))
    this.last = at
    this.draw()
    clearTimeout(this.quiet)
    this.quiet = window.setTimeout(() => { this.settle(); this.owner.changed() }, QUIET_MS)
  }

  /** Whether somebody is scrolling. */
  get moves() {
    return Date.now() - this.scrolledAt < QUIET_MS
  }

  draw() {
    const rows = this.rows
    const total = rows?.total ?? 0
    const shown = Math.ceil(this.height / this.row_px) + 1
    const first = Math.max(0, Math.floor(this.top / this.row_px) - AROUND)
    const last = Math.min(total - 1, first + shown + 2 * AROUND)
    this.pool(Math.max(POOL, shown + 2 * AROUND + 1))
    this.day = new Date().toDateString()
    this.element.setAttribute('aria-rowcount', String(total))
    const base = this.last - this.top
    const used = new Set()
    for (let place = first; place <= last; place++) {
      const slot = this.slots[place % this.slots.length]
      used.add(slot)
      slot.element.hidden = false
      slot.show(place, Math.round(base + place * this.row_px))
    }
    for (const slot of this.slots) if (!used.has(slot)) slot.element.hidden = true
    const marked = this.place >= first && this.place <= last ? this.slots[this.place % this.slots.length] : null
    if (marked && total > 0) this.element.setAttribute('aria-activedescendant', marked.element.id)
    else this.element.removeAttribute('aria-activedescendant')
    if (rows && this.height > 0) void rows.want(first, Math.max(last, first + shown))
  }

  /** @param {number} many */
  pool(many) {
    if (this.slots.length >= many) return
    while (this.slots.length < many) this.slots.push(new Slot(this, this.slots.length))
    this.ground.replaceChildren(...this.slots.map((slot) => slot.element))
    for (const slot of this.slots) slot.place = -1
  }

  // ---- the mark

  marked() {
    return this.meant ?? this.rows?.at(this.place)
  }

  /** Does something to a row as if it were the marked one.
   * @param {Row} row @param {() => void} run */
  mean(row, run) {
    this.meant = row
    try {
      run()
    } finally {
      this.meant = null
    }
  }

  /** @param {number} place */
  mark(place) {
    const total = this.rows?.total ?? 0
    this.place = Math.max(0, Math.min(place, total - 1))
    this.note(this.rows?.at(this.place))
    this.reveal()
    this.settle()
    this.owner.changed()
  }

  /** @param {KeyboardEvent} event */
  keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.element) return
    const page = Math.max(1, Math.floor(this.height / this.row_px) - 1)
    const steps = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 })
    const row = this.marked()
    if (event.key in steps) this.mark(this.place + steps[event.key])
    else if (event.key === 'Enter' && row) this.owner.open(row)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  // ---- the selection

  /** @param {Row} row */
  select(row) {
    if (!this.selected.delete(keyOf(row))) this.selected.set(keyOf(row), row)
    this.draw()
    this.owner.changed()
  }

  /** From the mark to a place.
   * @param {number} place */
  selectTo(place) {
    const mark = this.place < 0 ? place : this.place
    for (let at = Math.min(place, mark); at <= Math.max(place, mark); at++) {
      const row = this.rows?.at(at)
      if (row) this.selected.set(keyOf(row), row)
    }
    this.draw()
    this.owner.changed()
  }

  none() {
    this.selected.clear()
    this.draw()
  }

  /** Those selected, or the marked one. */
  chosen() {
    const row = this.marked()
    return this.selected.size > 0 && !this.meant ? [...this.selected.values()] : row ? [row] : []
  }

  /** "12 selected", or where the mark is */
  words() {
    const total = this.rows?.total ?? 0
    const of = this.rows?.exact ? ` of ${number(total)}` : ''
    if (this.selected.size > 0) return `${number(this.selected.size)} selected${of}`
    return total === 0 ? '' : this.place >= 0 ? number(this.place + 1) + of : this.rows?.exact ? number(total) : ''
  }
}
