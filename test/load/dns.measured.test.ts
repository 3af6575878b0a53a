/**
 * Sends tens of thousands of UDP queries at 5,000 per second: none is lost, and 99 % complete within 2 ms. Measured from outside, including the
 * client's latency, so on a busy machine the limit is relative to an echo server.
 */
import { fork, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { encode, RECURSION_DESIRED } from 'dns-packet';
import { expect, onTestFinished, test } from 'vitest';
import { bestOf } from '../harness/best-of.ts';
import { sized } from '../harness/size-of-run.ts';

const questions = sized({ short: 20_000, full: 50_000 });
const perSecond = 5_000;
const services = 5_000;

interface ResponseCounts {
  readonly responded: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly perSecond: number;
}

/** Short names, complete ones and those with the search domain; the table resolves each. */
function questionOf(id: number): Buffer {
  const service = `service-${id % services}`;
  const name = [service, `${service}.shop.svc.cluster.local`, `${service}.shop.shop.svc.cluster.local`][id % 3]!;
  return encode({ type: 'query', id, flags: RECURSION_DESIRED, questions: [{ type: 'A', name }] });
}

async function sendAllQueries(port: number): Promise<ResponseCounts> {
  const messages = Array.from({ length: questions }, (_, id) => questionOf(id));
  const sentAt = new Float64Array(questions);
  const took = new Float64Array(questions).fill(Number.NaN);
  const client = createSocket('udp4');
  client.bind(0, '127.0.0.1');
  await once(client, 'listening');
  client.setRecvBufferSize(4 * 1024 * 1024);
  let responded = 0;
  client.on('message', (message) => {
    const id = message.readUInt16BE(0);
    // A response of the agent without error and with at least one record.
    if ((message.readUInt16BE(2) & 0x840f) !== 0x8400 || message.readUInt16BE(6) === 0) return;
    if (Number.isNaN(took[id]!)) responded++;
    took[id] = performance.now() - sentAt[id]!;
  });
  const startedAt = performance.now();
  for (let id = 0; id < questions; ) {
    const dueCount = Math.min(questions, Math.floor(((performance.now() - startedAt) / 1000) * perSecond));
    for (; id < dueCount; id++) {
      sentAt[id] = performance.now();
      client.send(messages[id]!, port, '127.0.0.1');
    }
    await sleep(1);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  for (let waited = 0; responded < questions && waited < 2_000; waited += 50) await sleep(50);
  client.close();
  const sortedTimes = took.filter((ms) => !Number.isNaN(ms)).sort();
  return {
    responded,
    p50Ms: sortedTimes[Math.floor(sortedTimes.length * 0.5)]!,
    p99Ms: sortedTimes[Math.floor(sortedTimes.length * 0.99)]!,
    perSecond: questions / seconds,
  };
}

/** Raises the priority above other processes of this machine if permitted, because their latency is not measured. */
function raisePriority(...pids: number[]): void {
  const schedule = (...policy: string[]) => pids.map((pid) => spawnSync('chrt', ['--all-tasks', ...policy, `${pid}`]));
  schedule('--fifo', '--pid', '10');
  onTestFinished(() => {
    schedule('--other', '--pid', '0');
  });
}

const limitMs = 2;

async function start(responder: 'names' | 'echo'): Promise<{ pid: number; port: number }> {
  const server = fork(new URL('./dns-server-process.ts', import.meta.url), [`${services}`, responder]);
  onTestFinished(() => {
    server.kill('SIGKILL');
  });
  const earlyExit = once(server, 'exit').then(([code]) => Promise.reject(new Error(`it ended with ${code}`)));
  earlyExit.catch(() => {});
  const [port] = (await Promise.race([once(server, 'message'), earlyExit])) as [number];
  return { pid: server.pid!, port };
}

test(`no query is lost at 5,000 per second, and 99 % of ${questions.toLocaleString('en')} complete within 2 ms`, async () => {
  const [server, echo] = [await start('names'), await start('echo')];
  raisePriority(server.pid, echo.pid, process.pid);
  const runs: { names: ResponseCounts; echo?: ResponseCounts }[] = [];
  await bestOf(3, 1, async () => {
    const names = await sendAllQueries(server.port);
    const isFast = names.responded === questions && names.p99Ms < limitMs;
    const run = isFast ? { names } : { names, echo: await sendAllQueries(echo.port) };
    runs.push(run);
    if (process.env.CHARTPILOT_TELL) console.log(run);
    const { echo: plain } = run;
    if (names.responded < Math.min(questions, plain?.responded ?? questions)) return Number.POSITIVE_INFINITY;
    return names.p99Ms / Math.max(limitMs, 2 * (plain?.p99Ms ?? 0));
  });
  const { names, echo: plain } = runs.at(-1)!;
  const summary = JSON.stringify(runs);
  expect(names.responded, summary).toBeGreaterThanOrEqual(Math.min(questions, plain?.responded ?? questions));
  expect(names.perSecond, summary).toBeGreaterThan(0.95 * Math.min(perSecond, plain?.perSecond ?? perSecond));
  expect(names.p99Ms, summary).toBeLessThan(Math.max(limitMs, 2 * (plain?.p99Ms ?? 0)));
});
