// view_system.js - the accounts of one system, and one account in full.  Which systems there are, the
// state says; a system that has more to show than the others brings a panel below.
import { accountRow, markAt, standing, tidemark, worstFirst } from './accounts.js'
import { halt, resume, sync } from './act.js'
import { get } from './api.js'
import { bar, calendar, legend, sparkline, tide } from './charts.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { live } from './live.js'
import { Loader, button, card, empty, facts, link, marksOf, page, select } from './page.js'
import { confirmed } from './say.js'
import { coarser, series } from './series.js'
import { drivePanels } from './view_drive.js'
import { ago, count, date, number, rate, sentence, size, time, title } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./live.js').Account} Account */

/** @param {string} system */
const accountsOf = (system) => (live.state?.accounts ?? []).filter((account) => account.system === system)

/** @param {string} system */
export function systemView(system) {
  const marks = marksOf(system)
  return {
    title: title(system), marks, up: '/',
    /** @returns {Child[]} */
    draw() {
      const provider = live.state?.systems.find((one) => one.name === system)?.provider
      const accounts = accountsOf(system)
      return [
        system === 'mail' && accounts.length > 0 ? searchBox() : null,
        accounts.length === 0
          ? h('section', { class: 'card first' }, h('p', {}, 'No account yet. Run: ', h('code', {}, `tidemark account add ${provider} ${system === 'console' ? 'SITE' : 'you@example.com'}`)))
          : grid({ label: `Accounts of ${system}`, columns: [{ name: 'Account', hidden: true }], rows: worstFirst(accounts).map(accountRow), marks, class: 'accounts' }),
      ]
    },
  }
}

/** @param {string} [value] @param {string} [account] */
export function searchBox(value = '', account = '') {
  return h('form', { class: 'search', role: 'search', on: { submit: (event) => {
    event.preventDefault()
    const text = String(new FormData(event.target).get('q') ?? '').trim()
    if (text) page.go(`/search?q=${encodeURIComponent(text)}${account ? '&account=' + encodeURIComponent(account) : ''}`)
  } } },
  h('label', { class: 'unseen', for: 'q' }, 'Search mail'),
  h('input', { id: 'q', name: 'q', type: 'search', value, placeholder: 'Search mail: from:ben has:attachment after:2024/01/01', autocomplete: 'off', spellcheck: 'false' }),
  h('button', { type: 'submit' }, 'Search'))
}

/** @param {Account} account */
function paceCard(account) {
  const max = account.quota_max_units ?? 0
  const used = account.quota_used_units ?? 0
  const pace = account.pace
  if (!pace) return card('Pace', [empty('No engine runs.')])
  const refused = Object.entries(pace.calls_by_class).filter(([name]) => name !== 'ok')
  const codes = Object.entries(pace.errors_by_code ?? {}).map(([code, value]) => `${number(value)} × ${code === 'none' ? 'no answer' : code}`)
  return card('Pace', [
    h('div', { class: 'pace-bar' }, bar(used, max), h('span', {}, `${number(used)} of ${number(max)} units in the last minute`)),
    facts([
      ['In flight', `${pace.in_flight} of ${pace.in_flight_max} calls`],
      ['Workers', `up to ${pace.workers}`],
      ['Rate', `${rate(pace.rate_units_per_s)} of ${rate(pace.rate_max_units_per_s)} units/s`],
      ['Calls', `${number(pace.calls)}${refused.length ? ', of them ' + refused.map(([name, value]) => `${number(value)} ${name}`).join(', ') : ', none refused'}`],
      ...(codes.length ? /** @type {[string, string][]} */ ([['Errors by HTTP code', codes.join(', ')]]) : []),
      ['Retried, split', `${number(pace.retried)}, ${number(pace.split)}`],
      ['Last answer', ago(account.last_ok_unix_ms) + (account.last_failed_unix_ms > account.last_ok_unix_ms ? `; failed ${ago(account.last_failed_unix_ms)}: ${account.last_failure}` : '')],
    ]),
  ])
}

/** How long calls take, by method.
 * @param {any[]} methods */
function callsCard(methods) {
  return card('Calls', [methods.length === 0 ? empty('No call yet.') : h('table', { class: 'calls' },
    h('thead', {}, h('tr', {}, ...['Method', 'Calls', 'p50', 'p95', 'p99'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...methods.map((one) => h('tr', { key: one.method }, h('td', {}, one.method), h('td', {}, number(one.calls)),
      ...[one.p50_ms, one.p95_ms, one.p99_ms].map((ms) => h('td', {}, `${number(ms)} ms`))))))])
}

/** Which span the charts show; the same for all accounts.
 * @type {'hour' | 'day'} */
let span = 'hour'
const ROWS = 12

/** A chart, and behind it its numbers.
 * @param {Account} account */
function timeCard(account) {
  const stored = series('rate', span, account.account)
  const units = series('quota', span, account.account)
  const choose = select('Last', span, ['hour', 'day'], (value) => { span = value === 'day' ? 'day' : 'hour'; page.redraw() })
  if (!stored || !units) return card('Over time', [empty('Not known yet.')], [choose])
  const chart = (/** @type {typeof stored} */ one, /** @type {number} */ top, /** @type {string} */ words) => {
    const { sums } = coarser(one.values, 120)
    return h('div', { class: 'pace-chart' }, h('span', { class: 'muted' }, words), sparkline(sums, Math.max(top, ...sums), `${words}, over the last ${span}`, 480, 48))
  }
  const many = coarser(units.values, 120).many
  const rows = coarser(stored.values, ROWS)
  const spent = coarser(units.values, ROWS)
  const step = stored.step_ms * rows.many
  return card('Over time', [
    chart(stored, 1, account.unit), chart(units, (units.max * units.step_ms * many) / 60000, 'quota units'),
    h('details', {}, h('summary', {}, 'Numbers'), h('table', {},
      h('thead', {}, h('tr', {}, ...['From', account.unit, 'quota units'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, ...rows.sums.map((value, i) => h('tr', {}, h('td', {}, time(stored.end - (rows.sums.length - i) * step)), h('td', {}, number(value)), h('td', {}, number(spent.sums[i] ?? 0))))))),
  ], [choose])
}

/** @param {any[]} jobs @param {Account} account */
function nowCard(jobs, account) {
  const more = account.jobs_running + account.jobs_waiting
  return card('Now', [
    jobs.length === 0 ? empty(more > 0 ? sentence(account.why) : 'Nothing runs.') : h('table', {},
      h('thead', {}, h('tr', {}, ...['Job', 'Kind', 'Lane', 'Since', 'Tried'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, ...jobs.map((job) => h('tr', { key: String(job.id) }, h('td', {}, link(`/jobs/${job.id}`, String(job.id))), h('td', {}, job.kind), h('td', {}, job.lane),
        h('td', {}, ago(job.started_unix_ms)), h('td', {}, `${job.attempts} of ${job.attempts_max}`))))),
  ], [link(`/jobs?account=${encodeURIComponent(account.account)}`, `all jobs`), more > 0 ? h('span', { class: 'muted' }, sentence(account.why)) : null])
}

/** Neighbours in the same state are one.
 * @param {any[]} gaps */
function joined(gaps) {
  /** @type {any[]} */
  const list = []
  for (const gap of gaps) {
    const last = list[list.length - 1]
    if (last && last.to_unix_ms === gap.from_unix_ms && last.state === gap.state) {
      for (const name of ['jobs_left', 'messages_left', 'failed_jobs', 'bad']) last[name] += gap[name]
      last.to_unix_ms = gap.to_unix_ms
    } else {
      list.push({ ...gap })
    }
  }
  return list
}

/** @param {any} status of `mail status` @param {Account} account @returns {Child[]} */
function mailPanels(status, account) {
  const one = status?.accounts?.find((/** @type {any} */ row) => row.account === account.account)
  if (!one) return []
  const gaps = joined(one.gaps)
  const copies = one.copies
  return [
    card('Gaps', [gaps.length === 0 ? empty('No gap.') : h('table', {},
      h('thead', {}, h('tr', {}, ...['From', 'To', 'What is left', ''].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, ...gaps.slice(0, 12).map((gap) => h('tr', { key: String(gap.from_unix_ms) },
        h('td', {}, gap.from_unix_ms ? date(gap.from_unix_ms) : 'the beginning'), h('td', {}, date(gap.to_unix_ms)),
        h('td', {}, `${gap.state}: ${count(gap.messages_left, 'message')} left` + (gap.failed_jobs ? `, ${number(gap.failed_jobs)} failed` : '') + (gap.bad ? `, ${gap.bad} bad` : '')),
        h('td', {}, link(`/jobs?account=${encodeURIComponent(account.account)}&state=${gap.failed_jobs ? 'failed' : 'pending'}`, 'why')))))),
    gaps.length > 12 ? h('p', { class: 'muted' }, `and ${number(gaps.length - 12)} more`) : null], [h('span', { class: 'muted' }, count(gaps.length, 'gap'))]),
    card('Archive', [facts([
      ['Stored', `${number(one.stored)} of ${number(one.messages_total)} messages at the server`],
      ['Size', `${size(one.raw_bytes)} of mail in ${size(one.archive_bytes)}, ${size(one.free_bytes)} free`],
      ['Copies', copies ? `${number(copies.exact)} exact, ${number(copies.held)} held, ${number(copies.short)} short, ${number(copies.damaged)} damaged, ${number(copies.only_here)} only here` : '-'],
      ['Gone from the server', number(one.gone)],
      ['Not indexed yet', number(one.not_indexed)],
      ['Last run', `${time(one.last_run_unix_ms)}, ${one.last_run}`],
      ['Tidemark moved', ago(one.last_moved_unix_ms)],
    ])]),
  ]
}

/** @param {any} status of `console status` @returns {Child[]} */
function consolePanels(status) {
  const series = status?.series ?? []
  if (series.length === 0) return [card('Days', [h('p', { class: 'empty' }, 'Nothing fetched yet. Run: ', h('code', {}, 'tidemark console backfill SITE'))])]
  return series.map((/** @type {any} */ one) => card(`${one.site}, ${one.type}`, [
    one.calendar ? calendar(one.first, one.calendar, `${one.site}, ${one.type}`) : null,
    facts([
      ['Final to', one.tidemark || 'none yet'], ['Stored', `${one.first} to ${one.last}, ${count(one.days, 'day')}`],
      ['Left', `${count(one.days_left, 'day')}, ${number(one.days_not_final)} not final`], ['Rows', number(one.rows)],
      ['Rows missing', `${number(one.rows_missing)} on ${count(one.days_incomplete, 'day')}`],
    ]),
  ]))
}

/** Panels that one system has beside those of all; the route `NAME/status` has their data.
 * @type {Record<string, (status: any, account: Account) => Child[]>} */
const panels = { mail: mailPanels, console: consolePanels, drive: drivePanels }

/** @param {any[]} items */
function badCard(items, /** @type {Account} */ account) {
  return card('Bad items', [items.length === 0 ? empty('No bad item.') : h('table', {},
    h('thead', {}, h('tr', {}, ...['Item', 'State', 'Reason'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...items.slice(0, 8).map((item) => h('tr', { key: item.item + item.kind }, h('td', {}, h('code', {}, item.item)), h('td', {}, item.state), h('td', {}, item.reason)))))],
  [link(`/bad?account=${encodeURIComponent(account.account)}`, 'retry or accept')])
}

/** @param {string} system @param {string} name */
export function accountView(system, name) {
  const find = () => accountsOf(system).find((account) => account.account === name)
  const about = new Loader(async () => {
    const [jobs, bad, accounts, status] = await Promise.all([
      get('jobs', { account: name, state: 'running', limit: 16 }), get('bad', { account: name }), get('accounts'),
      system in panels ? get(`${system}/status`) : null])
    const provider = live.state?.systems.find((one) => one.name === system)?.provider
    const row = accounts.accounts.find((/** @type {any} */ one) => one.account === name && one.provider === provider)
    return { jobs: jobs.items ?? [], bad: bad.items ?? [], methods: row?.methods ?? [], status }
  })
  return {
    title: `${title(system)} / ${name}`, up: accountsOf(system).length > 1 ? `/${system}` : '/', live: true,
    load: () => about.load(),
    keys: () => ({
      s: { words: 'sync', run: () => void sync(name) },
      h: { words: 'halt or resume', run: () => void toggle() },
    }),
    /** @returns {Child[]} */
    draw() {
      const account = find()
      if (!account) return live.state ? [empty(`There is no account ${name}.`)] : []
      const { level, word, words } = standing(account)
      return [
        h('div', { class: 'bar-line' }, h('span', { class: 'state ' + level }, word),
          button('Sync', () => void sync(name), { key: 's' }),
          account.now === 'halted' ? button('Resume', () => void resume(name), { key: 'h' }) : button('Halt', () => void toggle(), { key: 'h', class: 'quiet' })),
        words.length > 0 ? h('p', { class: 'words ' + level }, ...words) : null,
        system === 'mail' ? searchBox('', name) : null,
        card('Tide', [tide(account.ruler, markAt(account), true), legend(account.ruler)],
          [h('b', {}, 'tidemark ' + tidemark(account)), h('span', {}, account.words ?? `${number(account.stored)} ${account.unit}${account.exact === undefined ? '' : account.exact === account.stored ? ', all exact' : `, ${number(account.exact)} exact`}`),
            account.left > 0 ? h('span', {}, `${number(account.left)} to go`) : null]),
        h('div', { class: 'columns' },
          ...about.shown((data) => [nowCard(data.jobs, account), timeCard(account), paceCard(account), callsCard(data.methods), ...(panels[system]?.(data.status, account) ?? []), badCard(data.bad, account)])),
      ]
    },
  }

  async function toggle() {
    const account = find()
    if (!account) return
    if (account.now === 'halted') await resume(name)
    else if (await confirmed(`Halt ${name}? All its work stops within seconds; nothing in flight is lost.`, 'Halt it')) await halt(name)
  }
}

