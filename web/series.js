// series.js - how work went over the last hour or day, as the process remembers it: one answer for all
// accounts, asked for again when its newest step has ended.
import { Trouble, get } from './api.js'
import { live } from './live.js'
import { page } from './page.js'

/** @typedef {{ step_ms: number, end_unix_ms: number, series: { account: string, window_max_units: number, values: number[] }[] }} Answer */

/** @type {Map<string, { data?: Answer, asked: number }>} */
const known = new Map()

/** The values of an account; null: not known yet.
 * @param {'rate' | 'quota'} name @param {'hour' | 'day'} span @param {string} account */
export function series(name, span, account) {
  const key = name + ' ' + span
  const one = known.get(key) ?? { asked: 0 }
  known.set(key, one)
  const step = one.data?.step_ms ?? 10000
  if (live.phase === 'live' && Date.now() - one.asked > Math.min(step, 10000)) {
    one.asked = Date.now()
    void get('series/' + name, { span }).then((data) => {
      one.data = data
      page.redraw()
    }).catch((error) => { if (!(error instanceof Trouble)) throw error })
  }
  const found = one.data?.series.find((row) => row.account === account)
  return one.data && found ? { values: found.values, step_ms: step, end: one.data.end_unix_ms, max: found.window_max_units } : null
}

/** Neighbours together, so that at most `points` are left.
 * @param {number[]} values @param {number} points */
export function coarser(values, points) {
  const many = Math.ceil(values.length / points)
  const sums = []
  for (let at = 0; at < values.length; at += many) sums.push(values.slice(at, at + many).reduce((sum, value) => sum + value, 0))
  return { sums, many }
}
