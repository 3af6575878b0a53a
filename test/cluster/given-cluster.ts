/** The cluster of a test file: the run's shared API server, or a separate one. */
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, inject } from 'vitest';
import { type RunningApiServer, startApiServer } from './api-server-process.ts';
import { Cluster } from './cluster.ts';
import type { ClusterResponse } from './global-setup.ts';

/** Provides a cluster. Call it at the top level of a file; the cluster is available when the tests run. */
export function givenCluster(): Cluster {
  const cluster = new Cluster();
  beforeAll(() => beginInRun(cluster), 1_800_000);
  afterAll(() => cluster.end());
  return cluster;
}

/** An API server that only this file uses and may kill, with a namespace in it. */
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

/** The run's server is kept while a client is connected. */
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
