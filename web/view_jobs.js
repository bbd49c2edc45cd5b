// view_jobs.js - jobs by state, kind and account; a selection or all that match can be retried,
// canceled, accepted; each job says why it is not done.
import { change, pauseKind } from './act.js'
import { get } from './api.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { live } from './live.js'
import { Loader, button, card, command, empty, facts, link, marksOf, page, select } from './page.js'
import { confirmed } from './say.js'
import { ago, clock, count, number, sentence, size, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */

const LIMIT = 100
const STATES = /** @type {[string, string][]} */ ([['', 'any'], ['pending', 'waiting'], ['running', 'running'], ['failed', 'failed'], ['canceled', 'canceled'], ['done', 'done']])
const ALLOWED = /** @type {Record<string, string[]>} */ ({ retry: ['failed', 'canceled', 'pending'], cancel: ['pending', 'running'], accept: ['failed'] })

/** @param {any} job */
export function stateOf(job) {
  if (job.state !== 'pending') return job.state
  return job.open_deps > 0 ? 'blocked' : job.not_before_unix_ms > Date.now() ? 'delayed' : 'waiting'
}

const level = /** @type {Record<string, string>} */ ({ failed: 'bad', blocked: 'warn', delayed: 'warn', running: 'busy', done: 'ok', canceled: 'warn', waiting: 'idle' })

/** @param {any} job */
function when(job) {
  if (job.state === 'running') return ago(job.started_unix_ms)
  if (job.finished_unix_ms) return ago(job.finished_unix_ms)
  return job.not_before_unix_ms > Date.now() ? 'not before ' + time(job.not_before_unix_ms) : ago(job.created_unix_ms)
}

/** @param {any} job @returns {import('./grid.js').Row} */
function jobRow(job) {
  const state = stateOf(job)
  return {
    key: String(job.id), open: () => page.go(`/jobs/${job.id}`), label: `job ${job.id}, ${job.kind}, ${state}`,
    cells: [[link(`/jobs/${job.id}`, String(job.id))], [h('span', { class: 'state ' + (level[state] ?? 'idle') }, state)], [job.kind], [job.account ?? '-'],
      [`${job.attempts} of ${job.attempts_max}`], [when(job)], [h('span', { class: job.state === 'failed' ? 'bad' : 'muted' }, job.error)]],
  }
}

/** @param {any[]} reasons */
const kindIsPaused = (reasons) => reasons.some((reason) => reason.why === 'kind_paused')

/** Pauses the kind of a waiting job, or resumes it.
 * @param {any} job */
async function togglePause(job) {
  const { reasons } = await get(`jobs/${encodeURIComponent(job.id)}/why`)
  if (kindIsPaused(reasons ?? [])) await pauseKind(job.kind, false)
  else if (await confirmed(`Pause ${job.kind}? None of its jobs starts until it is resumed, of any account.`, 'Pause it')) await pauseKind(job.kind, true)
}

/** @param {URLSearchParams} params */
export function jobsView(params) {
  const filter = { state: params.get('state') ?? '', kind: params.get('kind') ?? '', account: params.get('account') ?? '', cycle: params.get('cycle') ?? '' }
  const name = 'jobs?' + new URLSearchParams(filter)
  const marks = marksOf(name)
  let limit = LIMIT
  const list = new Loader(() => get('jobs', { ...filter, limit }))
  const used = () => Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))

  /** @param {Partial<typeof filter>} part */
  const narrow = (part) => {
    const query = new URLSearchParams(Object.entries({ ...filter, ...part }).filter(([, value]) => value !== ''))
    marks.none()
    page.turn('/jobs' + (query.toString() ? '?' + query : ''))
  }

  /** @param {'retry' | 'cancel' | 'accept'} verb */
  const run = async (verb) => {
    const total = list.data?.total ?? 0
    if (marks.all) {
      const words = `${verb} all ${count(total, 'job')} that match`
      if (verb !== 'retry' && !(await confirmed(`${sentence(words).slice(0, -1)}?`, `${sentence(verb).slice(0, -1)} ${number(total)}`))) return
      if (await change('jobs', verb, { filter: used(), expect: total })) marks.none()
    } else if (marks.chosen().length > 0) {
      if (await change('jobs', verb, { ids: marks.chosen() })) marks.none()
    }
    await list.load()
  }

  /** @param {'retry' | 'cancel' | 'accept'} verb @param {string} key */
  const action = (verb, key) => {
    const jobs = (list.data?.items ?? []).filter((/** @type {any} */ job) => marks.chosen().includes(String(job.id)) && ALLOWED[verb].includes(job.state))
    const many = marks.all ? list.data?.total ?? 0 : jobs.length
    return button(`${sentence(verb).slice(0, -1)} ${many ? number(many) : ''}`.trim(), () => void run(verb), { key, disabled: many === 0, class: verb === 'retry' ? '' : 'quiet' })
  }

  const waiting = () => (list.data?.items ?? []).find((/** @type {any} */ job) => job.state === 'pending' && String(job.id) === marks.at)
  const pause = async () => {
    const job = waiting()
    if (job) await togglePause(job)
    await list.load()
  }

  return {
    title: 'Jobs', marks, up: '/', live: true, load: () => list.load(),
    keys: () => ({
      p: { words: 'pause or resume its kind', run: () => void pause() },
      r: { words: 'retry', run: () => void run('retry') }, c: { words: 'cancel', run: () => void run('cancel') }, A: { words: 'accept', run: () => void run('accept') },
      x: { words: 'select', run: () => marks.select() }, '* a': { words: 'select all that match', run: () => marks.selectAll() },
      w: { words: 'why is this not done', run: () => marks.open() },
    }),
    /** @returns {Child[]} */
    draw() {
      const kinds = [...new Set((list.data?.items ?? []).map((/** @type {any} */ job) => job.kind))].sort()
      const accounts = (live.state?.accounts ?? []).map((account) => account.account)
      return [
        h('div', { class: 'filters' },
          select('State', filter.state, STATES, (state) => narrow({ state })),
          select('Kind', filter.kind, [['', 'any'], ...new Set([...kinds, ...(filter.kind ? [filter.kind] : [])])], (kind) => narrow({ kind })),
          select('Account', filter.account, [['', 'any'], ...new Set([...accounts, ...(filter.account ? [filter.account] : [])])], (account) => narrow({ account })),
          filter.cycle ? button(`cycle ${filter.cycle} ×`, () => narrow({ cycle: '' }), { class: 'quiet' }) : null,
          h('span', { class: 'grow' }),
          action('retry', 'r'), action('cancel', 'c'), action('accept', 'A'), button('Pause kind', () => void pause(), { key: 'p', disabled: !waiting(), class: 'quiet' })),
        ...list.shown((data) => data.items.length === 0 ? [empty()] : [
          h('p', { class: 'muted count' }, `${number(data.items.length)} of ${number(data.total)}`,
            data.total > 1 ? button(marks.all ? 'Select none' : `Select all ${number(data.total)} that match`, () => marks.selectAll(), { key: '*a', class: 'plain' }) : null,
            marks.selected.size > 0 ? h('span', {}, `${number(marks.selected.size)} selected`) : null),
          grid({ label: 'Jobs', marks, total: data.total, selects: true, class: 'jobs', rows: data.items.map(jobRow),
            columns: ['Job', 'State', 'Kind', 'Account', 'Tried', 'When', 'Error'].map((one) => ({ name: one, class: 'c-' + one.toLowerCase() })) }),
          data.next ? button('Show more', () => { limit = Math.min(1000, limit + 200); void list.load() }, { class: 'plain more' }) : null,
        ]),
      ]
    },
  }
}

/** Reasons that end only when a person acts. */
const WAITS_FOR_YOU = new Set(['failed', 'canceled', 'blocked_by_failed', 'account_halted', 'account_paused', 'kind_paused', 'no_handler', 'no_engine', 'no_member', 'not_held', 'signed_out'])

/** The command that a sentence names, and the sentence.
 * @param {any} job @param {any[]} reasons @returns {Child[]} */
function ending(job, reasons) {
  if (job.state === 'done') return [h('p', { class: 'ok' }, 'It is done.')]
  if (reasons.some((reason) => WAITS_FOR_YOU.has(reason.why))) {
    return [h('p', { class: 'bad' }, h('b', {}, 'It waits for you.'), job.state === 'failed' ? ' Retry (r) or accept as bad (A): then the tidemark moves on.' : job.state === 'canceled' ? ' Retry (r).' : '')]
  }
  const until = Math.max(0, ...reasons.map((reason) => reason.until_unix_ms ?? 0))
  return [h('p', { class: 'ok' }, until > Date.now() ? `It goes on by itself at ${clock(until)}.` : 'It goes on by itself.')]
}

/** stream < cycle < job < account, each a step closer.
 * @param {any} job */
function chain(job) {
  const account = live.state?.accounts.find((one) => one.account === job.account)
  const steps = [
    account ? h('a', { href: `#/${account.system}/${encodeURIComponent(account.account)}` }, `tidemark ${account.tidemark_unix_ms ? time(account.tidemark_unix_ms) : account.tidemark ?? 'none yet'}`) : null,
    job.cycle ? link(`/jobs?cycle=${job.cycle}`, `cycle ${number(job.cycle)}`) : null,
    h('span', {}, `job ${job.id} ${stateOf(job)}`),
    account ? h('span', {}, `${account.account} ${account.now}`) : null,
  ].filter((step) => step !== null)
  return h('ol', { class: 'chain', 'aria-label': 'What waits for what' }, ...steps.map((step) => h('li', {}, step)))
}

/** @param {string} id */
export function jobView(id) {
  const about = new Loader(async () => {
    const [shown, why] = await Promise.all([get(`jobs/${encodeURIComponent(id)}`), get(`jobs/${encodeURIComponent(id)}/why`)])
    return { job: shown.job, reasons: why.reasons ?? [] }
  })
  /** @param {'retry' | 'cancel' | 'accept'} verb */
  const run = async (verb) => {
    await change('jobs', verb, { ids: [id] })
    await about.load()
  }
  const pause = async () => {
    if (about.data?.job.state !== 'pending') return
    await togglePause(about.data.job)
    await about.load()
  }
  const may = (/** @type {string} */ verb) => about.data !== undefined && ALLOWED[verb].includes(about.data.job.state)
  return {
    title: `Job ${id}`, up: '/jobs', live: true, load: () => about.load(),
    keys: () => ({
      p: { words: 'pause or resume its kind', run: () => void pause() },
      r: { words: 'retry', run: () => { if (may('retry')) void run('retry') } }, c: { words: 'cancel', run: () => { if (may('cancel')) void run('cancel') } },
      A: { words: 'accept', run: () => { if (may('accept')) void run('accept') } },
    }),
    draw: () => about.shown(({ job, reasons }) => [
      h('div', { class: 'bar-line' }, h('span', { class: 'state ' + (level[stateOf(job)] ?? 'idle') }, stateOf(job)), h('span', {}, job.kind), job.account ? h('span', { class: 'muted' }, job.account) : null,
        h('span', { class: 'grow' }),
        button('Retry', () => void run('retry'), { key: 'r', disabled: !may('retry') }),
        button('Cancel', () => void run('cancel'), { key: 'c', disabled: !may('cancel'), class: 'quiet' }),
        button('Accept', () => void run('accept'), { key: 'A', disabled: !may('accept'), class: 'quiet' }),
        button(kindIsPaused(reasons) ? 'Resume kind' : 'Pause kind', () => void pause(), { key: 'p', disabled: job.state !== 'pending', class: 'quiet' })),
      card(job.state === 'done' ? 'How it ended' : 'Why is this not done?', [
        chain(job),
        h('ul', { class: 'reasons' }, ...reasons.map((/** @type {any} */ reason, /** @type {number} */ i) => h('li', { key: reason.why + i }, ...command(sentence(reason.text)),
          reason.job ? link(`/jobs/${reason.job}`, ` why job ${reason.job}?`) : null))),
        ...ending(job, reasons)], [], 'why'),
      card('Details', [facts([
        ['Created', time(job.created_unix_ms)], ['Started', time(job.started_unix_ms)], ['Finished', time(job.finished_unix_ms)],
        ['Attempts', `${job.attempts} of ${job.attempts_max}`], ['Priority', `${job.priority}, lane ${job.lane}, level ${job.level}`],
        ['Waits for', count(job.open_deps, 'job')],
        ...(job.size_bytes ? [/** @type {[string, Child]} */ (['Bytes', `${size(job.bytes_done)} of ${size(job.size_bytes)}`])] : []),
        ...(job.run_by ? [/** @type {[string, Child]} */ (['Run by', job.run_by])] : []),
        ...(job.error ? [/** @type {[string, Child]} */ (['Error', h('span', { class: 'bad' }, job.error)])] : []),
        ['Key', h('code', {}, job.dedupe_key || '-')],
        ['Payload', h('code', { class: 'wrap' }, JSON.stringify(job.payload ?? null))],
      ])]),
    ]),
  }
}
