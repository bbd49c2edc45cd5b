// Google's own Node client for Gmail, unchanged, against the cloud: signs in
// with PKCE, then calls every method the cloud serves and looks at the answers.
// Usage: node gmail.mjs http://127.0.0.1:PORT
import assert from 'node:assert/strict';
import {createHash, randomBytes} from 'node:crypto';
import {gmail_v1, auth as googleAuth} from '@googleapis/gmail';

const origin = process.argv[2];
const user = 'ada@example.com';
const b64 = text => Buffer.from(text).toString('base64url');
const unb64 = text => Buffer.from(text, 'base64url');
const fails = (promise, status) =>
    assert.rejects(promise, error => Number(error.status ?? error.code) === status);

// ---- sign-in, as a desktop program does it ----
const client = new googleAuth.OAuth2({
    clientId: 'desktop-client', clientSecret: 'not-a-secret', redirectUri: 'http://127.0.0.1:9/done',
    endpoints: {
        oauth2AuthBaseUrl: `${origin}/o/oauth2/v2/auth`, oauth2TokenUrl: `${origin}/token`,
        oauth2RevokeUrl: `${origin}/revoke`, tokenInfoUrl: `${origin}/tokeninfo`,
    },
});
const {codeVerifier, codeChallenge} = await client.generateCodeVerifierAsync();
const consent = client.generateAuthUrl({
    access_type: 'offline', prompt: 'consent', scope: ['https://mail.google.com/'], state: 'xyz',
    login_hint: user, code_challenge: codeChallenge, code_challenge_method: 'S256',
});
const page = await fetch(consent, {redirect: 'manual'});
assert.equal(page.status, 302);
const back = new URL(page.headers.get('location'));
assert.equal(back.searchParams.get('state'), 'xyz');
await fails(client.getToken({code: back.searchParams.get('code'), codeVerifier: 'x'.repeat(43)}), 400);
const again = new URL((await fetch(consent, {redirect: 'manual'})).headers.get('location'));
const {tokens} = await client.getToken({code: again.searchParams.get('code'), codeVerifier});
assert.ok(tokens.access_token && tokens.refresh_token);
assert.equal(tokens.scope, 'https://mail.google.com/');
client.setCredentials(tokens);
const refreshed = await client.getAccessToken();
assert.ok(refreshed.token);

const gmail = new gmail_v1.Gmail({auth: client, rootUrl: `${origin}/`});
const me = {userId: 'me'};
const {messages, labels, threads, drafts, history} = gmail.users;

// ---- profile and listing ----
const profile = (await gmail.users.getProfile(me)).data;
assert.equal(profile.emailAddress, user);
const seen = new Set();
let pages = 0;
for (let pageToken; ; pages++) {
    const {data} = await messages.list({...me, maxResults: 100, includeSpamTrash: true, pageToken});
    for (const {id} of data.messages) {
        assert.ok(!seen.has(id), 'listed twice');
        seen.add(id);
    }
    pageToken = data.nextPageToken;
    if (!pageToken) break;
}
assert.equal(seen.size, profile.messagesTotal);
assert.equal((await messages.list({...me, q: 'nosuchoperator:x'})).data.messages, undefined);
await fails(messages.list({...me, maxResults: 501}), 400);
const inbox = (await messages.list({...me, labelIds: ['INBOX'], maxResults: 5})).data.messages;
assert.ok(inbox.length > 0);

// ---- one message in every format ----
const id = inbox[0].id;
const raw = (await messages.get({...me, id, format: 'raw'})).data;
const full = (await messages.get({...me, id})).data;
const meta = (await messages.get({...me, id, format: 'metadata', metadataHeaders: ['subject']})).data;
const minimal = (await messages.get({...me, id, format: 'minimal'})).data;
assert.ok(unb64(raw.raw).length > 0 && raw.payload === undefined);
assert.ok(full.payload.headers.length > 1 && full.raw === undefined);
assert.ok(meta.payload.headers.every(h => h.name.toLowerCase() === 'subject'));
assert.equal(minimal.payload, undefined);
assert.equal(new Set([raw, full, meta, minimal].map(m => m.internalDate)).size, 1);
const partial = (await messages.get({...me, id, fields: 'id,payload/headers(name)'})).data;
assert.deepEqual(Object.keys(partial).sort(), ['id', 'payload']);
await fails(messages.get({...me, id: '0000000000000000'}), 404);

// ---- insert, import, send: bytes come back as they went ----
const nasty = Buffer.concat([
    Buffer.from('From: a@example.org\r\nTo: ada@example.com\r\nSubject: bytes\r\n' +
        `Message-ID: <${randomBytes(8).toString('hex')}@example.org>\r\n\r\n`),
    Buffer.from(Array.from({length: 256}, (_, i) => i)), randomBytes(5000)]);
const put = (await messages.insert({...me, requestBody: {raw: nasty.toString('base64url'),
    labelIds: ['INBOX', 'UNREAD']}})).data;
assert.deepEqual(unb64((await messages.get({...me, id: put.id, format: 'raw'})).data.raw), nasty);
const dated = (await messages.import({...me, internalDateSource: 'dateHeader', requestBody: {raw: b64(
    'From: b@example.org\r\nTo: ada@example.com\r\nDate: Mon, 03 Mar 2014 10:00:00 +0000\r\n' +
    'Subject: old\r\nMessage-ID: <old@example.org>\r\n\r\nold\r\n')}})).data;
assert.equal((await messages.get({...me, id: dated.id, format: 'minimal'})).data.internalDate,
    String(Date.UTC(2014, 2, 3, 10)));
const found = (await messages.list({...me, q: 'rfc822msgid:old@example.org'})).data.messages;
assert.deepEqual(found.map(m => m.id), [dated.id]);
const sent = (await messages.send({...me, requestBody: {raw: b64(
    'To: ada@example.com\r\nSubject: to myself\r\n\r\nhello\r\n')}})).data;
assert.ok(sent.labelIds.includes('SENT'));
await fails(messages.send({...me, requestBody: {raw: b64('Subject: to nobody\r\n\r\n')}}), 400);
const uploaded = (await messages.insert({...me, requestBody: {labelIds: ['INBOX']},
    media: {mimeType: 'message/rfc822', body: nasty.toString('latin1').slice(0, 200)}},
    {rootUrl: origin})).data; // uploads take their root from the call alone
assert.ok(uploaded.id);

// ---- an attachment behind its id ----
const withFile = (await messages.insert({...me, requestBody: {raw: b64(
    'From: c@example.org\r\nTo: ada@example.com\r\nSubject: file\r\nMIME-Version: 1.0\r\n' +
    'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\ntext\r\n' +
    '--b\r\nContent-Type: application/pdf; name="a.pdf"\r\nContent-Disposition: attachment; ' +
    'filename="a.pdf"\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERi0xLjQ=\r\n--b--\r\n')}})).data;
const parts = (await messages.get({...me, id: withFile.id})).data.payload.parts;
assert.equal(parts[1].filename, 'a.pdf');
const file = (await messages.attachments.get({...me, messageId: withFile.id,
    id: parts[1].body.attachmentId})).data;
assert.equal(unb64(file.data).toString(), '%PDF-1.4');
assert.equal(file.size, 8);

// ---- labels ----
const label = (await labels.create({...me, requestBody: {name: 'Harbour/Boats',
    labelListVisibility: 'labelShow', messageListVisibility: 'show'}})).data;
await fails(labels.create({...me, requestBody: {name: 'Harbour/Boats'}}), 409);
await fails(labels.create({...me, requestBody: {name: 'INBOX'}}), 400);
await labels.patch({...me, id: label.id, requestBody: {messageListVisibility: 'hide'}});
await labels.update({...me, id: label.id, requestBody: {id: label.id, name: 'Harbour'}});
assert.equal((await labels.get({...me, id: label.id})).data.name, 'Harbour');
assert.ok((await labels.list(me)).data.labels.some(l => l.id === label.id));

// ---- changes, and the history that tells them ----
const start = (await gmail.users.getProfile(me)).data.historyId;
const changed = (await messages.modify({...me, id: put.id,
    requestBody: {addLabelIds: [label.id, 'STARRED'], removeLabelIds: ['UNREAD']}})).data;
assert.ok(changed.labelIds.includes(label.id) && !changed.labelIds.includes('UNREAD'));
await messages.trash({...me, id: dated.id});
await messages.untrash({...me, id: dated.id});
await messages.batchModify({...me, requestBody: {ids: [put.id, dated.id], addLabelIds: [label.id]}});
await fails(messages.batchModify({...me, requestBody: {ids: Array(1001).fill(put.id)}}), 400);
await fails(messages.modify({...me, id: put.id, requestBody: {addLabelIds: ['SENT']}}), 400);
await messages.delete({...me, id: uploaded.id});
await messages.batchDelete({...me, requestBody: {ids: [sent.id, '0000000000000001']}});
const told = (await history.list({...me, startHistoryId: start})).data;
assert.ok(told.history.some(h => h.labelsAdded?.some(a => a.labelIds.includes('STARRED'))));
assert.ok(told.history.some(h => h.labelsRemoved?.some(a => a.labelIds.includes('UNREAD'))));
assert.ok(told.history.some(h => h.messagesDeleted?.some(a => a.message.id === uploaded.id)));
const ids = told.history.map(h => BigInt(h.id));
assert.ok(ids.every((h, i) => h > BigInt(start) && (i === 0 || h > ids[i - 1])));
await fails(history.list({...me, startHistoryId: '1'}), 404);
const deletedOnly = (await history.list({...me, startHistoryId: start,
    historyTypes: ['messageDeleted']})).data;
assert.ok(deletedOnly.history.every(h => h.messagesDeleted && !h.labelsAdded));
await labels.delete({...me, id: label.id});

// ---- threads ----
const listed = (await threads.list({...me, maxResults: 20})).data.threads;
assert.equal(new Set(listed.map(t => t.id)).size, listed.length);
const thread = (await threads.get({...me, id: listed[0].id, format: 'metadata'})).data;
assert.ok(thread.messages.length > 0);
await threads.modify({...me, id: thread.id, requestBody: {addLabelIds: ['STARRED']}});
assert.ok((await threads.get({...me, id: thread.id, format: 'minimal'})).data.messages
    .every(m => m.labelIds.includes('STARRED')));
await threads.trash({...me, id: thread.id});
await threads.untrash({...me, id: thread.id});
await threads.delete({...me, id: thread.id});
await fails(threads.get({...me, id: thread.id}), 404);

// ---- drafts: the id stays, the message inside is another one ----
const draftOf = text => ({message: {raw: b64(`To: bob@example.com\r\nSubject: ${text}\r\n\r\n${text}\r\n`)}});
const draft = (await drafts.create({...me, requestBody: draftOf('first')})).data;
const redone = (await drafts.update({...me, id: draft.id, requestBody: draftOf('second')})).data;
assert.equal(redone.id, draft.id);
assert.notEqual(redone.message.id, draft.message.id);
await fails(messages.get({...me, id: draft.message.id}), 404);
assert.ok((await drafts.list(me)).data.drafts.some(d => d.id === draft.id));
assert.equal((await drafts.get({...me, id: draft.id, format: 'minimal'})).data.message.id,
    redone.message.id);
assert.ok((await drafts.send({...me, requestBody: {id: draft.id}})).data.labelIds.includes('SENT'));
const other = (await drafts.create({...me, requestBody: draftOf('never sent')})).data;
await drafts.delete({...me, id: other.id});
await fails(drafts.get({...me, id: other.id}), 404);

// ---- push ----
await fails(gmail.users.watch({...me, requestBody: {topicName: 'nonsense'}}), 400);
const watch = (await gmail.users.watch({...me, requestBody: {topicName: 'projects/p/topics/t',
    labelIds: ['INBOX']}})).data;
assert.ok(Number(watch.expiration) > Date.now() + 6 * 86400e3 && watch.historyId);
await gmail.users.stop(me);

// ---- and out ----
await client.revokeCredentials();
client.setCredentials(tokens);
await assert.rejects(gmail.users.getProfile(me)); // 401, or invalid_grant of its refresh
console.log(`gmail: ${seen.size} messages in ${pages + 1} pages, every method answered as Google's client expects`);
