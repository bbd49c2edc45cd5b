// Microsoft's own Graph client for JavaScript, unchanged, against the cloud under its own name.
// Usage: node graph.mjs TOKEN FILES
import assert from 'node:assert/strict';
import {createHash} from 'node:crypto';
import {BatchRequestContent, BatchResponseContent, Client, FileUpload, LargeFileUploadTask, PageIterator}
    from '@microsoft/microsoft-graph-client';

const [token, files] = process.argv.slice(2);
const client = Client.init({authProvider: done => done(null, token)});
const fails = (promise, status, code) =>
    assert.rejects(promise, error => error.statusCode === status && error.code === code);
const sha = bytes => createHash('sha256').update(Buffer.from(bytes)).digest('hex');

// ---- every page of delta, with the client's own iterator ----
const seen = new Map();
const pages = new PageIterator(client, await client.api('/me/drive/root/delta').top(100).get(), item => {
    seen.set(item.id, item);
    return true;
});
await pages.iterate();
const count = [...seen.values()].filter(item => item.file).length;
assert.equal(count, Number(files));
assert.ok(pages.getDeltaLink().includes('token='));

// ---- folders, small files, metadata ----
const folder = await client.api('/me/drive/root/children').post({name: 'From node', folder: {}});
await fails(client.api('/me/drive/root/children').post({name: 'from NODE', folder: {}}), 409, 'nameAlreadyExists');
const small = await client.api(`/me/drive/items/${folder.id}:/a #1 100%.txt:/content`
    .replace('#', '%23').replace('%.txt', '%25.txt')).put('hello');
assert.equal(small.name, 'a #1 100%.txt');
const stream = await client.api(`/me/drive/items/${small.id}/content`).responseType('arraybuffer').get();
assert.equal(Buffer.from(stream).toString(), 'hello');
const moved = await client.api(`/me/drive/items/${small.id}`).header('If-Match', small.eTag)
    .patch({name: 'b.txt', fileSystemInfo: {lastModifiedDateTime: '2020-01-02T03:04:05Z'}});
assert.equal(moved.fileSystemInfo.lastModifiedDateTime, '2020-01-02T03:04:05Z');
await fails(client.api(`/me/drive/items/${small.id}`).header('If-Match', small.eTag).delete(), 412, 'resourceModified');
assert.deepEqual(Object.keys(await client.api(`/me/drive/items/${small.id}`).select('id,name').get()).sort(),
    ['id', 'name']);

// ---- a large file, with the client's own upload task ----
const bytes = new Uint8Array(5_000_001);
for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 2654435761) >>> 24;
const session = await LargeFileUploadTask.createUploadSession(client,
    `/me/drive/items/${folder.id}:/large.bin:/createUploadSession`,
    {item: {'@microsoft.graph.conflictBehavior': 'fail', name: 'large.bin'}});
const task = new LargeFileUploadTask(client, new FileUpload(bytes, 'large.bin', bytes.length), session,
    {rangeSize: 4 * 320 * 1024});
const uploaded = (await task.upload()).responseBody;
assert.equal(uploaded.size, bytes.length);
const back = await client.api(`/me/drive/items/${uploaded.id}/content`).responseType('arraybuffer').get();
assert.equal(sha(back), sha(bytes));

// ---- a batch, with the client's own builder ----
const batch = new BatchRequestContent([
    {id: '1', request: new Request('https://graph.microsoft.com/me/drive/root')},
    {id: '2', request: new Request(`https://graph.microsoft.com/me/drive/items/${small.id}`, {method: 'DELETE'}),
        dependsOn: ['1']},
]);
const answer = new BatchResponseContent(await client.api('/$batch').post(await batch.getContent()));
assert.equal((await answer.getResponseById('1').json()).name, 'root');
assert.equal(answer.getResponseById('2').status, 204);
await fails(client.api(`/me/drive/items/${small.id}`).get(), 404, 'itemNotFound');

// ---- it waits when it is told to ----
const began = Date.now();
await fetch('https://graph.microsoft.com/_cloud/faults', {method: 'POST', body: JSON.stringify(
    {method: 'graph.drive.get', fault: '429', count: 1, retry_after: 2})});
assert.equal((await client.api('/me/drive').get()).driveType, 'personal');
assert.ok(Date.now() - began >= 1900);
console.log(`Microsoft's Graph client: ${count} files by delta, uploads, batch, retry`);
