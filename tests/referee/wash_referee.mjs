// wash_referee.mjs WORK WASH_PRINT FIXTURES CORPUS: see wash_referee.sh.
//
// Two judges that we did not write: dompurify with our list of elements and attributes must remove
// nothing, and the tree that jsdom builds of the result (by parse5, the parser of the standard) must
// hold nothing else either.
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'

const [work, washPrint, fixtures, corpus] = process.argv.slice(2)
const require = createRequire(join(resolve(work), 'x.js'))
const createDOMPurify = require('dompurify')
const { JSDOM } = require('jsdom')

const ELEMENTS = `a abbr acronym address article aside b bdi bdo big blockquote br caption center cite code col
colgroup dd del dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav
ol p pre q s samp section small span strike strong style sub sup table tbody td tfoot th thead time tr tt u ul var wbr`
  .split(/\s+/)
const ATTRIBUTES = `align alt aria-hidden aria-label background bgcolor border cellpadding cellspacing class clear color
colspan dir face height href hspace id lang media noshade nowrap rel role rowspan scope size span src start style title
type valign value vspace width`.split(/\s+/)
const FRAME = 'http://127.0.0.1:7433/v/CAP/html'

// ---- inputs

function unescape(text) {
  const bytes = []
  const from = Buffer.from(text)
  for (let i = 0; i < from.length; i++) {
    if (from[i] !== 0x5c) {
      bytes.push(from[i])
      continue
    }
    const c = String.fromCharCode(from[++i])
    if (c === 'x') {
      bytes.push(parseInt(from.toString('latin1', i + 1, i + 3), 16))
      i += 2
    } else {
      bytes.push({ n: 10, r: 13, t: 9, '\\': 0x5c }[c])
    }
  }
  return Buffer.from(bytes)
}

// What is there 20,000 times is as hostile 300 times, and jsdom is not linear.
const TIMES_MAX = 300

function hostile() {
  const lines = readFileSync(join(fixtures, 'hostile.txt'), 'utf8').split('\n')
  return lines.filter(line => line !== '' && line[0] !== '#' && line[0] !== '[').map(line => {
    const parts = line.split(/(\\\*\d+\{[^}]*\})/)
    return Buffer.concat(parts.map(part => {
      const times = /^\\\*(\d+)\{([^}]*)\}$/.exec(part)
      return times === null
        ? unescape(part)
        : Buffer.concat(Array(Math.min(Number(times[1]), TIMES_MAX)).fill(unescape(times[2])))
    }))
  })
}

function mails() {
  const blocks = readFileSync(join(fixtures, 'mails.txt'), 'utf8').split(/^=== .*\n/m).slice(1)
  return blocks.map(block => Buffer.from(block.split('\n--- washed\n')[0]))
}

function seeds() {
  return readdirSync(corpus).map(name => readFileSync(join(corpus, name)))
}

function wash(inputs) {
  const sent = Buffer.concat(inputs.flatMap(input => [Buffer.from(`${input.length}\n`), input]))
  const ran = spawnSync(washPrint, ['--many'], { input: sent, maxBuffer: 1 << 30 })
  if (ran.status !== 0)
    throw new Error(`wash_print: ${ran.status} ${ran.stderr}`)
  const results = []
  for (let at = 0; at < ran.stdout.length;) {
    const end = ran.stdout.indexOf(10, at)
    const bytes = Number(ran.stdout.toString('latin1', at, end))
    results.push(ran.stdout.toString('utf8', end + 1, end + 1 + bytes))
    at = end + 1 + bytes
  }
  return results
}

// ---- judges

const { window } = new JSDOM('')
const purify = createDOMPurify(window)

function removed(html) {
  purify.sanitize(html, {
    ALLOWED_TAGS: [...ELEMENTS, 'body'], // the one around it
    ALLOWED_ATTR: ATTRIBUTES, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false,
    FORCE_BODY: true, // else it drops a style in front
  })
  return purify.removed
    .filter(one => one.element?.nodeName !== 'REMOVE') // its own
    .map(one => one.element !== undefined ? `element ${one.element.nodeName}` : `attribute ${one.attribute?.name} of ${one.from?.nodeName}`)
}

function cssProblem(css) {
  const plain = css.replace(/\\([0-9a-f]{1,6})\s?|\\(.)/gi, (_, hex, char) =>
    hex === undefined ? char : String.fromCodePoint(Math.min(parseInt(hex, 16), 0x10ffff)))
  const unquoted = css.replace(/'[^']*'/g, "''")
  if (/url\s*\(|image-set|expression\s*\(|@import|@font-face|-moz-binding|behavior\s*:/i.test(unquoted))
    return 'style'
  return /<\/style/i.test(css) || /<\/style/i.test(plain) && /</.test(css) ? 'style with a tag' : null
}

function attributeProblem(element, attribute) {
  const { name, value } = attribute
  if (!ATTRIBUTES.includes(name))
    return `attribute ${name}`
  if (name === 'href' && !['http:', 'https:', 'mailto:'].includes(new URL(value, FRAME).protocol))
    return `href ${value}`
  if (name === 'href' && (!URL.canParse(value) && !/^https?:\/\//.test(value)))
    return `relative href ${value}`
  if (name === 'src' || name === 'background') {
    const url = new URL(value, FRAME)
    if (url.protocol === 'data:' ? !/^data:image\/(png|jpe?g|gif|webp|bmp);base64,/.test(value)
      : !/^http:\/\/127\.0\.0\.1:7433\/v\/CAP\/(img|cid)\/\d+$/.test(url.href))
      return `${name} ${value}`
  }
  if (name === 'style')
    return cssProblem(value)
  return null
}

function* treeProblems(html) {
  const document = new window.DOMParser().parseFromString(
    `<!doctype html><meta charset=utf-8><body>${html}</body>`, 'text/html')
  for (const element of document.body.querySelectorAll('*')) {
    if (element.namespaceURI !== 'http://www.w3.org/1999/xhtml' || !ELEMENTS.includes(element.localName))
      yield `element ${element.localName}`
    if (element.localName === 'style') {
      const problem = cssProblem(element.textContent)
      if (problem !== null)
        yield problem
    }
    for (const attribute of element.attributes) {
      let problem
      try {
        problem = attributeProblem(element, attribute)
      } catch (error) {
        // A host that no URL may have: the link leads nowhere.
        problem = attribute.name === 'href' && /^(https?:\/\/|mailto:)/.test(attribute.value) ? null : String(error)
      }
      if (problem !== null)
        yield problem
    }
  }
  const walker = document.createTreeWalker(document.body, 128 /* comments */)
  if (walker.nextNode() !== null)
    yield 'comment'
  if (document.head.querySelectorAll(':not(meta)').length > 0)
    yield 'something in the head'
}

// The words of ordinary mail as the standard's parser finds them: none may be missing or new.
function words(html) {
  const document = new window.DOMParser().parseFromString(html, 'text/html')
  document.querySelectorAll('script, style, title, textarea, iframe').forEach(element => element.remove())
  return document.documentElement.textContent.replace(/[\s\u00ad]+/g, ' ').trim()
}

// ---- the whole

const ordinary = mails()
const inputs = [...ordinary, ...hostile(), ...seeds()]
const results = wash(inputs)
if (results.length !== inputs.length)
  throw new Error(`${results.length} results of ${inputs.length}`)
let failed = 0
let dirty = 0
results.forEach((result, i) => {
  // Of nothing dompurify makes a comment, and removes that.
  const problems = result === '' ? [] : [...removed(result), ...treeProblems(result)]
  if (i < ordinary.length && words(inputs[i].toString('utf8')) !== words(result))
    problems.push('other words')
  if (problems.length > 0) {
    failed++
    console.error(`FAILED: ${problems.slice(0, 3).join(', ')}\n  html:   ${inputs[i].toString('utf8').slice(0, 300)}\n  washed: ${result.slice(0, 300)}`)
  }
  dirty += removed(inputs[i].toString('utf8')).length > 0
})
// A judge that never finds anything judges nothing.
if (dirty < inputs.length / 3) {
  failed++
  console.error(`FAILED: dompurify removed something from ${dirty} of ${inputs.length} inputs only`)
}
console.log(`${inputs.length} inputs, dompurify ${purify.version} removes something from ${dirty} of them, and from ${failed} of the washed`)
process.exit(failed > 0 ? 1 : 0)
