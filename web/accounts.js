// accounts.js - an account in one row, and what is said about it.
import { resume } from './act.js'
import { bar, sparkline, tide } from './charts.js'
import { h } from './dom.js'
import { line, live, named, speed, timeLeft } from './live.js'
import { button, link, page } from './page.js'
import { coarser, series } from './series.js'
import { clock, count, date, duration, number, rate, sentence, title } from './words.js'

/** @typedef {import('./live.js').Account} Account */
/** @typedef {import('./dom.js').Child} Child */
/** @typedef {'bad' | 'warn' | 'busy' | 'ok'} Level */

/** @param {Account} account */
const provider = (account) => title(live.state?.systems.find((one) => one.name === account.system)?.provider ?? account.system)

/** How an account is, and what is to be said about it; nothing: all is well.
 * @param {Account} account @returns {{ level: Level, word: string, words: Child[] }} */
export function standing(account) {
  const system = live.state?.systems.find((one) => one.name === account.system)
  const until = account.next_try_unix_ms
  switch (account.now) {
    case 'broken':
      return { level: 'bad', word: 'broken', words: [sentence(account.why)] }
    case 'halted':
      return { level: 'bad', word: 'halted', words: [`Halted at ${account.halted_unix_ms ? clock(account.halted_unix_ms) : '?'}: ${(account.halt_reason || 'no reason given').replace(/\.$/, '')}. `,
        button('resume', () => void resume(account.account), { label: 'Resume ' + account.account })] }
    case 'signed_out':
      return { level: 'bad', word: 'signed out', words: [`${account.account.split('@')[0]} must sign in again: `,
        h('code', {}, `tidemark account add ${system?.provider ?? ''} ${account.account}`)] }
    case 'paused':
      return { level: 'warn', word: 'paused', words: ['Paused by command. Resume: ', h('code', {}, `tidemark jobs resume --account ${account.account}`)] }
    case 'waiting':
      if (!until) return { level: 'busy', word: 'waiting', words: [] }
      return { level: 'warn', word: 'waiting', words: /quota|rate|429|many requests|wait/i.test(account.last_failure ?? '')
        ? [`${provider(account)} asked to wait until ${clock(until)}. Nothing is lost.`]
        : [`Waits until ${clock(until)}: ${sentence(account.last_failure ?? '')} It tries again by itself.`] }
    case 'failed':
      return { level: 'bad', word: 'failed', words: [] }
    case 'stopped':
      return { level: 'warn', word: 'stopped', words: [] }
    case 'running':
      return { level: account.jobs_failed > 0 ? 'bad' : 'busy', word: 'running', words: [] }
    default:
      return { level: account.jobs_failed > 0 ? 'bad' : account.bad > 0 || account.note ? 'warn' : 'ok', word: !account.tidemark ? 'not synced yet' : account.bad > 0 ? 'bad items' : 'up to date', words: [] }
  }
}

const order = { bad: 0, warn: 1, busy: 2, ok: 3 }

/** Worst first.
 * @param {Account[]} accounts */
export const worstFirst = (accounts) =>
  [...accounts].sort((a, b) => order[standing(a).level] - order[standing(b).level] || b.bad - a.bad || named(a).localeCompare(named(b)))

/** @param {Account} account */
export const home = (account) => `/${account.system}/${encodeURIComponent(account.account)}`

/** @param {Account} account */
export const tidemark = (account) => (account.tidemark_unix_ms ? date(account.tidemark_unix_ms) : account.tidemark ?? 'none yet')

/** Where a ruler has its line.  A tidemark that is a day is complete up to the end of that day.
 * @param {Account} account */
export const markAt = (account) => account.tidemark_unix_ms ?? (account.tidemark ? Date.parse(account.tidemark) + 86400000 : 0)

/** "37 to go, 5.0/s, done in 8 s"
 * @param {Account} account @returns {Child[]} */
function progress(account) {
  if (account.now === 'broken') return []
  const parts = [account.words ? h('span', {}, account.words) : h('span', {}, h('b', {}, number(account.stored)), ' ' + account.unit)]
  const per_s = speed(named(account)) ?? (account.rate_per_minute ? account.rate_per_minute / 60 : null)
  const left = timeLeft(account)
  if (account.left > 0 || !account.left_is_known) parts.push(h('span', {}, number(account.left) + (account.left_is_known ? '' : ' or more') + ' to go'))
  if (account.now === 'running' && per_s !== null && per_s > 0) parts.push(h('span', {}, rate(per_s) + '/s'))
  if (left !== null) parts.push(h('span', {}, 'done in ' + duration(left)))
  if (account.gaps > 0) parts.push(h('span', {}, count(account.gaps, 'gap')))
  if (account.bad > 0) parts.push(link(`/bad?account=${encodeURIComponent(account.account)}`, `${number(account.bad)} bad`, 'warn'))
  if (account.jobs_failed > 0) parts.push(link(`/jobs?state=failed&account=${encodeURIComponent(account.account)}`, `${number(account.jobs_failed)} failed`, 'bad'))
  return parts
}

/** How the quota was used in the last hour; until that is known, since the page was opened.
 * @param {Account} account */
function quotaLine(account) {
  const max = account.quota_max_units ?? 0
  const hour = series('quota', 'hour', account.account)
  if (!hour) return sparkline(line(named(account), (now) => now.used, 60, 300000), max, `Units used in each minute, of ${number(max)}`)
  const { sums, many } = coarser(hour.values, 60)
  return sparkline(sums, (max * hour.step_ms * many) / 60000, `Units used over the last hour; the top is the quota of ${number(max)} a minute`)
}

/** @param {Account} account @returns {Child[]} */
function pace(account) {
  const max = account.quota_max_units ?? 0
  if (max === 0) return []
  const used = account.quota_used_units ?? 0
  return [quotaLine(account), h('span', { class: 'quota' }, `quota ${Math.round((100 * used) / max)} %`), bar(used, max)]
}

/** @param {Account} account @returns {import('./grid.js').Row} */
export function accountRow(account) {
  const { level, word, words } = standing(account)
  const doing = account.now === 'running' || account.now === 'waiting' ? sentence(account.why) : ''
  return {
    key: named(account), open: () => page.go(home(account)), class: 'account ' + level,
    label: `${title(account.system)} ${account.account}, ${word}`,
    cells: [[
      h('div', { class: 'account-name' },
        h('span', { class: 'state ' + level }, word),
        h('span', { class: 'system' }, account.system),
        link(home(account), account.account, 'name')),
      h('div', { class: 'account-tide' }, tide(account.ruler, markAt(account)),
        h('span', { class: 'mark' }, 'tidemark ' + tidemark(account))),
      h('div', { class: 'account-facts' }, ...progress(account)),
      h('div', { class: 'account-pace' }, ...pace(account)),
      words.length > 0 || doing || account.note ? h('div', { class: 'account-words' }, ...words, words.length === 0 ? doing : '', account.note ? ` ${sentence(account.note)}` : '') : null,
    ]],
  }
}

/** Of the day: since when nobody at all answers.
 * @param {Account[]} accounts */
export function offlineSince(accounts) {
  const tried = accounts.filter((account) => account.last_failed_unix_ms > 0 || account.last_ok_unix_ms > 0)
  const off = tried.filter((account) => account.now === 'waiting' && account.next_try_unix_ms && account.last_failed_unix_ms > account.last_ok_unix_ms &&
    /resolve|connect|network|unreachable|timed out|reach/i.test(account.last_failure ?? ''))
  if (off.length === 0 || off.length < tried.length) return null
  // The first that failed, but not while another one still answered.
  return Math.max(Math.min(...off.map((account) => account.failing_since_unix_ms || account.last_failed_unix_ms)), ...off.map((account) => account.last_ok_unix_ms))
}

