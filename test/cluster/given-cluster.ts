/** The cluster of a test file: the run's API server, or one of the file's own. */
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, inject } from 'vitest';
import { type RunningApiServer, startApiServer } from './api-server-process.ts';
import { Cluster } from './cluster.ts';
import type { ClusterAnswer } from './global-setup.ts';

/** Call it at the top of a file. Its results are available once the file's tests run. */
export function givenCluster(): Cluster {
  const cluster = new Cluster();
  beforeAll(() => beginInRun(cluster), 1_800_000);
  afterAll(() => cluster.end());
  return cluster;
}

/** The file's own API server, which may be killed, with a namespace in it. Call it at the top of a file, too. */
export interface OwnServer {
  readonly cluster: Cluster;
  /** Once the file's tests run. */
  readonly server: RunningApiServer;
}

/** @param options for the server, beside the usual ones */
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

/** The run's server stays as long as a client is connected. */
async function beginInRun(cluster: Cluster): Promise<void> {
  const socket = connect(inject('clusterSocket'));
  socket.on('error', () => {});
  for await (const line of createInterface(socket)) {
    const answer = JSON.parse(line) as ClusterAnswer;
    if ('failed' in answer) throw new Error(answer.failed);
    await cluster.begin(answer.address, () => void socket.destroy());
    return;
  }
  throw new Error('the run has no API server');
}
