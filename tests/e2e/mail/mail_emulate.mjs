// mail_emulate.mjs serve PACKAGE COUNT: npm's `emulate` with COUNT messages of ada.
// mail_emulate.mjs compare URL TOKEN DIR: every message of the server is a file of DIR, byte
// for byte, and there is no other file but those named behind.
import { createServer } from 'node:net'
import { readFileSync, readdirSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const user = 'ada@example.com'
const [what, where, ...rest] = process.argv.slice(2)

function freePort() {
    return new Promise((resolve) => {
        const server = createServer()
        server.listen(0, '127.0.0.1', () => {
            const { port } = server.address()
            server.close(() => resolve(port))
        })
    })
}

async function serve(count) {
    const { createEmulator } = await import(pathToFileURL(where + '/node_modules/emulate/dist/api.js'))
    const messages = []
    for (let i = 0; i < count; i++) {
        const labels = i % 50 === 7 ? ['SPAM'] : i % 50 === 8 ? ['TRASH'] : ['INBOX', 'UNREAD']
        // Six years; every tenth pair has the same second.
        const date = 1546300800000 + Math.floor(i / 10) * 630_000_000 + (i % 10) * 61_000_000
        messages.push({
            id: `msg${String(i).padStart(5, '0')}`,
            user_email: user,
            from: `b${i}@example.org`,
            to: user,
            subject: `Number ${i} Grüße`,
            body_text: `Line one of ${i}\nLine two ${'x'.repeat(i % 900)}\n`,
            label_ids: labels,
            internal_date: String(date - (i % 10 === 9 ? 61_000_000 : 0)),
        })
    }
    const emulator = await createEmulator({
        service: 'google',
        port: await freePort(),
        // A token has 5,000 calls an hour.
        seed: { tokens: { tok: { login: user }, one: { login: user }, two: { login: user } }, google: { users: [{ email: user }], messages } },
    })
    console.log('ready', emulator.url.replace('localhost', '127.0.0.1'))
}

async function compare(bearer, dir, kept) {
    const api = where + '/gmail/v1/users/me/messages'
    const ask = async (path) => {
        const answer = await fetch(api + path, { headers: { Authorization: `Bearer ${bearer}` } })
        if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
        return answer.json()
    }
    const files = new Set(readdirSync(dir))
    let token = ''
    let bad = 0
    do {
        const page = await ask(`?maxResults=500&includeSpamTrash=true&pageToken=${token}`)
        for (const { id } of page.messages) {
            const raw = Buffer.from((await ask(`/${id}?format=raw`)).raw, 'base64url')
            if (!files.delete(id + '.eml') || !raw.equals(readFileSync(`${dir}/${id}.eml`))) {
                console.log(id, 'differs or is missing')
                bad++
            }
        }
        token = page.nextPageToken ?? ''
    } while (token !== '')
    for (const name of kept) files.delete(name + '.eml')
    for (const name of files) console.log(name, 'is not on the server')
    process.exit(bad + files.size === 0 ? 0 : 1)
}

if (what === 'serve') await serve(Number(rest[0]))
else await compare(rest[0], rest[1], rest.slice(2))
