/** For tests beside the agent's files: the real Envoy, with ports, folders and base ids of its own for each test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '../../runtime/log.ts';
import { AdminInterfaces } from '../admin-interfaces.ts';
import type { EnvoyFlags } from '../envoy-args.ts';
import { findEnvoy } from '../envoy-binary.ts';
import type { ScratchParent } from '../scratch-folder.ts';

/** The Envoy that `npm run envoy` found or installed. */
export function envoyBinary(): string {
  const found = findEnvoy({ env: process.env });
  if (found === undefined) throw new Error('no Envoy: run `npm run envoy` first');
  return found.path;
}

export const testFlags: EnvoyFlags = {
  drainMs: 1_000,
  parentShutdownMs: 2_000,
  ipVersion: 'v4',
  logLevel: 'info',
  componentLogLevel: '',
  concurrency: 1,
  configOverride: '',
};

/** A folder that is removed when the test's scope ends. */
export function temporaryFolder(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), 'chartpilot-agent-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A place for files that live for a moment. */
export function temporaryScratch(): ScratchParent[] {
  return [{ path: tmpdir(), flag: '--runDir' }];
}

/** A port that nobody listens on at loopback, below the range of outgoing connections. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 20_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (free) {
      await new Promise((resolve) => server.close(resolve));
      return port;
    }
  }
}

/** Admin interfaces at loopback that say nothing of their moves. */
export function adminInterfaces(port: number, sparePort = 0): AdminInterfaces {
  return new AdminInterfaces({ host: '127.0.0.1', port, sparePort, log: silentLogger });
}

/** An Envoy with an admin interface and nothing else. */
export function writeAdminOnlyBootstrap(folder: string, adminPort: number): string {
  const file = join(folder, 'admin-only.json');
  const address = { socket_address: { address: '127.0.0.1', port_value: adminPort } };
  writeFileSync(file, JSON.stringify({ admin: { address }, node: { id: 'test', cluster: 'test' } }));
  return file;
}
