/**
 * One API server for all files of a run. It starts at the first file's request, and stops soon after the last one: a file keeps a connection open
 * while it needs the server.
 */

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { messageOf } from '../../src/runtime/errors.ts';
import { type ApiServerAddress, type RunningApiServer, startApiServer } from './api-server-process.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A socket that sends the server's address, or the reason of a failure. */
    readonly clusterSocket: string;
  }
}

/** Response to a file. */
export type ClusterResponse = { readonly address: ApiServerAddress } | { readonly failed: string };

/** Maximum time in milliseconds until the next file of the run connects; restarting the server takes five seconds. */
const lingerMs = 1_500;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'cp-cluster-'));
  const path = join(folder, 'socket');
  const keeper = new ServerKeeper();
  const listener = createServer((socket) => void keeper.serve(socket));
  listener.listen(path);
  await once(listener, 'listening');
  project.provide('clusterSocket', path);
  return async () => {
    listener.close();
    await keeper.end();
    rmSync(folder, { recursive: true, force: true });
  };
}

class ServerKeeper {
  #runningServer: Promise<RunningApiServer> | undefined;
  readonly #users = new Set<Socket>();
  #lingerTimer: NodeJS.Timeout | undefined;

  async serve(socket: Socket): Promise<void> {
    clearTimeout(this.#lingerTimer);
    this.#users.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      this.#users.delete(socket);
      if (this.#users.size === 0) this.#lingerTimer = setTimeout(() => void this.end(), lingerMs);
    });
    // Without reading, the close of the connection would go unnoticed.
    socket.resume();
    this.#runningServer ??= startApiServer((line) => console.error(line));
    const response = await this.#runningServer.then(addressOf, (error: unknown) => ({ failed: messageOf(error) }));
    socket.write(`${JSON.stringify(response)}\n`);
  }

  async end(): Promise<void> {
    clearTimeout(this.#lingerTimer);
    const runningServer = this.#runningServer;
    this.#runningServer = undefined;
    await runningServer?.then(
      (server) => server.stop(),
      () => {},
    );
  }
}

function addressOf({ url, ca, adminToken, folder }: RunningApiServer): ClusterResponse {
  return { address: { url, ca, adminToken, folder } };
}
