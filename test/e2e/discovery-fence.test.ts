/** pilot-discovery survives any input of unauthenticated clients and uncaught errors, and reports them. */

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { linesOf } from '../harness/logged-line.ts';
import { Program } from '../harness/program.ts';

let root: string;
let http: number;
let monitoring: number;
let discovery: Program;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-fence-'));
  [http, monitoring] = (await freePorts(2)) as [number, number];
});

afterEach(async () => {
  await discovery.stop({ signal: 'SIGKILL' });
  rmSync(root, { recursive: true, force: true });
});

/** @param planted code that runs in the program before its start */
function start(planted: string): void {
  const file = join(root, 'planted.mjs');
  writeFileSync(file, planted);
  discovery = Program.start('pilot-discovery', {
    args: [
      ...['discovery', '--registries=', '--grpcAddr', '127.0.0.1:0'],
      ...['--httpAddr', `127.0.0.1:${http}`, '--monitoringAddr', `127.0.0.1:${monitoring}`],
    ],
    env: { ...process.env, NODE_OPTIONS: `--import=${pathToFileURL(file).href}` },
    cwd: root,
  });
}

async function isReady(): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${monitoring}/ready`).catch(() => undefined);
  return response?.status === 200;
}

async function requestTarget(port: number, target: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  let response = '';
  socket.on('data', (chunk: Buffer) => {
    response += chunk.toString('latin1');
  });
  await once(socket, 'close');
  return response.split('\r\n', 1)[0]!;
}

test('pilot-discovery responds to requests with invalid targets on both HTTP ports', async () => {
  start('');
  await eventually('it is ready', isReady, { hopeless: () => discovery.hopeless() });
  for (const port of [http, monitoring]) {
    expect(await requestTarget(port, '//')).toBe('HTTP/1.1 404 Not Found');
    expect(await requestTarget(port, 'http://[/')).toBe('HTTP/1.1 400 Bad Request');
  }
  expect(await isReady()).toBe(true);
});

test('pilot-discovery logs and counts uncaught errors with their stack and continues', async () => {
  start(`process.on('SIGUSR2', () => {
    setImmediate(() => { throw new Error('a planted exception'); });
    void Promise.reject(new Error('a planted rejection'));
  });`);
  await eventually('it is ready', isReady, { hopeless: () => discovery.hopeless() });
  process.kill(discovery.pid, 'SIGUSR2');
  await eventually('both are counted', async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${monitoring}/metrics`)).text();
    return metrics.match(/^pilot_uncaught_errors_total\{.*cost="nothing"\} 1$/gm)?.length === 2;
  });
  expect(await isReady()).toBe(true);
  expect(linesOf(discovery.lines, 'fault.uncaught', { error: /a planted exception.*planted\.mjs/ })).toHaveLength(1);
  expect(linesOf(discovery.lines, 'fault.uncaught', { error: /a planted rejection.*planted\.mjs/ })).toHaveLength(1);
});

test('pilot-discovery exits with its message on an uncaught error during the start', async () => {
  // No port opens, so the start never completes.
  start(`import { Server } from 'node:net';
  Server.prototype.listen = function () { return this; };
  const timer = setInterval(() => {
    if (process.listenerCount('uncaughtException') === 0) return;
    clearInterval(timer);
    throw new Error('a planted exception');
  });`);
  expect(await discovery.exited).toMatchObject({ code: 1 });
  expect(discovery.output()).toMatch(/pilot-discovery: Error: a planted exception/);
});
