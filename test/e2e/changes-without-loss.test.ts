/**
 * Make before break: constant requests and connections through real Envoys with a latency to the control plane, while configuration files change the
 * targets of routes. Without the mechanism, the same changes fail requests in the same run.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { sized } from '../harness/size-of-run.ts';
import type { LoadReport, NameReport } from '../load/report.ts';
import { type ChangeKind, plainKinds } from './changes-without-loss/change-kinds.ts';
import {
  ChangingMesh,
  type ChangingMeshOptions,
  type Proxy,
  requestTimeoutMs,
} from './changes-without-loss/changing-mesh.ts';
import { MeasuredWindows } from './changes-without-loss/measured-windows.ts';
import { reasonInMachine, waitedForProcessorMs } from './changes-without-loss/processor-waits.ts';
import { isOfThisRun, recordedTable, recordPart } from './changes-without-loss/recorded-parts.ts';
import { renamingKinds, switchingKinds } from './changes-without-loss/switching-kinds.ts';
import { warmingKinds } from './changes-without-loss/warming-kinds.ts';
import { sendRequest } from './features/harness/requests.ts';

const bothProtocols = [false, true];
const types = ['gateway', 'sidecar'] as const;
const changeKinds: readonly ChangeKind[] = [
  ...plainKinds,
  ...warmingKinds,
  ...renamingKinds,
  ...sized({ short: [], full: switchingKinds }),
];

/** A run with a separate mesh. All proxies have the same latency, or each has a different one. */
interface RunPart {
  readonly name: string;
  readonly proxies: readonly Proxy[];
  /** Proxies without traffic. */
  readonly simulated: number;
  /** Pause of each client between two requests, in milliseconds. */
  readonly pauseMs: number;
  /** Changes that each proxy applies before the next one starts. */
  readonly alone: number;
  /** Changes that add a listener. */
  readonly servers: number;
  /** Minimum totals. */
  readonly minTotals: { readonly changes: number; readonly requests: number; readonly connections: number };
}

/** The short form covers each type, protocol and latency, but not all combinations. In the long form, a part takes minutes. */
const parts = sized<readonly RunPart[]>({
  short: [
    {
      name: '0, 20 and 50 ms',
      proxies: [
        { type: 'gateway', delta: false, roundTripMs: 20 },
        { type: 'gateway', delta: true, roundTripMs: 50 },
        { type: 'sidecar', delta: false, roundTripMs: 50 },
        { type: 'sidecar', delta: true, roundTripMs: 0 },
      ],
      ...{ simulated: 3, pauseMs: 50, alone: 0, servers: 1 },
      minTotals: { changes: 40, requests: 1_000, connections: 200 },
    },
  ],
  full: [
    ...[0, 20, 50].map((roundTripMs) => ({
      name: `${roundTripMs} ms`,
      proxies: types.flatMap((type) => bothProtocols.map((delta) => ({ type, delta, roundTripMs }))),
      ...{ simulated: 50, pauseMs: 60, alone: changeKinds.length, servers: 2 },
      minTotals: { changes: 134, requests: 34_000, connections: 6_700 },
    })),
    {
      name: '20 ms, one proxy',
      proxies: [{ type: 'gateway', delta: true, roundTripMs: 20 }],
      ...{ simulated: 0, pauseMs: 60, alone: changeKinds.length, servers: 1 },
      minTotals: { changes: 40, requests: 1_000, connections: 200 },
    },
  ],
});

/** A busy machine needs a multiple of a quiet machine's time. */
const maxMs = sized({ short: 600_000, full: 1_500_000 });

const changesOfWindow = 10;

/** Log lines about clusters that a proxy did not warm in time. */
const isGivenUp = loggedLine('clusters.abandoned');

/** Sums over the parts of this run and of earlier recorded runs. */
afterAll(() => console.log(recordedTable()));

const figures = ({ changes, requests, connections, failed }: Record<string, number>): string =>
  `${changes} changes, ${requests} requests, ${connections} connections, ${failed} failed`;

const runningMeshes: ChangingMesh[] = [];

afterEach(async () => {
  for (const mesh of runningMeshes.splice(0)) await mesh.stop();
});

async function start(options: ChangingMeshOptions): Promise<ChangingMesh> {
  const mesh = await ChangingMesh.start({ ...options, hasCertificates: sized({ short: false, full: true }) });
  runningMeshes.push(mesh);
  return mesh;
}

/** Failed requests by name, with the reasons. */
function failuresOf({ byName }: Pick<LoadReport, 'byName'>): Record<string, string> {
  const failedEntries = Object.entries(byName).filter(([, counts]) => counts.failed > 0);
  return Object.fromEntries(
    failedEntries.map(([name, counts]) => [
      name,
      `${counts.failed} of ${counts.total}: ${JSON.stringify(counts.reasons)}`,
    ]),
  );
}

const namesOf = ({ traffic = 'http' }: ChangeKind): 'requests' | 'connections' =>
  traffic === 'http' ? 'requests' : 'connections';

/** Number of requests, connections and changes, and how many of them failed. */
function totals({
  byName,
}: Pick<LoadReport, 'byName'>): Record<'requests' | 'connections', { total: number; failed: number }> {
  const sum = { requests: { total: 0, failed: 0 }, connections: { total: 0, failed: 0 } };
  for (const [name, counts] of Object.entries(byName)) {
    const targetSum = sum[namesOf(kindOf(name))];
    targetSum.total += counts.total;
    targetSum.failed += counts.failed;
  }
  return sum;
}

const kindOf = (name: string): ChangeKind => changeKinds.find((kind) => name.startsWith(`${kind.name} at `))!;

const totalOf = ({ byName }: LoadReport, kind: string): number =>
  Object.entries<NameReport>(byName)
    .filter(([name]) => kindOf(name).name === kind)
    .reduce((sum, [, { total }]) => sum + total, 0);

/** Returns the status of a listener's first response, requested as soon as it accepts connections. */
async function firstResponse(port: number, host: string): Promise<number> {
  return eventually(
    `port ${port} accepts connections`,
    async () => (await sendRequest({ port, host, retryForMs: 0 })).status,
    {
      everyMs: 2,
    },
  );
}

test.each(parts.filter((_, index) => isOfThisRun(index)).map((part) => [part.name, part] as const))(
  'changes of routes to new clusters fail no request and close no connection (%s)',
  async (_name, part) => {
    const { minTotals } = part;
    const mesh = await start({ kinds: changeKinds, proxies: part.proxies });
    const simulated = await mesh.simulate(part.simulated);
    const startedAt = performance.now();
    const load = await mesh.startLoad({ pauseMs: part.pauseMs, maxDurationMs: maxMs });
    const waits = mesh.watchProcessor(load);
    const windows = new MeasuredWindows({
      report: () => load.report(),
      waitedMs: () => waitedForProcessorMs(mesh.mesh.pilot.pid),
      settle: async () => {
        await mesh.settle();
        await sleep(requestTimeoutMs);
      },
      log: (line) => console.log(`${part.name}: ${line}`),
    });

    // All proxies apply each change before the next one; the short form makes all changes in one push.
    if (part.alone === 0) await windows.measure(changeKinds.length, () => mesh.changeAll());
    for (let index = 0; index < part.alone; index++) {
      await windows.measure(1, () => mesh.change(changeKinds[index % changeKinds.length]!));
    }

    // A listener with its routes and their cluster: its first request must succeed.
    for (let index = 0; index < part.servers; index++) {
      let ports: number[] = [];
      await windows.measure(1, async () => {
        ports = await mesh.addServers(`added-${index}-${windows.repeated}`);
        const host = `added-${index}-${windows.repeated}.servers.test`;
        const first = await Promise.all(ports.map((port) => firstResponse(port, host)));
        expect(first).toEqual(ports.map(() => 200));
      });
    }

    // Ten connections a second, then one a second until the part ends: each change costs as much processor time as hundreds of requests.
    for (let index = 0; ; ) {
      const hasChanges = windows.changes >= minTotals.changes;
      if (hasChanges) {
        const { requests, connections } = totals(windows);
        if (requests.total >= minTotals.requests && connections.total >= minTotals.connections) break;
      }
      const count = hasChanges ? 1 : Math.min(changesOfWindow, minTotals.changes - windows.changes);
      await windows.measure(count, async () => {
        for (let createdCount = 0; createdCount < count; createdCount++, index++) {
          mesh.write(changeKinds[index % changeKinds.length]!);
          await sleep(hasChanges ? 1_000 : 100);
        }
      });
    }
    let report = await load.report();
    // Requests can still fail until the last changes are acknowledged.
    await windows.measure(0, async () => {
      await mesh.settle();
      report = await load.stop();
    });
    const { requests, connections } = totals(windows);
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    waits.stop();
    const failedCount = requests.failed + connections.failed;
    const counts = {
      changes: windows.changes,
      requests: requests.total,
      connections: connections.total,
      failed: failedCount,
    };
    const proxies = `${part.proxies.length} Envoys and ${part.simulated} simulated proxies`;
    const notMeasured = `${windows.repeated} windows not measured`;
    // In the long form the next part takes minutes, so results are printed immediately.
    console.log(
      `${part.name}: ${figures(counts)}, ${await mesh.abandonedClusters()} clusters given up, ${notMeasured}, ${seconds} s, ${proxies}`,
    );
    recordPart({ part: part.name, ...counts, notMeasured: windows.repeated, seconds });
    if (failedCount > 0) {
      const givenUpLines = mesh.mesh.pilot.lines.filter((line) => isGivenUp.test(line));
      console.log(failuresOf(windows), givenUpLines, reasonInMachine(windows, waits));
    }
    expect(failuresOf(windows)).toEqual({});
    if (sized({ short: false, full: true })) {
      await eventually(
        'clusters of earlier generations are removed',
        async () => (await mesh.outdatedClusters()).length === 0,
      );
    }
    await eventually(
      'each mirrored request has arrived',
      async () => (await mesh.mirrored()) === totalOf(report, 'mirror'),
    );
    expect(simulated.flatMap(({ violations }) => violations)).toEqual([]);
    for (const { routes } of simulated) expect(routes).toBeGreaterThan(1);
  },
  maxMs,
);

test.runIf(isOfThisRun(parts.length))(
  'changes of routes to new clusters fail requests and close connections if make before break is disabled',
  async () => {
    const mesh = await start({
      kinds: changeKinds,
      proxies: types.map((type) => ({ type, delta: type === 'gateway', roundTripMs: 20 })),
      env: { PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: '0' },
    });
    const load = await mesh.startLoad({ pauseMs: 10, maxDurationMs: 600_000 });
    // An outage lasts for a few round trips, so requests might miss it. The long form waits for a failure of each kind.
    const lossy = changeKinds.filter(({ isLossy = true }) => isLossy);
    const expected = sized({ short: ['requests', 'connections'], full: lossy.map(({ name }) => name) });
    const report = await eventually(`these fail: ${expected.join(', ')}`, async () => {
      await mesh.changeAll();
      const loadReport = await load.report();
      const failedNames = new Set(
        Object.keys(failuresOf(loadReport)).flatMap((name) => [kindOf(name).name, namesOf(kindOf(name))]),
      );
      return expected.every((name) => failedNames.has(name)) && loadReport;
    });
    await load.stop();
    const { requests, connections } = totals(report);
    const failedText = `${requests.failed} of ${requests.total} requests and ${connections.failed} of ${connections.total} connections failed`;
    console.log(`20 ms, mechanism disabled: ${failedText}`);
  },
);
