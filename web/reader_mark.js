// reader_mark.js - the marked row where it is not here yet: the key that means it waits for it, and the message that an address opens
// is looked for in its list.
import { keyOf } from './reader_rows.js'
import { announce, tell } from './say.js'

/** @typedef {import('./reader_list.js').List} List */
/** @typedef {import('./reader_rows.js').Rows} Rows */
/** @typedef {import('./reader_data.js').Row} Row */

const WAIT_MS = 2000
const SEEK_TRIES = 3
const SEEK_ROWS = 2000 // of a day, or of what a search finds

/** The row that is marked now, once it has come.
 * @param {List} list @param {Rows} rows @returns {Promise<Row | undefined>} */
async function coming({ place, key, ms }, rows) {
  if (!key) return rows.come(place)
  const row = rows.at(await rows.locate({ key, ms }))
  return row && keyOf(row) === key ? row : undefined
}

/** Keys that wait are done in their order.
 * @type {Promise<unknown>} */
let line = Promise.resolve()

/** Does what a key means for the marked row: at once, or when that row has come, and then to that row wherever the mark is by then.
 * What was done meanwhile may have taken it out of the list: then nothing is done to any other.
 * @param {List} list @param {() => boolean} still whether it is the same list @param {() => void} run */
export function onRow(list, still, run) {
  const { rows } = list
  if (!rows || list.marked() || (rows.opened && rows.total === 0)) {
    run()
    return
  }
  if (list.place < 0) {
    announce('No message is marked.')
    return
  }
  const came = Promise.race([coming(list, rows).catch(() => undefined), new Promise((go) => setTimeout(go, WAIT_MS))])
  line = line.then(async () => {
    const row = /** @type {Row | undefined} */ (await came)
    if (!row) {
      if (still() && list.rows?.total !== 0) tell('That message has not come yet: nothing was done.')
      return
    }
    list.find()
    const now = still() ? list.rows?.at(list.rows.places.get(keyOf(row)) ?? -1) : undefined
    if (now) list.mean(now, run)
    else announce('That message has left the list: nothing was done.')
  }).catch((error) => console.error(error))
}

/** Marks a message by its time, wherever in the list it is; one that is not in it is not marked, and neither is another.
 * @param {List} list @param {{ key: string, ms: number }} message @param {() => boolean} still whether it is still opened */
export async function seek(list, message, still) {
  const awaited = () => still() && list.key === message.key // else somebody has moved the mark
  for (let tries = 0; tries < SEEK_TRIES && awaited(); tries++) {
    const { rows } = list
    const place = await rows?.locate(message, SEEK_ROWS).catch(() => -1) ?? -1
    if (list.rows !== rows) continue // it was read anew
    const row = rows?.at(place)
    if (awaited() && row && keyOf(row) === message.key) list.mark(place)
    return
  }
}
