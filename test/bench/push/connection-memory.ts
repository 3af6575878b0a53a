/**
 * Resident memory of a control plane while it serves streams, with and without TLS, and after all of them have
 * disconnected.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAuthority } from '../../certs/authority.ts';
import { freePorts } from '../../harness/free-ports.ts';
import { Inspector } from '../../harness/inspector.ts';
import type { ClientTls } from '../../sidecars/http2-stream.ts';
import type { XdsProtocol } from '../../sidecars/xds-types.ts';
import { memoryOf } from '../memory-usage.ts';
import type { Programs } from '../programs.ts';
import { medianOf } from '../statistics.ts';
import { collectedMemory } from './collected-memory.ts';
import { Crowd } from './crowd.ts';
import { BenchMesh, endpointsPerService } from './mesh-files.ts';
import { nextMark } from './push-run.ts';
import { startPilot, waitForPort } from './servers.ts';

export interface ConnectionMemoryPlan {
  readonly services: number;
  readonly streams: number;
  readonly hasTls: boolean;
  readonly protocol: XdsProtocol;
  /** Replaces bin/pilot-discovery. */
  readonly pilot?: string | undefined;
}

/** Resident memory in MiB. No garbage collection is forced before the figures of `served` and `disconnected`. */
export interface ConnectionMemory {
  /** Median of samples after changes. */
  readonly servedMib: number;
  readonly peakMib: number;
  /** Live objects on the heap and live buffers outside of it, at the time of `served`. */
  readonly heapMib: number;
  readonly buffersMib: number;
  readonly disconnectedMib: number;
  /** Live heap and resident memory after `disconnected` and a forced garbage collection. */
  readonly restHeapMib: number;
  readonly restMib: number;
}

/** Changes of an endpoint and a route, alternately. */
const changes = 6;
const samples = 10;
const sampleEveryMs = 1_000;
/** Time limit for a server to release the memory of disconnected clients. */
const releaseMs = 30_000;
const serverName = 'istiod.istio-system.svc';

export async function measureConnectionMemory(
  programs: Programs,
  { services, streams, hasTls, protocol, pilot }: ConnectionMemoryPlan,
): Promise<ConnectionMemory> {
  const root = join(programs.root, `memory-${nextMark()}`);
  const mesh = new BenchMesh(root, { services, endpoints: endpointsPerService, flavor: 'istio' });
  const [inspectorPort, securePort] = await freePorts(2);
  const { tls, args } = certificatesIn(root, securePort!);
  const server = await startPilot(programs, mesh, {
    debounce: '100ms',
    executable: pilot,
    args: hasTls ? args : [],
    env: { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` },
  });
  await waitForPort(server);
  const port = hasTls ? securePort! : server.port;
  const crowd = new Crowd(programs, port, { protocol, reconnects: false, ...(hasTls && { tls }) });
  await crowd.grow(streams);
  for (let change = 0; change < changes; change++) {
    await crowd.acknowledge(server, change % 2 === 0 ? 'endpoint' : 'route', nextMark());
  }
  const served: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    await sleep(sampleEveryMs);
    served.push(memoryOf(server.pid).rssMib);
  }
  const { peakMib } = memoryOf(server.pid);
  const inspector = await Inspector.attach(inspectorPort!);
  // Production has no forced collections, so measurements precede this one, which only determines live memory.
  const usage = async (): Promise<{ usedSize: number; backingStorageSize: number }> =>
    (await inspector.call('Runtime.getHeapUsage')) as { usedSize: number; backingStorageSize: number };
  const { usedSize, backingStorageSize } = await usage();
  await crowd.end();
  await sleep(releaseMs);
  const disconnectedMib = memoryOf(server.pid).rssMib;
  const rest = await collectedMemory(server.pid, inspector);
  inspector.close();
  await server.stop();
  const mib = (bytes: number): number => bytes / 1024 ** 2;
  return {
    servedMib: medianOf(served),
    peakMib,
    heapMib: mib(usedSize),
    buffersMib: mib(backingStorageSize),
    disconnectedMib,
    restHeapMib: rest.heapMib,
    restMib: rest.rssMib,
  };
}

function certificatesIn(root: string, port: number): { tls: ClientTls; args: string[] } {
  const authority = createAuthority();
  const server = authority.issue([serverName]);
  const client = authority.issue(['spiffe://cluster.local/ns/default/sa/default']);
  const file = (name: string, text: string): string => {
    const path = join(root, name);
    writeFileSync(path, text);
    return path;
  };
  return {
    tls: {
      ca: authority.certificate,
      serverName,
      certificate: { chain: client.certificate, key: client.privateKey },
    },
    args: [
      ...['--secureGRPCAddr', `127.0.0.1:${port}`, '--caCertFile', file('ca.pem', authority.certificate)],
      ...['--tlsCertFile', file('cert.pem', server.certificate), '--tlsKeyFile', file('key.pem', server.privateKey)],
    ],
  };
}
