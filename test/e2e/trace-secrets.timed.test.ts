/**
 * Traces of an agent and its control plane in a run full of secrets: neither the files nor the debugger's stream contain a secret, only this
 * user on this host can read the stream, and a debugger never blocks a program.
 */

import { createPrivateKey, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readDebuggerToken } from '../../src/runtime/trace/debugger-token.ts';
import type { TraceLine, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { createAuthority } from '../certs/authority.ts';
import { replaceFiles } from '../certs/certificate-directory.ts';
import { eventually } from '../harness/eventually.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { type AgentProgram, type Mesh, sampleHost, startMesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { sized } from '../harness/size-of-run.ts';
import { linesOf, responseTo, stuckViewer, Viewer } from '../harness/trace-viewer.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import { conclude } from './conclude.ts';

const random = (): string => randomBytes(18).toString('base64url');
const encodeJson = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const ownKey = createAuthority().privateKey;
const env = {
  DB_PASSWORD: `pässword "${random()}"`,
  API_TOKEN: random(),
  AWS_SECRET_ACCESS_KEY: `${random()}/+${random()}`,
  ISTIO_META_CLIENT_SECRET: random(),
  DATABASE_URL: `postgres://demo:${random()}@127.0.0.1/db`,
  TLS_PRIVATE_KEY: ownKey,
};
/** Stored in a file next to the certificates; a client sends it through Envoy. */
const fileToken = `${encodeJson({ alg: 'RS256' })}.${encodeJson({ sub: random() })}.${random()}`;
const cookie = random();

/** Secrets by description. */
const secrets = new Map<string, string>([
  ['DB_PASSWORD', env.DB_PASSWORD.split('"')[1]!],
  ['API_TOKEN', env.API_TOKEN],
  ['half of AWS_SECRET_ACCESS_KEY', env.AWS_SECRET_ACCESS_KEY.split('/')[0]!],
  ['ISTIO_META_CLIENT_SECRET', env.ISTIO_META_CLIENT_SECRET],
  ['the password of DATABASE_URL', env.DATABASE_URL.split(/[:@]/)[2]!],
  ['the token file', fileToken.split('.')[1]!],
  ['its signature', fileToken.split('.')[2]!],
  ['a cookie', cookie],
]);

function addKey(description: string, pem: string): void {
  const lines = pem.split('\n').filter((line) => line.length >= 16 && !line.startsWith('-----'));
  for (const [index, line] of lines.entries()) secrets.set(`line ${index + 1} of ${description}`, line);
  const number = createPrivateKey(pem).export({ format: 'jwk' }).d!;
  secrets.set(`the number of ${description}`, number);
  secrets.set(`the number of ${description} in hexadecimal`, Buffer.from(number, 'base64url').toString('hex'));
}

function foundSecrets(text: string): string[] {
  return [...secrets].filter(([, secret]) => text.includes(secret)).map(([description]) => description);
}

const envoyMessages = ({ lines }: Viewer): string[] => lines.flatMap((line) => (line.kind === 'log' ? line.text : []));

/** Envoy's log lines about a request with client credentials, redacted or not. */
const expectedMessages = [/^'authorization', /, /^'x-api-key', /, /^'cookie', /, /\?password=/, /\/postgres/];

/** Sends a request through the gateway with every type of client credential. */
async function sendIdentified(port: number): Promise<void> {
  const headers = {
    host: sampleHost,
    authorization: `Bearer ${fileToken}`,
    cookie: `session=${cookie}`,
    'x-api-key': env.API_TOKEN,
    'x-access-token': env.ISTIO_META_CLIENT_SECRET,
  };
  // Values without a context that marks them as secrets.
  const encodedSecrets = [env.API_TOKEN, env.DB_PASSWORD, env.AWS_SECRET_ACCESS_KEY, env.DATABASE_URL].map(
    encodeURIComponent,
  );
  const path = `/${encodedSecrets.join('/')}?password=${env.ISTIO_META_CLIENT_SECRET}`;
  const [status] = await responseTo(port, headers, { path });
  expect(status).toBe(200);
}

describe('a run with secrets in all inputs', () => {
  let mesh: Mesh;
  let port: number;
  const viewers: Viewer[] = [];

  beforeAll(async () => {
    mesh = await startMesh({
      sidecar: false,
      drainMs: 1_000,
      parentShutdownMs: 2_000,
      env,
      agentArgs: ['--proxyLogLevel', 'debug'],
    });
    port = mesh.gateway!.statusPort;
    viewers.push(await Viewer.attach(port), await Viewer.attach(mesh.discovery!.httpPort));
    const { directory, authorityDirectory } = mesh.certificates;
    addKey('the first certificate', readFileSync(join(directory, 'tls.key'), 'utf8'));
    addKey('the authority', readFileSync(join(authorityDirectory, 'ca.key'), 'utf8'));
    addKey('TLS_PRIVATE_KEY', ownKey);
    writeFileSync(join(directory, 'token'), fileToken);
  });

  afterAll(() => conclude(mesh));

  test('restarts after a certificate change, rejects a certificate with a wrong key, and serves requests', async () => {
    const { program } = mesh.gateway!;
    const { directory } = mesh.certificates;
    const serial = mesh.renewCertificate();
    const key = readFileSync(join(directory, 'tls.key'), 'utf8');
    addKey('the second certificate', key);
    await eventually('the new certificate is served', async () => {
      return (await probe(mesh.httpsTarget)).serialNumber === serial;
    });
    const isOver = (line: TraceLine): boolean => line.kind === 'stop' && line.actor === 'epoch-0';
    await eventually('the first Envoy is gone', () => viewers[0]!.lines.some(isOver));
    const from = program.lines.length;
    replaceFiles(directory, { 'tls.key': key.replace(/\n(?=[^-])/, '\nAAAA') });
    await program.line(loggedLine('config.rejected', { reason: /tls\.key/ }), { fromLine: from });
    // Envoy's debug log exceeds what the trace accepts; in a quiet moment the trace accepts all of it.
    await eventually('Envoy’s words about the request are sent to the debugger', async () => {
      await sleep(2_000);
      await sendIdentified(mesh.ports.http);
      await sleep(200);
      return expectedMessages.every((pattern) => envoyMessages(viewers[0]!).some((text) => pattern.test(text)));
    });
  });

  test('records Envoy’s messages about client input in the agent’s trace, without the input', () => {
    const texts = envoyMessages(viewers[0]!);
    expect(texts).toContain("'authorization', '[redacted]'");
    expect(texts).toContain("'x-api-key', '[redacted]'");
    expect(texts).toContain("'cookie', '[redacted]'");
    expect(texts.some((text) => text.includes('?password=[redacted]'))).toBe(true);
    expect(texts.some((text) => text.includes('/[redacted]/[redacted]/[redacted]/postgres'))).toBe(true);
  });

  test('contains no secret in debugger streams and files', () => {
    const files = mesh.traceFiles.map((file) => readFileSync(file, 'utf8'));
    expect(files).toHaveLength(2);
    for (const text of [...files, ...viewers.map((viewer) => viewer.text)]) {
      expect(text.length).toBeGreaterThan(10_000);
      expect(foundSecrets(text)).toEqual([]);
    }
    // Checks that the search finds secrets.
    expect(foundSecrets(JSON.stringify({ x: `${env.API_TOKEN} ${ownKey}` })).length).toBeGreaterThanOrEqual(3);
  });

  test('contains no debugger token in traces and logs', () => {
    const token = readDebuggerToken(port)!;
    const texts = [...mesh.traceFiles.map((file) => readFileSync(file, 'utf8')), mesh.gateway!.program.output()];
    for (const text of texts) expect(text).not.toContain(token);
  });

  test('contains no secret in the agent’s log, and no key in Envoy’s debug log', () => {
    // Envoy logs client input to the same file.
    const isEnvoyLine = (line: string): boolean => line.includes('\tenvoy\t');
    const ownLines = mesh.gateway!.program.lines.filter((line) => !isEnvoyLine(line)).join('\n');
    expect(foundSecrets(ownLines)).toEqual([]);
    const keys = foundSecrets(mesh.gateway!.program.output()).filter((description) =>
      /^(line|the number) /.test(description),
    );
    expect(keys).toEqual([]);
  });

  test('sends a debugger all records of the trace file, and does not wait for debuggers on SIGTERM', async () => {
    const { program, traceFile } = mesh.gateway!;
    await program.stop();
    const exitedAt = Date.now();
    await eventually('the answer is over', () => viewers[0]!.isWhole !== undefined);
    expect(viewers[0]!.isWhole).toBe(true);
    const [header, ...records] = linesOf(readFileSync(traceFile, 'utf8'));
    expect(viewers[0]!.lines).toEqual([header, ...records]);
    const last = records.at(-1) as TraceRecord;
    expect(last).toMatchObject({ kind: 'stop', actor: 'agent', status: 'done' });
    const endedAt = header?.kind === 'header' ? Date.parse(header.startedAt) + last.t : 0;
    expect(exitedAt - endedAt).toBeLessThan(sized({ short: 10_000, full: 1_000 }));
    expect(readDebuggerToken(port)).toBeUndefined();
  });
});

describe('the trace stream of a running agent', () => {
  let mesh: Mesh;
  let port: number;
  let authorization: string;
  const external = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address;

  beforeAll(async () => {
    mesh = await startMesh({ sidecar: false, drainMs: 1_000, parentShutdownMs: 2_000 });
    port = mesh.gateway!.statusPort;
    authorization = `Bearer ${readDebuggerToken(port)}`;
  });

  afterAll(() => conclude(mesh));

  test.each([
    ['no token', {}, 401, /Authorization: Bearer/],
    ['a wrong token', { authorization: `Bearer ${random()}` }, 401, /debugger-\d+\.token/],
    ['a foreign name of this host', { host: 'evil.example' }, 403, /names localhost/],
    ['a page of another web site', { origin: 'https://evil.example' }, 403, /web site/],
    ['an element of another web site', { 'sec-fetch-site': 'cross-site' }, 403, /web site/],
  ])('rejects %s', async (_, headers, status, reason) => {
    const otherHeaders: Record<string, string> = status === 403 ? { authorization } : {};
    const [responseStatus, text] = await responseTo(port, { ...otherHeaders, ...(headers as Record<string, string>) });
    expect([responseStatus, text]).toEqual([status, expect.stringMatching(reason)]);
    expect(text).not.toContain(authorization.slice(7));
  });

  test('rejects connections at other addresses than loopback even with the right token', async () => {
    expect(external, 'this host has no address but loopback: nothing can be shown').toBeDefined();
    const headers = { authorization, host: `localhost:${port}` };
    const [status, text] = await responseTo(port, headers, { host: external! });
    expect([status, text]).toEqual([403, expect.stringContaining('from this host only, at a loopback address')]);
    // The port is open at this address, too, for readiness probes.
    expect((await responseTo(port, {}, { host: external!, path: '/healthz/ready' }))[0]).toBe(200);
  });

  test('continues for its readers while stalled readers are disconnected', async () => {
    await failHealthCheck(mesh.gateway!);
    const pids = [process.pid, mesh.gateway!.program.pid];
    const aloneMs = await readinessTookMs(pids, port);
    const stuckViewers = await Promise.all(Array.from({ length: 3 }, () => stuckViewer(port, authorization)));
    const viewer = await Viewer.attach(port);
    expect((await responseTo(port, { authorization }))[0]).toBe(503);
    expect(await readinessTookMs(pids, port)).toBeLessThan(2 * aloneMs + 2);

    await eventually(
      'the stuck ones are cut off',
      async () => {
        // One at a time: concurrent requests share one probe and its records.
        await readinessMs(port, 400, 1);
        return (await responseTo(port, { authorization }, { path: '/debug/trace?follow=false' }))[0] === 200;
      },
      // Some thousand readiness calls take seconds of CPU time, on a CPU that may be shared.
      { deadlineMs: 240_000, everyMs: 0 },
    );
    // On a busy machine, stalled readers time out before they lag too far behind.
    const last = await eventually(
      'somebody who reads has heard more than is kept',
      async () => {
        await readinessMs(port, 400, 1);
        const lastRecord = viewer.lines.at(-1) as TraceRecord;
        return lastRecord.seq > 20_000 && lastRecord;
      },
      { deadlineMs: 240_000, everyMs: 0 },
    );
    expect(viewer.isWhole).toBeUndefined();
    expect(viewer.lines.length).toBe(last.seq + 1);
    for (const socket of stuckViewers) socket.destroy();
  });

  test("does not delay the agent's exit if a reader stalls", async () => {
    const { program, traceFile } = mesh.gateway!;
    const stuckClient = await stuckViewer(port, authorization);
    await failHealthCheck(mesh.gateway!);
    // Exceeds the buffers of the connection and the pending batch.
    await readinessMs(port, 500);
    await program.stop();
    const exitedAt = Date.now();
    const [header, ...records] = linesOf(readFileSync(traceFile, 'utf8'));
    const endedAt = header?.kind === 'header' ? Date.parse(header.startedAt) + (records.at(-1) as TraceRecord).t : 0;
    // Without a limit, the agent would wait for a stalled reader forever.
    expect(exitedAt - endedAt).toBeLessThan(sized({ short: 10_000, full: 1_500 }));
    stuckClient.destroy();
  });
});

/** Makes each later readiness call probe Envoy and appear in the trace, unlike those of a ready proxy. */
async function failHealthCheck({ adminPort, statusPort }: AgentProgram): Promise<void> {
  await fetch(`http://127.0.0.1:${adminPort}/healthcheck/fail`, { method: 'POST' });
  await eventually(
    'the agent is not ready',
    async () => (await fetch(`http://127.0.0.1:${statusPort}/healthz/ready`)).status === 503,
  );
}

/** Returns the median of five rounds: processor time of these processes for one of 100 consecutive calls, independent of the machine's load. */
async function readinessTookMs(pids: readonly number[], port: number): Promise<number> {
  const rounds: number[] = [];
  for (let i = 0; i < 5; i++) rounds.push((await msWithoutQueueing(pids, () => readinessMs(port, 100, 1))) / 100);
  return rounds.sort((a, b) => a - b)[2]!;
}

/** Returns the median duration of a readiness call of a proxy that is not ready. */
async function readinessMs(port: number, count: number, callers = 8): Promise<number> {
  const times: number[] = [];
  const caller = async (): Promise<void> => {
    while (times.length < count) {
      const start = performance.now();
      const response = await fetch(`http://127.0.0.1:${port}/healthz/ready`);
      await response.text();
      expect(response.status).toBe(503);
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!;
}
