// view_bad.js - items that fail while others succeed: retried, or accepted so that their cycle can end.
import { change } from './act.js'
import { get } from './api.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { live } from './live.js'
import { Loader, button, empty, marksOf, page, select } from './page.js'
import { confirmed } from './say.js'
import { ago, count, number } from './words.js'

/** @typedef {import('./dom.js').Child} Child */

const STATES = /** @type {[string, string][]} */ ([['', 'any'], ['bad', 'bad'], ['owed', 'owed'], ['retrying', 'retrying'], ['accepted', 'accepted'], ['gone', 'gone']])
const MEANING = /** @type {Record<string, string>} */ ({
  bad: 'Failed the same way every time while others succeeded.', owed: 'Tried again with growing pauses; it blocks nothing.',
  retrying: 'It is being retried.', accepted: 'Its cycle does not wait for it.', gone: 'No longer at the provider.',
})

/** @param {URLSearchParams} params */
export function badView(params) {
  const filter = { state: params.get('state') ?? '', account: params.get('account') ?? '' }
  const marks = marksOf('bad?' + new URLSearchParams(filter))
  const list = new Loader(() => get('bad', filter))
  const used = () => Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
  const items = () => /** @type {any[]} */ (list.data?.items ?? [])
  const total = () => list.data?.total ?? items().length

  /** @param {Partial<typeof filter>} part */
  const narrow = (part) => {
    const query = new URLSearchParams(Object.entries({ ...filter, ...part }).filter(([, value]) => value !== ''))
    page.turn('/bad' + (query.toString() ? '?' + query : ''))
  }
  /** @param {'retry' | 'accept'} verb */
  const run = async (verb) => {
    const chosen = items().filter((item) => marks.chosen().includes(keyOf(item))).map((item) => item.item)
    if (marks.all) {
      if (verb === 'accept' && !(await confirmed(`Accept all ${count(total(), 'item')}? Their cycles end without them.`, `Accept ${number(total())}`))) return
      await change('bad', verb, { filter: used(), expect: total() })
    } else if (chosen.length > 0) {
      await change('bad', verb, { ids: chosen })
    }
    marks.none()
    await list.load()
  }
  const keyOf = (/** @type {any} */ item) => `${item.account}/${item.kind}/${item.item}`
  /** @param {'retry' | 'accept'} verb @param {string} key */
  const action = (verb, key) => {
    const many = marks.all ? total() : marks.chosen().length
    return button(`${verb === 'retry' ? 'Retry' : 'Accept'} ${many ? number(many) : ''}`.trim(), () => void run(verb), { key, disabled: many === 0, class: verb === 'retry' ? '' : 'quiet' })
  }
  return {
    title: 'Bad items', marks, up: '/', live: true, load: () => list.load(),
    keys: () => ({
      r: { words: 'retry', run: () => void run('retry') }, A: { words: 'accept', run: () => void run('accept') },
      x: { words: 'select', run: () => marks.select() }, '* a': { words: 'select all that match', run: () => marks.selectAll() },
    }),
    /** @returns {Child[]} */
    draw() {
      const accounts = (live.state?.accounts ?? []).map((account) => account.account)
      return [
        h('div', { class: 'filters' }, select('State', filter.state, STATES, (state) => narrow({ state })),
          select('Account', filter.account, [['', 'any'], ...new Set([...accounts, ...(filter.account ? [filter.account] : [])])], (account) => narrow({ account })),
          h('span', { class: 'grow' }), action('retry', 'r'), action('accept', 'A')),
        ...list.shown(() => items().length === 0 ? [empty('No bad item.')] : [
          h('p', { class: 'muted count' }, `${number(items().length)} of ${number(total())}`,
            total() > 1 ? button(marks.all ? 'Select none' : `Select all ${number(total())} that match`, () => marks.selectAll(), { key: '*a', class: 'plain' }) : null),
          grid({ label: 'Bad items', marks, total: total(), selects: true, class: 'bad-items',
            columns: ['Item', 'State', 'Account', 'Kind', 'Retries', 'Tried', 'Reason'].map((name) => ({ name, class: 'c-' + name.toLowerCase() })),
            rows: items().map((item) => ({
              key: keyOf(item), label: `item ${item.item}, ${item.state}`, open: () => marks.select(keyOf(item)),
              cells: [[h('code', {}, item.item)], [h('span', { class: 'state ' + (item.state === 'bad' ? 'bad' : item.state === 'retrying' ? 'busy' : 'warn'), title: MEANING[item.state] }, item.state)],
                [item.account], [item.kind], [String(item.retries)], [ago(item.last_tried_unix_ms)], [item.reason]],
            })) }),
        ]),
      ]
    },
  }
}
