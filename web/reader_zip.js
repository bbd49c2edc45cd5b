// reader_zip.js - files as one ZIP archive, as they are: attachments are packed already, most of them.

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xEDB88320 : value >>> 1
  return value
})

/** @param {Uint8Array} data */
export function crc32(data) {
  let value = 0xFFFFFFFF
  for (const byte of data) value = CRC[(value ^ byte) & 255] ^ (value >>> 8)
  return (value ^ 0xFFFFFFFF) >>> 0
}

/** Little endian: pairs of a value and its bytes.
 * @param {...[number, number]} fields */
function record(...fields) {
  const out = new Uint8Array(fields.reduce((sum, [, bytes]) => sum + bytes, 0))
  let at = 0
  for (const [value, bytes] of fields) for (let i = 0; i < bytes; i++) out[at++] = Math.floor(value / 2 ** (8 * i)) & 255
  return out
}

/** No two have the same name.
 * @param {string[]} names */
export function apart(names) {
  const seen = new Set()
  return names.map((name) => {
    let one = name
    for (let i = 2; seen.has(one); i++) one = name.replace(/(\.[^.]*)?$/, ` (${i})$1`)
    seen.add(one)
    return one
  })
}

/** @param {{ name: string, data: Uint8Array }[]} files */
export function zip(files) {
  /** @type {Uint8Array[]} */
  const parts = []
  /** @type {Uint8Array[]} */
  const list = []
  let at = 0
  const names = apart(files.map((file) => file.name)).map((name) => new TextEncoder().encode(name))
  files.forEach(({ data }, i) => {
    // Version 2.0, names in UTF-8, stored; 1980-01-01.
    const about = /** @type {[number, number][]} */ ([[20, 2], [0x800, 2], [0, 2], [0, 2], [33, 2], [crc32(data), 4], [data.length, 4], [data.length, 4], [names[i].length, 2], [0, 2]])
    parts.push(record([0x04034B50, 4], ...about), names[i], data)
    list.push(record([0x02014B50, 4], [20, 2], ...about, [0, 2], [0, 2], [0, 2], [0, 4], [at, 4]), names[i])
    at += 30 + names[i].length + data.length
  })
  const bytes = list.reduce((sum, one) => sum + one.length, 0)
  return new Blob([...parts, ...list, record([0x06054B50, 4], [0, 2], [0, 2], [files.length, 2], [files.length, 2], [bytes, 4], [at, 4], [0, 2])], { type: 'application/zip' })
}
