/** Cost of make before break: memory of a connection and CPU time of changes, with and without it. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../harness/free-ports.ts';
import { Inspector } from '../../harness/inspector.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import type { XdsProtocol } from '../../sidecars/xds-types.ts';
import { cpuTimeMs } from '../cpu-time.ts';
import type { Programs } from '../programs.ts';
import { medianOf } from '../statistics.ts';
import { collectedMemory } from './collected-memory.ts';
import { BenchMesh, endpointsPerService } from './mesh-files.ts';
import { changeOnce, kindOfChange, nextMark, settleMs } from './push-run.ts';
import { type PushServer, startPilot, waitForPort } from './servers.ts';

export interface RolloutCostPlan {
  readonly services: number;
  readonly sidecars: number;
  readonly protocol: XdsProtocol;
  /** Number of measured changes of each type, after one unmeasured change. */
  readonly changes: number;
  readonly isEnabled: boolean;
}

export interface RolloutCost {
  /** Heap and buffers of a connection in bytes, when idle after changes. */
  readonly connectionBytes: number;
  /** Median CPU time of the control plane for a change until it is idle, in milliseconds. */
  readonly cpuMs: { readonly endpoint: number; readonly route: number; readonly newCluster: number };
  /** Median time from a change without new clusters until the last sidecar has acknowledged it, in milliseconds. */
  readonly ackMs: { readonly endpoint: number; readonly route: number };
}

/** Baseline number of connections. */
const fewSidecars = 100;
/** How long removed clusters are kept. After that, no state of a change remains. */
const removalDelayMs = 500;

export async function measureRolloutCost(programs: Programs, plan: RolloutCostPlan): Promise<RolloutCost> {
  const { services, sidecars, protocol, changes, isEnabled } = plan;
  const mesh = new BenchMesh(join(programs.root, `mesh-${nextMark()}`), {
    services,
    endpoints: endpointsPerService,
    flavor: 'istio',
  });
  const [inspectorPort] = await freePorts(1);
  const server = await startPilot(programs, mesh, {
    debounce: '1ms',
    // The debugger's records are limited per process and do not belong to a connection.
    args: ['--debugger', 'off'],
    env: {
      NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}`,
      PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: isEnabled ? '5s' : '0',
      PILOT_XDS_CLUSTER_REMOVAL_DELAY: `${removalDelayMs}ms`,
    },
  });
  await waitForPort(server);
  const inspector = await Inspector.attach(inspectorPort!);
  const smallFleet = await joinFleet(programs, server, { protocol, sidecars: fewSidecars });
  const change = new Changes(mesh, server);
  for (let i = 0; i < 3; i++) await change.measureAll(smallFleet);
  const initial = await readMemory(server, inspector);
  const largeFleet = await joinFleet(programs, server, { protocol, sidecars, firstNumber: fewSidecars });
  await change.measureAll(largeFleet);
  const cpuMs = { endpoint: [] as number[], route: [] as number[], newCluster: [] as number[] };
  const ackMs = { endpoint: [] as number[], route: [] as number[] };
  for (let i = 0; i < changes; i++) {
    for (const kind of ['endpoint', 'route'] as const) {
      const sample = await changeOnce(server, largeFleet, kind);
      cpuMs[kind].push(sample.cpuMs);
      ackMs[kind].push(sample.ackMs);
    }
    cpuMs.newCluster.push(await change.newCluster(largeFleet));
  }
  const memoryAfter = await readMemory(server, inspector);
  inspector.close();
  await Promise.all([smallFleet.end(), largeFleet.end()]);
  await server.stop();
  return {
    connectionBytes: (memoryAfter - initial) / sidecars,
    cpuMs: { endpoint: medianOf(cpuMs.endpoint), route: medianOf(cpuMs.route), newCluster: medianOf(cpuMs.newCluster) },
    ackMs: { endpoint: medianOf(ackMs.endpoint), route: medianOf(ackMs.route) },
  };
}

async function joinFleet(
  programs: Programs,
  { port }: PushServer,
  plan: { protocol: XdsProtocol; sidecars: number; firstNumber?: number },
): Promise<FleetProcess> {
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await fleet.open({ port, ...plan });
  await sleep(settleMs);
  return fleet;
}

async function readMemory(server: PushServer, inspector: Inspector): Promise<number> {
  const { objectsMib, buffersMib } = await collectedMemory(server.pid, inspector);
  return (objectsMib + buffersMib) * 1024 ** 2;
}

class Changes {
  readonly #mesh: BenchMesh;
  readonly #server: PushServer;
  #generation = 0;

  constructor(mesh: BenchMesh, server: PushServer) {
    this.#mesh = mesh;
    this.#server = server;
  }

  async measureAll(fleet: FleetProcess): Promise<void> {
    for (const kind of ['endpoint', 'route', 'rule'] as const) await changeOnce(this.#server, fleet, kind);
    await this.newCluster(fleet);
  }

  /** Replaces a subset and routes to the new one. @returns CPU time until the old subset is removed */
  async newCluster(fleet: FleetProcess): Promise<number> {
    const mark = nextMark();
    const initial = cpuTimeMs(this.#server.pid);
    await fleet.acknowledge({ kind: kindOfChange.route, mark }, () =>
      writeFileSync(join(this.#mesh.configDirectory, 'subsets.yaml'), subsetReplaced(this.#generation++, mark)),
    );
    await sleep(settleMs + 4 * removalDelayMs);
    return cpuTimeMs(this.#server.pid) - initial;
  }
}

const subsetReplaced = (generation: number, mark: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: subsets, namespace: default}
spec:
  hosts: [subsets.default.svc.cluster.local]
  addresses: [10.251.0.1]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  location: MESH_INTERNAL
  resolution: STATIC
  endpoints: [{address: 10.252.0.1, labels: {version: main}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: subsets, namespace: default}
spec:
  host: subsets.default.svc.cluster.local
  subsets: [{name: s${generation}, labels: {version: main}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: subsets, namespace: default}
spec:
  hosts: [subsets.default.svc.cluster.local]
  http:
  - match: [{headers: {x-mark: {exact: "${mark}"}}}]
    route: [{destination: {host: subsets.default.svc.cluster.local, subset: s${generation}}}]
`;
