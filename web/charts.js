// charts.js - the tide ruler, the bar of a quota, a line over time, a calendar of days.  Each says in
// words what it shows; shapes differ, not only colours.
import { h, s } from './dom.js'
import { date, number } from './words.js'

/** @typedef {{ from_unix_ms: number, to_unix_ms: number, cells: string }} Ruler */

const STATES = {
  '=': ['complete', 'complete'],
  '-': ['beyond', 'stored beyond the tidemark'],
  'x': ['bad', 'complete but for bad items'],
  '/': ['gap', 'still to be stored'],
  '!': ['failed', 'waits for you'],
}

/** The patterns of gaps, which all rulers refer to. */
export function patterns() {
  return s('svg', { class: 'patterns', 'aria-hidden': 'true', width: 0, height: 0 },
    s('defs', {},
      s('pattern', { id: 'gap', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
        s('rect', { width: 6, height: 6, class: 'gap-ground' }), s('rect', { width: 2, height: 6, class: 'gap-line' })),
      s('pattern', { id: 'failed', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
        s('rect', { width: 6, height: 6, class: 'failed-ground' }), s('rect', { width: 3, height: 6, class: 'failed-line' }))))
}

/** Runs of equal cells.
 * @param {string} cells @returns {{ state: string, from: number, to: number }[]} */
export function runs(cells) {
  const list = []
  for (let i = 0; i < cells.length;) {
    let end = i + 1
    while (end < cells.length && cells[end] === cells[i]) end++
    list.push({ state: cells[i], from: i, to: end })
    i = end
  }
  return list
}

/** @param {Ruler} ruler @param {number} mark */
function rulerWords(ruler, mark) {
  const missing = [...ruler.cells].filter((cell) => cell === '/' || cell === '!').length
  const share = Math.round((100 * (ruler.cells.length - missing)) / ruler.cells.length)
  return `From ${date(ruler.from_unix_ms)} to ${date(ruler.to_unix_ms)}: ${missing === 0 ? 'all' : share + ' %'} of the time is stored` +
    (mark ? `, complete to ${date(mark - 1)}.` : '.')
}

/** The stream from its beginning to now; a line at the tidemark.
 * @param {Ruler | null | undefined} ruler @param {number | null | undefined} mark @param {boolean} [large] */
export function tide(ruler, mark, large = false) {
  if (!ruler) return h('div', { class: 'tide none' }, 'nothing stored yet')
  const wide = 960
  const high = large ? 28 : 14
  const cell = wide / ruler.cells.length
  const part = mark ? (mark - ruler.from_unix_ms) / (ruler.to_unix_ms - ruler.from_unix_ms) : -1
  const at = Math.min(1, Math.max(0, part)) * wide
  return h('div', { class: large ? 'tide large' : 'tide' },
    s('svg', { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': rulerWords(ruler, mark ?? 0) },
      ...runs(ruler.cells).map(({ state, from, to }) => s('rect', {
        x: from * cell, y: state === '=' ? 1 : 2, width: (to - from) * cell, height: state === '=' ? high - 2 : high - 4,
        class: 'tide-' + (/** @type {Record<string, string[]>} */ (STATES)[state] ?? STATES['/'])[0],
      })),
      part >= 0 ? s('rect', { x: Math.min(wide - 3, Math.max(0, at - 1.5)), y: 0, width: 3, height: high, class: 'tide-mark' }) : null),
    large ? axis(ruler) : null)
}

const YEARS_SHOWN = 6

/** Each year where it begins; a stream of less than two years has the days of its ends instead.
 * @param {Ruler} ruler */
function axis(ruler) {
  const { from_unix_ms: from, to_unix_ms: to } = ruler
  const first = new Date(from).getFullYear() + 1
  const last = new Date(to).getFullYear()
  const step = Math.ceil((last - first + 1) / YEARS_SHOWN)
  /** @type {[number, string][]} */
  const marks = last <= first ? [[0, date(from)], [100, date(to)]] : []
  for (let year = first; last > first && year <= last; year += step) marks.push([(100 * (new Date(year, 0, 1).getTime() - from)) / (to - from), String(year)])
  return s('svg', { class: 'axis', 'aria-hidden': 'true' },
    ...marks.map(([at, words]) => s('text', { x: at.toFixed(2) + '%', y: 15, 'text-anchor': at < 4 ? 'start' : at > 96 ? 'end' : 'middle' }, words)))
}

/** What the shapes of a ruler mean. */
export function legend(/** @type {Ruler | null | undefined} */ ruler) {
  if (!ruler) return null
  return h('ul', { class: 'legend', 'aria-label': 'What the ruler shows' },
    ...Object.entries(STATES).filter(([cell]) => ruler.cells.includes(cell)).map(([, [name, words]]) => h('li', {},
      s('svg', { width: 16, height: 10, 'aria-hidden': 'true' }, s('rect', { x: 0, y: 0, width: 16, height: 10, class: 'tide-' + name })), words)),
    h('li', {}, s('svg', { width: 16, height: 10, 'aria-hidden': 'true' }, s('rect', { x: 6, y: 0, width: 3, height: 10, class: 'tide-mark' })), 'tidemark'))
}

/** How much of a quota is used.
 * @param {number} used @param {number} max */
export function bar(used, max) {
  const share = max > 0 ? Math.min(1, used / max) : 0
  return s('svg', { class: 'bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img',
    'aria-label': `${number(used)} of ${number(max)} units used in the last minute` },
    s('rect', { x: 0, y: 0, width: 100, height: 8, class: 'bar-ground' }),
    s('rect', { x: 0, y: 0, width: 100 * share, height: 8, class: share > 0.95 ? 'bar-full' : 'bar-used' }))
}

/** A line over time; `top` is where its scale ends.
 * @param {number[]} values @param {number} top @param {string} words @param {number} [wide] @param {number} [high] */
export function sparkline(values, top, words, wide = 120, high = 24) {
  const step = wide / Math.max(1, values.length - 1)
  const y = (/** @type {number} */ value) => (high - 1 - (top > 0 ? Math.min(1, value / top) : 0) * (high - 2)).toFixed(1)
  const points = values.map((value, i) => `${(i * step).toFixed(1)},${y(value)}`)
  return s('svg', { class: 'spark', viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': words },
    s('path', { d: `M0,${high - 0.5}H${wide}`, class: 'spark-base' }),
    points.length > 1 ? s('polygon', { points: `0,${high} ${points.join(' ')} ${wide},${high}`, class: 'spark-area' }) : null,
    points.length > 1 ? s('polyline', { points: points.join(' '), class: 'spark-line' }) : null)
}

const DAYS = { '=': ['final', 'final'], '-': ['open', 'stored, not final'], 'x': ['short', 'lacks rows'], '.': ['none', 'not stored'] }

const WEEKS_SHOWN = 80

/** A square for each day, weeks as columns; the newest weeks, if there are many.
 * @param {string} first @param {string} cells @param {string} name */
export function calendar(first, cells, name) {
  const side = 11
  const skipped = Math.max(0, cells.length - 7 * WEEKS_SHOWN)
  const begin = new Date(Date.parse(first + 'T00:00:00Z') + skipped * 86400000)
  const shown = cells.slice(skipped)
  const offset = (begin.getUTCDay() + 6) % 7
  const weeks = Math.ceil((shown.length + offset) / 7)
  const tally = Object.entries(DAYS).map(([state, [, words]]) => `${[...cells].filter((cell) => cell === state).length} ${words}`).join(', ')
  return h('div', { class: 'calendar' },
    s('svg', { viewBox: `0 0 ${weeks * side} ${7 * side}`, width: weeks * side, height: 7 * side, role: 'img', 'aria-label': `${name} from ${first}: ${tally}` },
      ...[...shown].map((cell, i) => {
        const day = new Date(begin.getTime() + i * 86400000).toISOString().slice(0, 10)
        const [state, words] = /** @type {Record<string, string[]>} */ (DAYS)[cell] ?? DAYS['.']
        return s('rect', { x: Math.floor((i + offset) / 7) * side, y: ((i + offset) % 7) * side, width: side - 2, height: side - 2, rx: 2, class: 'day-' + state },
          s('title', {}, `${day}: ${words}`))
      })),
    h('p', { class: 'muted' }, tally + (skipped ? `; shown from ${begin.toISOString().slice(0, 10)} on` : '')))
}
