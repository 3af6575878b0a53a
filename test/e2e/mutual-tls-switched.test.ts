/**
 * PeerAuthentication and the TLS mode of a DestinationRule change under constant traffic between sidecars. In the order of
 * docs/changes-without-loss.md no request fails; in one step, requests fail.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { type LoadRun, startLoad } from '../load/load-process.ts';
import type { LoadReport } from '../load/report.ts';
import { BackendsProcess } from './changes-without-loss/backends-process.ts';
import { FeatureMesh } from './features/harness/feature-mesh.ts';
import { joinDocuments } from './features/harness/gateway-objects.ts';
import { destinationRule, object, serviceEntry, virtualService } from './features/harness/objects.ts';

const clients = { near: '127.0.5.1', far: '127.0.5.2' } as const;
const servers = { cart: '127.0.5.3', desk: '127.0.5.4' } as const;
const protocols = ['http', 'tcp'] as const;
const delta = { near: false, far: true, cart: true, desk: false };
const roundTripMs = { near: 0, far: 20, cart: 20, desk: 0 };
const drain = { args: ['--drain-time-s', '5'], metadata: { PROXY_CONFIG: { drainDuration: '5s' } } };

let mesh: FeatureMesh;
let backends: BackendsProcess;
/** Ports of clients and servers. */
let ports: Record<'http' | 'tcp' | 'httpIn' | 'tcpIn', number>;

beforeAll(async () => {
  const names = [...Object.keys(clients), ...Object.keys(servers)] as (keyof typeof delta)[];
  const settings = names.map((name) => {
    const identity = `spiffe://cluster.local/ns/shop/sa/${name}`;
    const { metadata } = drain;
    return [name, { labels: { app: name }, identity, metadata, delta: delta[name], roundTripMs: roundTripMs[name] }];
  });
  mesh = await FeatureMesh.start({
    proxies: Object.fromEntries(settings),
    explains: false,
    envoyArgs: drain.args,
  });
  ports = await mesh.ports('http', 'tcp', 'httpIn', 'tcpIn');
  backends = await BackendsProcess.start(['main'], mesh.authority.issue(['main.test']));
});

afterAll(async () => {
  backends?.close();
  await mesh?.stop();
});

const hostOf = (server: string, protocol: string): string => `${protocol}-${server}.shop.test`;

/** The TCP services share a port, and therefore a server. */
const services = [
  ['cart', 'http'],
  ['desk', 'http'],
  ['cart', 'tcp'],
] as const;

function workloads(): string {
  const listener = (name: 'http' | 'tcp', number: number): object => ({
    port: { number, name, protocol: name.toUpperCase() },
    captureMode: 'NONE',
  });
  const egress = (bind: string): object[] =>
    protocols.map((name) => ({ ...listener(name, ports[name]), bind, hosts: ['./*'] }));
  const ingress = (bind: string): object[] =>
    protocols.map((name) => ({
      ...listener(name, ports[`${name}In`]),
      bind,
      defaultEndpoint: `127.0.0.1:${backends.ports.get('main')!}`,
    }));
  const sidecar = (app: string, spec: object): string =>
    object('networking.istio.io/v1', 'Sidecar', 'shop', app, { workloadSelector: { labels: { app } }, ...spec });
  return joinDocuments(
    ...Object.entries(clients).map(([app, bind]) => sidecar(app, { egress: egress(bind) })),
    ...Object.entries(servers).map(([app, bind]) =>
      sidecar(app, { egress: [{ hosts: ['~/*'] }], ingress: ingress(bind) }),
    ),
    ...services.flatMap(([server, protocol]) => {
      const host = hostOf(server, protocol);
      const endpoint = {
        address: servers[server],
        ports: { main: ports[`${protocol}In`] },
        labels: { app: server, 'security.istio.io/tlsMode': 'istio' },
        serviceAccount: server,
      };
      const entry = serviceEntry(host, {
        port: ports[protocol],
        protocol: protocol.toUpperCase(),
        spec: { endpoints: [endpoint] },
      });
      // A retry would hide a failed request.
      const route = { http: [{ route: [{ destination: { host } }], retries: { attempts: 0 } }] };
      return protocol === 'http' ? [entry, virtualService(host, route)] : [entry];
    }),
  );
}

/** Modes of servers and clients; without a mode, clients use mutual TLS unless servers do not support it. */
interface Step {
  readonly server: 'STRICT' | 'PERMISSIVE' | 'DISABLE';
  readonly client?: 'ISTIO_MUTUAL' | 'DISABLE';
}

function configOf({ server, client }: Step): string {
  const rules = services.map(([name, protocol]) =>
    destinationRule(hostOf(name, protocol), { trafficPolicy: { tls: { mode: client } } }),
  );
  return joinDocuments(
    workloads(),
    object('security.istio.io/v1', 'PeerAuthentication', 'shop', 'default', { mtls: { mode: server } }),
    ...(client === undefined ? [] : rules),
  );
}

function start(): Promise<LoadRun> {
  const plans = Object.entries(clients).flatMap(([client, host]) =>
    services.flatMap(([server, protocol]) => {
      const authority = hostOf(server, protocol);
      const target = { host, port: ports[protocol], authority };
      const kinds = protocol === 'http' ? (['ka', 'new'] as const) : (['tcp'] as const);
      return kinds.map((kind) => ({ kind, count: 1, pauseMs: 20, name: `${kind} ${client} ${authority}`, target }));
    }),
  );
  return startLoad({ target: plans[0]!.target, clients: plans, maxDurationMs: 600_000, requestTimeoutMs: 20_000 });
}

const failuresOf = ({ byName }: LoadReport): object =>
  Object.fromEntries(Object.entries(byName).filter(([, { failed }]) => failed > 0));

/** Applies consecutive steps, each acknowledged by all proxies before the next one. */
async function measure(name: string, steps: readonly Step[], rounds: number): Promise<LoadReport> {
  await mesh.apply(configOf(steps.at(-1)!));
  const load = await start();
  for (let round = 0; round < rounds; round++) {
    for (const step of steps) {
      await mesh.apply(configOf(step));
      const { total } = await load.report();
      await eventually('requests are sent', async () => (await load.report()).total > total + 20);
    }
  }
  const report = await load.stop();
  console.log(`${name}: ${rounds * steps.length} changes, ${report.failed} of ${report.total} failed`);
  return report;
}

const rounds = sized({ short: 2, full: 20 });

test('switching servers between PERMISSIVE and STRICT fails no request of clients that use mutual TLS', async () => {
  const report = await measure('PERMISSIVE, STRICT', [{ server: 'STRICT' }, { server: 'PERMISSIVE' }], rounds);
  expect(failuresOf(report)).toEqual({});
});

test('switching clients and servers one after the other, from plaintext to STRICT and back, fails no request', async () => {
  const steps: Step[] = [
    { server: 'PERMISSIVE', client: 'DISABLE' },
    { server: 'PERMISSIVE', client: 'ISTIO_MUTUAL' },
    { server: 'STRICT', client: 'ISTIO_MUTUAL' },
    { server: 'PERMISSIVE', client: 'ISTIO_MUTUAL' },
    { server: 'PERMISSIVE', client: 'DISABLE' },
    { server: 'DISABLE', client: 'DISABLE' },
  ];
  const report = await measure('DISABLE, PERMISSIVE, STRICT and back', steps, rounds);
  expect(failuresOf(report)).toEqual({});
});

test('switching clients and servers in one step fails requests, because proxies apply the change at different times', async () => {
  const steps: Step[] = [
    { server: 'STRICT', client: 'ISTIO_MUTUAL' },
    { server: 'DISABLE', client: 'DISABLE' },
  ];
  await mesh.apply(configOf(steps[1]!));
  const load = await start();
  const report = await eventually('requests fail', async () => {
    for (const step of steps) await mesh.apply(configOf(step));
    const loadReport = await load.report();
    return loadReport.failed > 0 && loadReport;
  });
  await load.stop();
  console.log(`in one step: ${report.failed} of ${report.total} failed`);
});
