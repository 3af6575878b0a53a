/** The cluster of a test file: the shared API server of the run, or one of its own. */
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, inject } from 'vitest';
import { type RunningApiServer, startApiServer } from './api-server-process.ts';
import { Cluster } from './cluster.ts';
import type { ClusterResponse } from './global-setup.ts';

/** Call it at the top level of a file. The cluster is available when the tests run. */
export function givenCluster(): Cluster {
  const cluster = new Cluster();
  beforeAll(() => beginInRun(cluster), 1_800_000);
  afterAll(() => cluster.end());
  return cluster;
}

/** An API server that only this file uses and may kill, with a namespace in it. Call it at the top level of a file. */
export interface OwnServer {
  readonly cluster: Cluster;
  /** Available when the tests run. */
  readonly server: RunningApiServer;
}

/** @param options additional flags of the server */
export function givenOwnServer(options: readonly string[] = []): OwnServer {
  const cluster = new Cluster();
  let server: RunningApiServer;
  beforeAll(async () => {
    server = await startApiServer((line) => console.error(line), options);
    await cluster.begin(server);
  }, 1_800_000);
  afterAll(async () => {
    cluster.end();
    await server.stop();
  });
  return {
    cluster,
    get server() {
      return server;
    },
  };
}

/** The server of the run is kept as long as a client is connected. */
async function beginInRun(cluster: Cluster): Promise<void> {
  const socket = connect(inject('clusterSocket'));
  socket.on('error', () => {});
  for await (const line of createInterface(socket)) {
    const response = JSON.parse(line) as ClusterResponse;
    if ('failed' in response) throw new Error(response.failed);
    await cluster.begin(response.address, () => void socket.destroy());
    return;
  }
  throw new Error('the run has no API server');
}
