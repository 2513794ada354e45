// Asks the real AI SDKs whether they take our messages.
// usage: node validate.mjs CASES.json, where CASES is {"name": {"sdk": "5"|"6"|"7", "messages": [UIMessage, …]}, …}.
// A case passes if the SDK accepts its messages, strips no key, and turns them into model messages that it accepts too.
// With --verdicts before the file: prints {"name": true | false, …}, whether the SDK accepts the messages, and exits with 0.
// With --model before the file: prints {"name": [model message, …], …}, what the SDK makes of the messages, and exits with 0.
// Prints one line per failure; exits with 1 if there was any, 2 if it could not look.
// The SDK rejects an empty list of messages: leave such a conversation out.
import { readFileSync } from 'node:fs';

globalThis.AI_SDK_LOG_WARNINGS = false;
const packages = { 5: 'ai5', 6: 'ai6', 7: 'ai' };

/** The paths of all keys that are in `given` and no longer in `taken`. */
function* stripped(given, taken, path) {
  if (given === null || typeof given !== 'object') return;
  for (const key of Object.keys(given)) {
    const inside = Array.isArray(given) ? `${path}[${key}]` : `${path}.${key}`;
    if (taken === null || typeof taken !== 'object' || !Object.hasOwn(taken, key)) yield inside;
    else yield* stripped(given[key], taken[key], inside);
  }
}

/** Why this SDK does not take these messages, or undefined. */
async function complaint(ai, messages) {
  const checked = await ai.safeValidateUIMessages({ messages: structuredClone(messages) });
  if (!checked.success) return `rejected: ${checked.error?.cause?.message ?? checked.error}`;
  const lost = [...stripped(messages, checked.data, 'messages')];
  if (lost.length > 0) return `stripped: ${lost.join(', ')}`;
  try {
    const model = await ai.convertToModelMessages(structuredClone(messages));
    for (const message of model) {
      const fits = ai.modelMessageSchema.safeParse(message);
      if (!fits.success) return `no model message: ${JSON.stringify(message)}: ${fits.error.message}`;
    }
  } catch (error) {
    return `not converted: ${error}`;
  }
}

let cases, sdks;
try {
  cases = JSON.parse(readFileSync(process.argv.at(-1), 'utf8'));
  sdks = Object.fromEntries(
    await Promise.all(Object.entries(packages).map(async ([major, name]) => [major, await import(name)])),
  );
} catch (error) {
  console.error(`validate.mjs: ${error}`);
  process.exit(2);
}
if (process.argv.includes('--verdicts')) {
  const verdicts = {};
  for (const [name, { sdk, messages }] of Object.entries(cases)) {
    verdicts[name] = (await sdks[sdk].safeValidateUIMessages({ messages })).success;
  }
  process.stdout.write(JSON.stringify(verdicts), () => process.exit(0));
  await new Promise(() => {});
}
if (process.argv.includes('--model')) {
  const model = {};
  for (const [name, { sdk, messages }] of Object.entries(cases)) {
    model[name] = await sdks[sdk].convertToModelMessages(messages);
  }
  process.stdout.write(JSON.stringify(model), () => process.exit(0));
  await new Promise(() => {});
}
let failures = 0;
for (const [name, { sdk, messages }] of Object.entries(cases)) {
  const problem = sdk in sdks ? await complaint(sdks[sdk], messages) : `no such SDK: ${sdk}`;
  if (problem === undefined) continue;
  failures += 1;
  console.log(`${name} (ai ${sdk}): ${problem.replace(/\s+/g, ' ').slice(0, 2000)}`);
}
process.exitCode = failures > 0 ? 1 : 0;
