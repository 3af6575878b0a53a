import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSystemError } from '../../src/runtime/errors.ts';
import { isAlive } from './process-alive.ts';

/**
 * Below Linux's range of ports for outgoing connections (net.ipv4.ip_local_port_range begins at 32768): under load a client soon takes a port of that
 * range, and an Envoy that restarts could not bind it.
 */
const range = { from: 12_000, to: 32_000 };
const attempts = 200;
/** A file for each reserved port: tests run in several processes, and an Envoy binds its port late. */
const reservations = join(tmpdir(), `chartpilot-test-ports-${process.getuid?.() ?? 0}`);
const reservedHere = new Set<string>();

/** Finds `count` free TCP ports at loopback. No other test process gets them while this one runs. */
export async function freePorts(count: number): Promise<number[]> {
  const foundPorts: number[] = [];
  for (let attempt = 0; foundPorts.length < count; attempt++) {
    if (attempt > attempts) throw new Error(`no ${count} free ports between ${range.from} and ${range.to}`);
    const port = range.from + Math.floor(Math.random() * (range.to - range.from));
    if (reserve(port) && (await isFree(port))) foundPorts.push(port);
  }
  return foundPorts;
}

/** Whether a listener can be opened on this port at loopback. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/** @returns false if another process has reserved it */
function reserve(port: number): boolean {
  if (reservedHere.size === 0) installCleanup();
  const file = join(reservations, String(port));
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    return false;
  }
  reservedHere.add(file);
  return true;
}

/** Removes the files of killed processes. */
function installCleanup(): void {
  process.once('exit', () => {
    for (const file of reservedHere) rmSync(file, { force: true });
  });
  mkdirSync(reservations, { recursive: true });
  for (const name of readdirSync(reservations)) {
    const file = join(reservations, name);
    const holderPid = holderOf(file);
    if (holderPid !== undefined && !isAlive(holderPid)) rmSync(file, { force: true });
  }
}

/** `undefined` while the file is being written or after it was removed. */
function holderOf(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8')) || undefined;
  } catch {
    return undefined;
  }
}
