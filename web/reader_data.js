// reader_data.js - what the reader knows of each account: its folders, what runs for it, and what has
// changed since.  The stream carries a version; what it stands for is asked for when it changes.
import { offlineSince } from './accounts.js'
import { Trouble, get, path } from './api.js'
import { drop, live, subscribe } from './live.js'

/** @typedef {{ account: string, id: string, thread: string, internal_unix_ms: number, from: string, to: string, subject: string, snippet: string,
 *   labels: string[], unread: boolean, starred: boolean, pinned?: boolean, files: number | boolean, bytes: number, body: 'archive' | 'cache' | 'none', pending: boolean }} Row */
/** @typedef {{ id: string, name: string, type: string, total: number, unread: number, known_unix_ms: number }} Folder */
/** What runs for an account now, and what waits.
 * @typedef {{ account: string, state: string, doing?: { kind: string, what: string } | null, waiting?: Record<string, number>,
 *   actions?: { waiting: number, refused: number }, offline_since?: number | null, next_poll_unix_ms?: number | null,
 *   initial?: { done: number, total: number | null, unit?: string } | null, version: string | number }} Status */
/** `archive`: something was stored or moved there, nobody says what: lists and counts may have more.
 * @typedef {{ version: string | number, reset: boolean, archive?: boolean, items: Row[], gone: string[] }} News */

const ARCHIVE_MS = 2000
const ARCHIVE_SHARE = 50 // of the time, what a mirror that stores all the time may cost who looks on

/** One account of the reader. */
export class Box {
  /** @param {string} account */
  constructor(account) {
    this.account = account
    /** @type {Folder[]} */
    this.folders = []
    this.version = ''
    /** @type {Status | null} */
    this.status = null
    this.busy = false
    this.again = false
    /** Until then the archive alone is no reason to ask, and whether it is asked then. */
    this.restsUntil = 0
    this.rests = false
    /** Messages that something is done to, and when that ended: an answer that was asked for before does not know of it.
     * @type {Map<string, { ended_ms: number }>} */
    this.acting = new Map()
    /** @type {Trouble | null} */
    this.trouble = null
  }

  /** @param {string} id */
  folder(id) {
    return this.folders.find((one) => one.id === id)
  }
}

/** @type {Map<string, Box>} */
const boxes = new Map()

/** @type {Set<(box: Box, news: News | null) => void>} */
const followers = new Set()

/** `news` is null where only counts or the work have changed.
 * @param {(box: Box, news: News | null) => void} follower */
export const followNews = (follower) => followers.add(follower)

/** @param {Box} box @param {News | null} news */
const spread = (box, news) => { for (const follower of followers) follower(box, news) }

const mirrored = () => (live.state?.accounts ?? []).filter((one) => one.system === 'mail' || one.system === 'reader')

/** The accounts that have mail. */
export function accounts() {
  const read = [...boxes.values()].filter((box) => box.status).map((box) => box.account)
  return [...new Set([...mirrored().map((one) => one.account), ...read])].sort()
}

/** @param {string} account */
export function boxOf(account) {
  let box = boxes.get(account)
  if (!box) boxes.set(account, box = new Box(account))
  return box
}

/** @param {string} who an account, or "all" @returns {Box[]} */
export const boxesOf = (who) => (who === 'all' ? accounts() : [who]).map(boxOf)

/** Every mailbox has them, also one whose list of labels is not here yet; all mail has no label at all. */
const ALWAYS = ['INBOX', 'ALL'].map((id) => ({ id, name: id, type: 'system', total: 0, unread: 0, known_unix_ms: 0 }))

/** @param {Box} box */
export async function loadFolders(box) {
  try {
    const answer = await get(`mail/${path(box.account)}/lists`)
    box.folders = [...answer.lists, ...ALWAYS.filter(({ id }) => !answer.lists.some((/** @type {Folder} */ one) => one.id === id))]
    if (box.version === '') box.version = String(answer.version)
    box.trouble = null
  } catch (error) {
    box.trouble = error instanceof Trouble ? error : new Trouble(-1, { detail: String(error) })
  }
  spread(box, null)
}

/** Asks for what has changed; one question of an account at a time.
 * @param {Box} box */
export async function catchUp(box) {
  if (box.busy) {
    box.again = true
    return
  }
  box.busy = true
  try {
    do {
      box.again = false
      if (box.version === '') await loadFolders(box)
      const asked_ms = performance.now()
      /** @type {News} */
      const news = await get(`mail/${path(box.account)}/changes`, { since: box.version })
      const sure = news.items.filter((row) => (box.acting.get(row.id)?.ended_ms ?? 0) <= asked_ms)
      if (sure.length === news.items.length) box.version = String(news.version) // else they are asked for again when that ends
      news.items = sure
      for (const row of news.items) row.account = box.account
      if (news.reset || news.archive || news.items.length > 0 || news.gone.length > 0) {
        spread(box, news)
        await loadFolders(box)
      }
      if (news.archive) box.restsUntil = Date.now() + Math.max(ARCHIVE_MS, (performance.now() - asked_ms) * ARCHIVE_SHARE)
    } while (box.again)
  } catch {
    // The stream tells of it again; a server that is away is said by the banner.
  } finally {
    box.busy = false
  }
}

/** What changes name the messages of, and the archive.
 * @param {string} version "17.4.9" */
const partsOf = (version) => version.split(/\.(?=[^.]*$)/)

/** The archive changes all the time while a mirror stores: it is asked for when it has rested.
 * @param {Box} box */
function rest(box) {
  if (box.rests) return
  box.rests = true
  setTimeout(() => {
    box.rests = false
    void catchUp(box)
  }, box.restsUntil - Date.now())
}

/** @param {{ accounts: Status[] }} data */
function take(data) {
  for (const status of data.accounts) {
    const box = boxOf(status.account)
    const fresh = box.status === null
    box.status = status
    const version = String(status.version)
    if (box.version !== '' && version !== box.version) {
      if (partsOf(version)[0] === partsOf(box.version)[0] && Date.now() < box.restsUntil) rest(box)
      else void catchUp(box)
    } else if (fresh && box.folders.length === 0) void loadFolders(box)
    spread(box, null)
  }
}

/** While it follows, the reader is in front of somebody: new mail is looked for every few seconds. */
export const begin = () => subscribe('reader', take)
export const end = () => drop('reader')

/** Since when there is no network, and how many actions wait for it; null: there is one.
 * @param {Box[]} of */
export function offline(of) {
  const told = of.map((box) => box.status?.offline_since ?? 0).filter((at) => at > 0)
  const since = told.length > 0 ? Math.min(...told) : offlineSince(mirrored().filter((one) => of.some((box) => box.account === one.account)))
  return since === null ? null : { since, waiting: of.reduce((sum, box) => sum + (box.status?.actions?.waiting ?? 0), 0) }
}

/** Whether a message with these labels is in a folder.
 * @param {string[]} labels @param {string} folder */
export const belongs = (labels, folder) =>
  (folder === 'ALL' ? !labels.includes('SPAM') && !labels.includes('TRASH') : labels.includes(folder))
