// grid.js - a list of rows with one tab stop: arrows, j and k move the mark, Enter opens, x selects.
import { h } from './dom.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {{ key: string, cells: Child[][], open?: () => void, class?: string, label?: string }} Row */
/** @typedef {{ name: string, class?: string, hidden?: boolean }} Column */

/** Which row is marked and which are selected; kept while the page is open, so that going back finds
 * the same row. */
export class Marks {
  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed
    this.at = ''
    /** @type {Set<string>} */
    this.selected = new Set()
    /** All that match, shown or not. */
    this.all = false
    /** @type {Row[]} */
    this.rows = []
  }

  /** @param {number} step */
  move(step) {
    if (this.rows.length === 0) return
    const now = this.rows.findIndex((row) => row.key === this.at)
    const to = now < 0 ? 0 : Math.min(this.rows.length - 1, Math.max(0, now + step))
    this.go(this.rows[to].key)
  }

  /** @param {string} key */
  go(key) {
    this.at = key
    this.changed()
    this.focus()
  }

  focus() {
    const row = document.querySelector('[role=row][tabindex="0"]')
    if (row instanceof HTMLElement) row.focus()
  }

  open() {
    this.rows.find((row) => row.key === this.at)?.open?.()
  }

  /** @param {string} [key] */
  select(key = this.at) {
    if (this.all) this.selected = new Set(this.rows.map((row) => row.key))
    this.all = false
    if (!this.selected.delete(key) && key) this.selected.add(key)
    this.changed()
  }

  selectAll() {
    this.all = !this.all
    this.selected.clear()
    this.changed()
  }

  none() {
    this.all = false
    this.selected.clear()
  }

  /** Those selected, or the marked one. */
  chosen() {
    const shown = this.rows.filter((row) => this.selected.has(row.key)).map((row) => row.key)
    return shown.length > 0 ? shown : this.rows.some((row) => row.key === this.at) ? [this.at] : []
  }

  /** @param {string} key */
  isSelected(key) {
    return this.all || this.selected.has(key)
  }
}

/** @param {Marks} marks @param {KeyboardEvent} event */
function arrows(marks, event) {
  const target = /** @type {HTMLElement} */ (event.target)
  if (target.getAttribute('role') !== 'row' || event.ctrlKey || event.metaKey || event.altKey) return
  const steps = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e6, End: 1e6 })
  if (event.key in steps) {
    event.preventDefault()
    marks.move(steps[event.key])
  } else if (event.key === 'Enter') {
    event.preventDefault()
    marks.open()
  }
}

/** @param {Marks} marks @param {Row} row @param {Column[]} columns @param {boolean} selects @param {number} index @param {boolean} stop */
function rowOf(marks, row, columns, selects, index, stop) {
  const marked = row.key === marks.at
  return h('div', {
    key: row.key, role: 'row', tabindex: stop ? 0 : -1, 'aria-rowindex': index + 2, 'aria-label': row.label,
    'aria-selected': selects ? String(marks.isSelected(row.key)) : null,
    class: 'row ' + (row.class ?? '') + (marked ? ' marked' : ''),
    on: {
      focus: () => { if (marks.at !== row.key) { marks.at = row.key; marks.changed() } },
      click: (event) => {
        if (/** @type {Element} */ (event.target).closest('a, button, input, select, summary')) return
        marks.at = row.key
        marks.changed()
        if (!String(getSelection())) row.open?.()
      },
    },
  },
  selects ? h('div', { role: 'gridcell', class: 'pick' }, h('input', {
    type: 'checkbox', tabindex: -1, 'aria-label': 'Select ' + (row.label ?? row.key), checked: marks.isSelected(row.key), on: { change: () => marks.select(row.key) },
  })) : null,
  ...row.cells.map((cell, i) => h('div', { role: 'gridcell', class: columns[i]?.class ?? '' }, ...cell)))
}

/** @param {{ label: string, columns: Column[], rows: Row[], marks: Marks, total?: number, selects?: boolean, class?: string }} options */
export function grid({ label, columns, rows, marks, total = rows.length, selects = false, class: name = '' }) {
  marks.rows = rows
  const stop = rows.some((row) => row.key === marks.at) ? marks.at : rows[0]?.key
  return h('div', {
    role: 'grid', 'aria-label': label, 'aria-rowcount': total + 1, 'aria-multiselectable': selects ? 'true' : null,
    class: `grid ${name}${selects ? ' selects' : ''}`, on: { keydown: (event) => arrows(marks, event) },
  },
  h('div', { role: 'row', 'aria-rowindex': 1, class: 'head' + (columns.every((column) => column.hidden) ? ' unseen' : '') },
    selects ? h('div', { role: 'columnheader', class: 'pick' }, h('span', { class: 'unseen' }, 'Selected')) : null,
    ...columns.map((column) => h('div', { role: 'columnheader', class: column.class ?? '' }, column.name))),
  ...rows.map((row, i) => rowOf(marks, row, columns, selects, i, row.key === stop)))
}
