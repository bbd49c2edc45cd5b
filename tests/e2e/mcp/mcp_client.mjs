// mcp_client.mjs WORK TIDEMARK HOME: reads mail through the official client of the Model Context
// Protocol, which checks every answer against the protocol and against the tools' own schemas.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [work, tidemark, home] = process.argv.slice(2);
const require = createRequire(`${work}/`);
const load = async (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load('client/index.js');
const { StdioClientTransport } = await load('client/stdio.js');
const { ErrorCode, LATEST_PROTOCOL_VERSION } = await load('types.js');

const transport = new StdioClientTransport({
  command: tidemark, args: ['--home', home, 'mcp'], stderr: 'pipe', env: { ...process.env },
});
const client = new Client({ name: 'test', version: '1' });
const problems = [];
client.onerror = (error) => problems.push(String(error));
await client.connect(transport);
assert.equal(client.getServerVersion().name, 'tidemark');
assert.match(client.getInstructions(), /untrusted/);
console.log(`protocol ${LATEST_PROTOCOL_VERSION}`);
await client.ping();

const { tools } = await client.listTools();
assert.deepEqual(tools.map((t) => t.name).sort(),
  ['drive_status', 'list_accounts', 'mail_message', 'mail_search', 'mail_thread', 'status']);
for (const tool of tools) {
  assert.ok(tool.annotations.readOnlyHint, tool.name);
  assert.equal(tool.inputSchema.additionalProperties, false);
  assert.ok(tool.outputSchema);
}

// callTool() fails if the structured content does not fit the schema of the tool.
const call = async (name, args = {}, options = undefined) => client.callTool({ name, arguments: args }, undefined, options);
const { accounts } = (await call('list_accounts')).structuredContent;
assert.equal(accounts[0].account, 'ada@example.com');
assert.equal((await call('status')).structuredContent.accounts[0].gaps, 0);

const found = (await call('mail_search', { query: 'in:anywhere', limit: 5 })).structuredContent;
assert.equal(found.messages.length, 5);
const more = (await call('mail_search', { query: 'in:anywhere', limit: 50, page: found.next })).structuredContent;
assert.equal(new Set([...found.messages, ...more.messages].map((m) => m.id)).size, accounts[0].stored);
const message = (await call('mail_message', { id: found.messages[0].id })).structuredContent;
assert.equal(message.id, found.messages[0].id);
assert.equal(typeof message.untrusted.text, 'string');
const thread = (await call('mail_thread', { id: message.thread })).structuredContent;
assert.ok(thread.messages.some((m) => m.id === message.id));
for (const order of ['newest', 'oldest', 'best']) {
  const result = await call('mail_search', { query: 'the', order });
  assert.ok(!result.isError, JSON.stringify(result));
}

// Wrong input: the model hears what is wrong; an unknown tool and method are errors of the protocol.
const wrong = await call('mail_search', { query: 'frm:x' });
assert.ok(wrong.isError);
assert.match(wrong.content[0].text, /Operators/);
assert.ok((await call('mail_search', { query: 'x', limit: 1000 })).isError);
await assert.rejects(call('mail_delete'), (e) => e.code === ErrorCode.InvalidParams);
await assert.rejects(client.listResources(), /not support|-32601/);

// Many at once: more than may wait are refused and can be tried again.
const many = await Promise.allSettled(Array.from({ length: 40 }, () => call('mail_search', { query: 'a' })));
const refused = many.filter((m) => m.status === 'rejected');
assert.ok(refused.every((m) => m.reason.code === -32000), JSON.stringify(refused));
assert.ok(many.length - refused.length >= 16, `${refused.length} refused`);

// A request that the client gives up: the session goes on.
const stop = new AbortController();
const given = call('mail_search', { query: 'b' }, { signal: stop.signal });
stop.abort('enough');
await assert.rejects(given);
await client.ping();

const pid = transport.pid;
const started = Date.now();
await client.close();
assert.ok(Date.now() - started < 1900, 'it does not end with its input'); // the client kills after 2 s
assert.throws(() => process.kill(pid, 0));
assert.deepEqual(problems, []);
console.log('ok');
