/**
 * Make before break: constant requests and connections through real Envoys, at some distance from the control plane, while files
 * change what routes lead to. Without the mechanism the same changes fail requests, in the same run.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import type { LoadReport, NameReport } from '../load/report.ts';
import { type ChangeKind, changeKinds } from './changes-without-loss/change-kinds.ts';
import { ChangingMesh, type ChangingMeshOptions, type Proxy } from './changes-without-loss/changing-mesh.ts';
import { sendRequest } from './features/harness/requests.ts';

const both = [false, true];
const types = ['gateway', 'sidecar'] as const;

/** Each type and protocol, and each distance; in the short form not each with each. */
const proxies = sized<Proxy[]>({
  short: [
    { type: 'gateway', delta: false, roundTripMs: 20 },
    { type: 'gateway', delta: true, roundTripMs: 50 },
    { type: 'sidecar', delta: false, roundTripMs: 50 },
    { type: 'sidecar', delta: true, roundTripMs: 0 },
  ],
  full: [0, 20, 50].flatMap((roundTripMs) =>
    types.flatMap((type) => both.map((delta) => ({ type, delta, roundTripMs }))),
  ),
});

/** What has to come together, at least. */
const least = sized({
  short: { changes: 40, requests: 1_000, connections: 200 },
  full: { changes: 400, requests: 100_000, connections: 20_000 },
});

/** At length a busy machine needs more than ten minutes. */
const longestMs = sized({ short: 600_000, full: 3_000_000 });

const running: ChangingMesh[] = [];

afterEach(async () => {
  for (const mesh of running.splice(0)) await mesh.stop();
});

async function start(options: ChangingMeshOptions): Promise<ChangingMesh> {
  const mesh = await ChangingMesh.start(options);
  running.push(mesh);
  return mesh;
}

/** What failed, with the reasons, and nothing else: readable when it is not empty. */
function failuresOf({ byName }: LoadReport): Record<string, string> {
  const failed = Object.entries(byName).filter(([, counts]) => counts.failed > 0);
  return Object.fromEntries(
    failed.map(([name, counts]) => [name, `${counts.failed} of ${counts.total}: ${JSON.stringify(counts.reasons)}`]),
  );
}

const namesOf = ({ traffic = 'http' }: ChangeKind): 'requests' | 'connections' =>
  traffic === 'http' ? 'requests' : 'connections';

/** How much of each there was, and of that how much failed. */
function totals({ byName }: LoadReport): Record<'requests' | 'connections', { total: number; failed: number }> {
  const sum = { requests: { total: 0, failed: 0 }, connections: { total: 0, failed: 0 } };
  for (const [name, counts] of Object.entries(byName)) {
    const into = sum[namesOf(kindOf(name))];
    into.total += counts.total;
    into.failed += counts.failed;
  }
  return sum;
}

const kindOf = (name: string): ChangeKind => changeKinds.find((kind) => name.startsWith(`${kind.name} at `))!;

const totalOf = ({ byName }: LoadReport, kind: string): number =>
  Object.entries<NameReport>(byName)
    .filter(([name]) => kindOf(name).name === kind)
    .reduce((sum, [, { total }]) => sum + total, 0);

/** The status of the first response of a listener, which is asked as soon as it accepts connections. */
async function firstResponse(port: number, host: string): Promise<number> {
  return eventually(
    `port ${port} accepts connections`,
    async () => (await sendRequest({ port, host, patienceMs: 0 })).status,
    {
      everyMs: 2,
    },
  );
}

test(
  'changes of routes to new clusters fail no request and close no connection',
  async () => {
    const mesh = await start({ kinds: changeKinds, proxies });
    const simulated = mesh.simulate(sized({ short: 3, full: 50 }));
    const load = await mesh.startLoad({ pauseMs: sized({ short: 50, full: 150 }), maxDurationMs: longestMs });
    let changes = 0;

    // One by one, each applied by all before the next one; in the short form in one push.
    if (sized({ short: true, full: false })) {
      await mesh.changeAll();
      changes += changeKinds.length;
    }
    const alone = sized({ short: 0, full: 4 * changeKinds.length });
    for (let index = 0; index < alone; index++, changes++) await mesh.change(changeKinds[index % changeKinds.length]!);

    // A listener with its routes and their cluster: what is asked first is served.
    for (let index = 0; index < sized({ short: 1, full: 5 }); index++, changes++) {
      const ports = await mesh.addServers(`added-${index}`);
      const first = await Promise.all(ports.map((port) => firstResponse(port, `added-${index}.servers.test`)));
      expect(first).toEqual(ports.map(() => 200));
    }

    // Ten a second, as long as it takes.
    for (let index = 0; ; index++, changes++) {
      if (changes >= least.changes) {
        const { requests, connections } = totals(await load.report());
        if (requests.total >= least.requests && connections.total >= least.connections) break;
      }
      mesh.write(changeKinds[index % changeKinds.length]!);
      await sleep(100);
    }
    await mesh.settle();

    const report = await load.stop();
    const { requests, connections } = totals(report);
    console.log(
      `${changes} changes, ${requests.total} requests, ${connections.total} connections: ${report.failed} failed`,
    );
    expect(failuresOf(report)).toEqual({});
    if (sized({ short: false, full: true })) {
      await eventually(
        'clusters of earlier generations are removed',
        async () => (await mesh.outdatedClusters()).length === 0,
      );
    }
    await eventually('each mirrored request has arrived', () => mesh.mirrored === totalOf(report, 'mirror'));
    expect(simulated.flatMap(({ violations }) => violations)).toEqual([]);
    expect(Math.min(...simulated.map(({ routes }) => routes))).toBeGreaterThan(1);
  },
  longestMs,
);

test('with the mechanism disabled, the same changes fail requests and close connections', async () => {
  const mesh = await start({
    kinds: changeKinds,
    proxies: types.map((type) => ({ type, delta: type === 'gateway', roundTripMs: 20 })),
    env: { PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: '0' },
  });
  const load = await mesh.startLoad({ pauseMs: 10, maxDurationMs: 600_000 });
  // An outage takes some round trips; a request is in it or not. At length, each kind is waited for.
  const lossy = changeKinds.filter(({ isLossy = true }) => isLossy);
  const expected = sized({ short: ['requests', 'connections'], full: lossy.map(({ name }) => name) });
  const report = await eventually(`these fail: ${expected.join(', ')}`, async () => {
    await mesh.changeAll();
    const seen = await load.report();
    const failed = new Set(Object.keys(failuresOf(seen)).flatMap((name) => [kindOf(name).name, namesOf(kindOf(name))]));
    return expected.every((name) => failed.has(name)) && seen;
  });
  await load.stop();
  console.log(`disabled: ${report.failed} of ${report.total} failed`);
});
