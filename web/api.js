// api.js - calls of the local API.  The key is in localStorage, which belongs to this address and
// port alone, and travels in a header; there are no cookies.

const STORED = 'tidemark.key'
const BASE = 'api/v1/'

export const key = () => localStorage.getItem(STORED)
export const forget = () => localStorage.removeItem(STORED)

/** What a call that failed says: what happened, and what to do. */
export class Trouble extends Error {
  /** @param {number} status 0: nobody answered @param {{ detail?: string, title?: string, help?: string, code?: string }} problem */
  constructor(status, problem) {
    super(problem.detail || problem.title || 'Nobody answered.')
    this.status = status
    this.code = problem.code ?? ''
    this.help = problem.help ?? ''
  }
}

/** @param {string} method @param {string} path
 * @param {{ credentials?: string, body?: unknown, once?: string, signal?: AbortSignal }} options */
async function send(method, path, { credentials, body, once, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = {}
  const file = body instanceof Blob
  if (credentials) headers.Authorization = credentials
  if (body !== undefined) headers['Content-Type'] = file ? 'application/octet-stream' : 'application/json'
  if (once) headers['Idempotency-Key'] = once
  const answer = await fetch(BASE + path, {
    method, headers, signal, body: body === undefined ? undefined : file ? body : JSON.stringify(body), cache: 'no-store',
  }).catch((error) => {
    if (signal?.aborted) throw error
    throw new Trouble(0, {})
  })
  if (!answer.ok) throw new Trouble(answer.status, await answer.json().catch(() => ({ detail: answer.statusText })))
  return answer
}

const bearer = () => 'Bearer ' + key()

/** @param {number} ms */
const pause = (ms) => new Promise((resume) => setTimeout(resume, ms))

/** A machine that is busy for a moment says 503, and has done nothing.
 * @param {() => Promise<Response>} ask @returns {Promise<any>} */
async function patiently(ask) {
  for (let again = 0; ; again++) {
    try {
      return await (await ask()).json()
    } catch (error) {
      if (again === 4 || !(error instanceof Trouble) || error.status !== 503) throw error
      await pause(300 * 2 ** again)
    }
  }
}

/** @param {string} path @param {Record<string, string | number | null | undefined>} [params] @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function get(path, params = {}, signal) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) if (value !== null && value !== undefined && value !== '') query.set(name, String(value))
  const text = query.toString()
  return patiently(() => send('GET', path + (text ? '?' + text : ''), { credentials: bearer(), signal }))
}

/** Changes something once, however often it is sent: a lost answer is asked for again with the same key.
 * @param {string} path @param {unknown} [body] @returns {Promise<any>} */
export async function post(path, body = {}) {
  const once = crypto.randomUUID()
  for (let again = 0; ; again++) {
    try {
      return await (await send('POST', path, { credentials: bearer(), body, once })).json()
    } catch (error) {
      if (again === 2 || !(error instanceof Trouble) || (error.status !== 0 && error.status !== 503)) throw error
      await pause(300 * (again + 1))
    }
  }
}

/** Makes something what is sent, however often it is sent; a Blob goes as it is.
 * @param {string} path @param {unknown} body @returns {Promise<any>} */
export const put = (path, body) => patiently(() => send('PUT', path, { credentials: bearer(), body }))

/** @param {string} path @returns {Promise<any>} */
export const remove = (path) => patiently(() => send('DELETE', path, { credentials: bearer() }))

/** Segments of a path, encoded.
 * @param {...string} parts */
export const path = (...parts) => parts.map(encodeURIComponent).join('/')

/** Asks to be let in and waits for the terminal; the code goes to `show`.
 * @param {(code: string) => void} show @returns {Promise<'in' | 'refused' | 'expired'>} */
export async function pair(show) {
  const { code, ticket } = await (await send('POST', 'pairings', { body: {} })).json()
  show(code)
  for (;;) {
    try {
      const answer = await (await send('GET', 'pairings', { credentials: 'Pairing ' + ticket })).json()
      if (answer.key) {
        localStorage.setItem(STORED, answer.key)
        return 'in'
      }
    } catch (error) {
      const status = error instanceof Trouble ? error.status : 0
      if (status === 403) return 'refused'
      if (status === 404) return 'expired'
      throw error
    }
  }
}

/** Reads a stream of events until it ends.
 * @param {string[]} topics @param {(topic: string, data: any) => void} take @param {AbortSignal} signal */
export async function watch(topics, take, signal) {
  const answer = await send('GET', 'stream?topics=' + topics.join(','), { credentials: bearer(), signal })
  if (!answer.body) return
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    text += value
    const events = text.split('\n\n')
    text = events.pop() ?? ''
    for (const event of events) {
      const lines = event.split('\n')
      const topic = lines.find((line) => line.startsWith('event: '))?.slice(7)
      const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6)).join('\n')
      if (topic && data) take(topic, JSON.parse(data))
    }
  }
}
