// Asks the real AI SDKs to read our chunks.
// usage: node stream.mjs CASES.json, where CASES is {"name": {"sdk": "5"|"6"|"7", "chunks": […], "messages": [UIMessage, …]}, …}.
// The chunks go through the SDK's own transport, which checks each against its schema, and its own reader of messages.
// What is sent whole (`data-message`) and taken back (`data-removed`) is applied beside it. The result must be `messages`.
// Prints one line per failure; exits with 1 if there was any.
import { readFileSync } from 'node:fs';

const packages = { 5: 'ai5', 6: 'ai6', 7: 'ai' };
const cases = JSON.parse(readFileSync(process.argv.at(-1), 'utf8'));

/** The chunks as the SDK's transport reads them off the wire. */
async function received(ai, chunks) {
  const body = chunks.map(chunk => `data: ${JSON.stringify(chunk)}\n\n`).join('') + 'data: [DONE]\n\n';
  const transport = new ai.DefaultChatTransport({
    fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
    prepareReconnectToStreamRequest: () => ({ api: 'http://localhost/' }),
  });
  const read = [];
  for await (const chunk of await transport.reconnectToStream({ chatId: 'c' })) read.push(chunk);
  return read;
}

/** The message that the SDK's reader makes of some chunks. */
async function folded(ai, chunks) {
  let last;
  const stream = new ReadableStream({
    start(controller) {
      chunks.forEach(chunk => controller.enqueue(chunk));
      controller.close();
    },
  });
  const reader = ai.readUIMessageStream({ stream, terminateOnError: true });
  for await (const message of reader) last = message;
  return last;
}

async function page(ai, chunks) {
  const messages = new Map();
  let open = [];
  const close = async () => {
    const message = open.length > 0 ? await folded(ai, open) : undefined;
    if (message !== undefined) {
      if (messages.has(message.id)) throw new Error(`message ${message.id} begins a second time`);
      messages.set(message.id, message);
    }
    open = [];
  };
  for (const chunk of chunks) {
    if (chunk.type === 'start') await close();
    if (chunk.transient && chunk.type === 'data-message') {
      await close();
      messages.set(chunk.data.id, chunk.data);
    } else if (chunk.transient && chunk.type === 'data-removed') {
      await close();
      for (const id of chunk.data.ids) {
        if (!messages.delete(id)) throw new Error(`${id} is taken back and was never there`);
      }
    } else {
      open.push(chunk);
    }
  }
  await close();
  return [...messages.values()];
}

/** A message without what the protocol of this SDK has no place for; keys in order. */
function plain(value, sdk) {
  if (Array.isArray(value)) return value.map(inner => plain(inner, sdk));
  if (value === null || typeof value !== 'object') return value;
  const copy = { ...value };
  if (copy.type === 'text' || copy.type === 'reasoning') copy.state ??= 'done';
  if (copy.type === 'reasoning') delete copy.id;
  if (copy.type === 'file') {
    for (const key of ['filename', 'providerReference']) {
      if (copy[key] === undefined) continue;
      copy.providerMetadata = { ...copy.providerMetadata };
      copy.providerMetadata.scrollback = { [key]: copy[key], ...copy.providerMetadata.scrollback };
      delete copy[key];
    }
    if (sdk < 6) delete copy.providerMetadata;
  }
  return Object.fromEntries(Object.keys(copy).sort().map(key => [key, plain(copy[key], sdk)]));
}

let failures = 0;
for (const [name, { sdk, chunks, messages }] of Object.entries(cases)) {
  let problem;
  try {
    const ai = await import(packages[sdk]);
    const read = await page(ai, await received(ai, chunks));
    const [theirs, ours] = [read, messages].map(list => list.map(message => JSON.stringify(plain(message, sdk))));
    const at = ours.findIndex((message, at) => message !== theirs[at]);
    if (at >= 0) problem = `message ${at} is\n  ${theirs[at]}\nand should be\n  ${ours[at]}`;
    else if (ours.length !== theirs.length) problem = `${theirs.length} messages instead of ${ours.length}`;
  } catch (error) {
    problem = `${error?.cause?.message ?? error}`.slice(0, 300);
  }
  if (problem === undefined) continue;
  failures += 1;
  console.log(`${name} (ai ${sdk}): ${problem}`);
}
process.exit(failures > 0 ? 1 : 0);
