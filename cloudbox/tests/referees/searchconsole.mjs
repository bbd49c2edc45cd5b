// Google's own Node client for Search Console, unchanged, against the cloud.
// Usage: node searchconsole.mjs http://127.0.0.1:PORT TOKEN SITE
import assert from 'node:assert/strict';
import {searchconsole_v1, auth as googleAuth} from '@googleapis/searchconsole';

const [origin, access_token, siteUrl] = process.argv.slice(2);
const client = new googleAuth.OAuth2();
client.setCredentials({access_token});
const api = new searchconsole_v1.Searchconsole({auth: client, rootUrl: `${origin}/`});
const fails = (promise, status) =>
    assert.rejects(promise, error => Number(error.status ?? error.code) === status);
const query = requestBody => api.searchanalytics.query({siteUrl, requestBody}).then(r => r.data);

const {siteEntry} = (await api.sites.list()).data;
assert.ok(siteEntry.some(s => s.siteUrl === siteUrl && s.permissionLevel));
assert.equal((await api.sites.get({siteUrl})).data.siteUrl, siteUrl);
await fails(query({startDate: 'soon', endDate: 'later'}), 400);

const day = new Date(Date.now() - 10 * 86400e3).toISOString().slice(0, 10);
const one = {startDate: day, endDate: day};
const total = await query(one);
assert.equal(total.rows.length, 1);
const dimensions = ['date', 'query', 'page', 'country', 'device'];
const rows = [];
for (let startRow = 0; ; startRow += 400) {
    const part = (await query({...one, dimensions, rowLimit: 400, startRow})).rows ?? [];
    rows.push(...part);
    if (part.length < 400) break;
}
assert.ok(rows.length > 400);
assert.ok(rows.every((r, i) => r.keys[0] === day && (i === 0 || r.clicks <= rows[i - 1].clicks)));
const sum = rows.reduce((s, r) => s + r.clicks, 0);
assert.ok(sum < total.rows[0].clicks, 'rare queries are hidden');
const devices = await query({...one, dimensions: ['device']});
assert.equal(devices.rows.reduce((s, r) => s + r.clicks, 0), total.rows[0].clicks);
const mobile = await query({...one, dimensions: ['device'], dimensionFilterGroups: [
    {filters: [{dimension: 'device', operator: 'equals', expression: 'MOBILE'}]}]});
assert.deepEqual(mobile.rows.map(r => r.keys), [['MOBILE']]);
assert.ok((await query({...one, dimensions: ['page'], type: 'discover'})).rows
    .every(r => r.position === undefined));
const old = await query({startDate: '2001-01-01', endDate: '2001-01-01', dimensions});
assert.equal(old.rows, undefined);
await fails(query({...one, dimensions, rowLimit: 25001}), 400);
await fails(query({...one, dimensions: ['page'], aggregationType: 'byProperty'}), 400);
await fails(api.searchanalytics.query({siteUrl: 'https://elsewhere.example/', requestBody: one}), 403);
console.log(`searchconsole: ${rows.length} rows of ${day}, sums and refusals as expected`);
