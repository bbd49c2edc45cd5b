// act.js - actions.  A selection is sent by its ids; "all that match" is sent as the filter with the
// count that was shown, and the server refuses if another count matches.
import { path, post } from './api.js'
import { refresh } from './live.js'
import { tell, tellTrouble } from './say.js'
import { count } from './words.js'

const IDS_MAX = 50

/** @param {string} what @param {() => Promise<string>} run */
async function attempt(what, run) {
  try {
    tell(await run())
  } catch (error) {
    tellTrouble(error, what)
    return false
  } finally {
    void refresh().catch(() => {})
  }
  return true
}

const past = /** @type {Record<string, string>} */ ({ retry: 'Retrying', cancel: 'Canceled', accept: 'Accepted' })

/** @param {'jobs' | 'bad'} list @param {'retry' | 'cancel' | 'accept'} verb
 * @param {{ ids?: string[], filter?: Record<string, string>, expect?: number }} choice */
export function change(list, verb, choice) {
  const noun = list === 'jobs' ? 'job' : 'item'
  return attempt(`${verb} ${noun}s`, async () => {
    let done = 0
    let running = 0
    const add = (/** @type {any} */ answer) => {
      done += answer.count
      running += Array.isArray(answer.running) ? answer.running.length : 0
    }
    if (choice.ids) {
      const ids = choice.ids.map((id) => (list === 'jobs' ? Number(id) : id))
      for (let at = 0; at < ids.length; at += IDS_MAX) add(await post(`${list}/${verb}`, { ids: ids.slice(at, at + IDS_MAX) }))
    } else {
      add(await post(`${list}/${verb}`, { filter: choice.filter, expect: choice.expect }))
    }
    return `${past[verb]} ${count(done, noun)}${running ? `; ${count(running, 'running one')} ${running === 1 ? 'is' : 'are'} being stopped` : ''}.`
  })
}

/** @param {string} account */
export const sync = (account) => attempt('sync ' + account, async () => {
  await post(`accounts/${path(account)}/sync`)
  return `Syncing ${account}.`
})
/** @param {string} account */
export const halt = (account) => attempt('halt ' + account, async () => {
  await post(`accounts/${path(account)}/halt`, { reason: 'halted on the page' })
  return `Halted ${account}. Nothing is lost.`
})
/** @param {string} account */
export const resume = (account) => attempt('resume ' + account, async () => {
  await post(`accounts/${path(account)}/resume`)
  return `${account} goes on.`
})
/** @param {string} drive */
export const syncDrive = (drive) => attempt('sync ' + drive, async () => {
  await post(`drive/${path(drive)}/sync`)
  return `Syncing ${drive}.`
})
/** @param {string} drive @param {string} mode */
export const setMode = (drive, mode) => attempt('mode of ' + drive, async () => {
  await post(`drive/${path(drive)}/mode`, { mode })
  return `${drive} is ${mode} from its next sync on.`
})
/** @param {string} drive @param {number} id @param {string} keep */
export const resolveConflict = (drive, id, keep) => attempt('resolve', async () => {
  await post(`drive/${path(drive)}/conflicts/${id}`, { keep })
  return keep === 'both' ? 'Both stay.' : keep === 'local' ? 'Your version takes the place; the other one is in the trash.' : 'The version from OneDrive stays; yours is in the trash.'
})
/** @param {string} drive @param {'accept' | 'restore'} what @param {string} listed @param {number} many */
export const decideDeletions = (drive, what, listed, many) => attempt(what === 'accept' ? 'delete' : 'bring back', async () => {
  await post(`drive/${path(drive)}/deletions/${what}`, { listed })
  return what === 'accept' ? `Deleting ${count(many, 'item')}.` : `Bringing ${count(many, 'item')} back.`
})
/** @param {string} drive @param {string} file */
export const acceptOwed = (drive, file) => attempt('accept ' + file, async () => {
  await post(`drive/${path(drive)}/accept`, { path: file })
  return `${file} is taken as OneDrive sends it.`
})
/** @param {string} kind @param {boolean} paused */
export const pauseKind = (kind, paused) => attempt(`${paused ? 'pause' : 'resume'} ${kind}`, async () => {
  await post(`kinds/${path(kind)}/${paused ? 'pause' : 'resume'}`)
  return paused ? `Paused ${kind}. None of its jobs starts until it is resumed.` : `${kind} goes on.`
})
/** @param {string} name */
export const runSchedule = (name) => attempt('run ' + name, async () => {
  await post(`schedules/${path(name)}/run`)
  return `Running ${name}.`
})
