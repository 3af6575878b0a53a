/**
 * What answers a redirected outbound connection in each `outboundTrafficPolicy`: real iptables, a real Envoy, servers that
 * send first and servers that wait for the client, over IPv4 and IPv6 (spec/discovery.md §8.4).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { adsBootstrap } from '../harness/ads-bootstrap.ts';
import { eventually } from '../harness/eventually.ts';
import { requireIptables } from '../harness/iptables.ts';
import { addresses, type Destination, type NetworkSide, PodNetwork } from '../harness/pod-network.ts';
import { Program } from '../harness/program.ts';
import { pilotDiscovery, programFile } from '../harness/program-files.ts';

/** Never redirected. A group and not a user, which could not read the test's folder. */
const proxyGroup = 1337;
const application = 1000;
const families = ['v4', 'v6'] as const;
type Family = (typeof families)[number];

const { pod: own, neighbour: server } = addresses;
/** More addresses of the neighbour: another host, and the VIP of a service, which no interface has. */
const elsewhere = { v4: '10.88.0.1', v6: 'fd88::1' };
const vip = { v4: '10.96.0.20', v6: 'fd96::20' };

/** Ports of the neighbour. */
const ports = {
  mysql: 3306,
  serverFirst: 7101,
  clientFirst: 7102,
  http: 7103,
  /** A TCP service with a VIP: server-first and client-first behind it. */
  vipServerFirst: 7201,
  vipClientFirst: 7202,
  /** Ports that only a listener of a VIP has; HTTP servers at other addresses. */
  vipOnlyHttp: 7203,
  /** An HTTP service: its listener is at the wildcard. */
  serviceHttp: 7301,
};

const services = (family: Family): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: vip-${family}, namespace: shop }
spec:
  hosts: [vip-${family}.test]
  addresses: ["${vip[family]}"]
  resolution: STATIC
  ports:
    - { number: ${ports.vipServerFirst}, name: tcp-a, protocol: TCP }
    - { number: ${ports.vipClientFirst}, name: tcp-b, protocol: TCP }
    - { number: ${ports.vipOnlyHttp}, name: tcp-c, protocol: TCP }
  endpoints: [{ address: "${server[family]}" }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web-${family}, namespace: shop }
spec:
  hosts: [web-${family}.test]
  resolution: STATIC
  ports: [{ number: ${ports.serviceHttp}, name: http, protocol: HTTP }]
  endpoints: [{ address: "${server[family]}" }]
`;

const inUrl = (address: string): string => (address.includes(':') ? `[${address}]` : address);

interface Row {
  readonly what: string;
  readonly destination: Destination;
  readonly ALLOW_ANY: string;
  readonly REGISTRY_ONLY: string;
  readonly ALLOW_ANY_DYNAMIC_DNS: string;
}

/** What each connection meets. `to` is the address that a server was reached at. */
function rows(family: Family): Row[] {
  const at: string = server[family];
  const to = (port: number, address = at): string => `${port} for ${address}:${port}`;
  const host = (port: number): string => `${inUrl(elsewhere[family])}:${port}`;
  const everywhere = (what: string, destination: Destination, answer: string): Row => ({
    ...{ what, destination },
    ...{ ALLOW_ANY: answer, REGISTRY_ONLY: answer, ALLOW_ANY_DYNAMIC_DNS: answer },
  });
  const unknown = (what: string, destination: Destination, answer: string, byName = answer): Row => ({
    ...{ what, destination },
    ...{ ALLOW_ANY: answer, REGISTRY_ONLY: 'closed', ALLOW_ANY_DYNAMIC_DNS: byName },
  });
  const { mysql, serverFirst, clientFirst, http, vipServerFirst, vipClientFirst, vipOnlyHttp, serviceHttp } = ports;
  return [
    unknown('unknown MySQL', `tcp ${at} ${mysql}`, to(mysql)),
    unknown('unknown server-first TCP', `tcp ${at} ${serverFirst}`, to(serverFirst)),
    unknown('unknown client-first TCP', `reply ${at} ${clientFirst}`, to(clientFirst)),
    unknown('unknown HTTP', `http ${at} ${http} ${host(http)}`, to(http), to(http, elsewhere[family])),
    unknown('HTTP at the port of a VIP', `http ${at} ${vipOnlyHttp} ${host(vipOnlyHttp)}`, to(vipOnlyHttp)),
    everywhere('server-first TCP of a VIP', `tcp ${vip[family]} ${vipServerFirst}`, to(vipServerFirst)),
    everywhere('client-first TCP of a VIP', `reply ${vip[family]} ${vipClientFirst}`, to(vipClientFirst)),
    everywhere('an HTTP service', `http ${at} ${serviceHttp} web-${family}.test`, to(serviceHttp)),
    {
      what: 'an unknown host at the port of an HTTP service',
      destination: `http ${at} ${serviceHttp} ${host(serviceHttp)}`,
      ALLOW_ANY: to(serviceHttp),
      REGISTRY_ONLY: '502',
      ALLOW_ANY_DYNAMIC_DNS: to(serviceHttp, elsewhere[family]),
    },
  ];
}

const modes = ['ALLOW_ANY', 'REGISTRY_ONLY', 'ALLOW_ANY_DYNAMIC_DNS'] as const;
const all = families.flatMap((family) => rows(family).map((row) => ({ ...row, what: `${family}: ${row.what}` })));

beforeAll(() => requireIptables());

test('redirected connections reach what each outbound traffic policy permits, whichever side sends first', async () => {
  const { pod } = await networkWithServers();
  const root = mkdtempSync(join(tmpdir(), 'chartpilot-outbound-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const meshFile = join(root, 'mesh.yaml');
  const setMode = (mode: string): void =>
    writeFileSync(meshFile, `outboundTrafficPolicy: { mode: ${mode} }\nprotocolDetectionTimeout: 500ms\n`);
  setMode(modes[0]);
  const programs = startPrograms(pod, root, meshFile);
  const hopeless = () => programs.map((program) => program.hopeless()).find(Boolean);
  const answers = new Map<string, Record<string, string>>();
  for (const mode of modes) {
    setMode(mode);
    // Until Envoy has the listeners of this mode, the answers are those of the one before.
    const expected = Object.fromEntries(all.map((row) => [row.what, row[mode]]));
    const seen = await eventuallyEqual(expected, hopeless, async () => {
      const heard = await pod.ask(
        all.map(({ destination }) => destination),
        application,
      );
      // A connection that is closed with unread bytes is reset.
      return Object.fromEntries(all.map(({ what }, index) => [what, heard[index]!.replace('refused', 'closed')]));
    });
    answers.set(mode, seen);
  }
  expect(Object.fromEntries(answers)).toEqual(
    Object.fromEntries(modes.map((mode) => [mode, Object.fromEntries(all.map((row) => [row.what, row[mode]]))])),
  );
});

/** What was seen last, once it is as expected or the time is over. */
async function eventuallyEqual<T>(expected: T, hopeless: () => string | undefined, see: () => Promise<T>): Promise<T> {
  let seen = await see();
  await eventually(
    'the answers of the mode',
    async () => {
      seen = await see();
      return isDeepStrictEqual(seen, expected);
    },
    { hopeless },
  ).catch((error: unknown) => {
    if (hopeless() !== undefined) throw error;
  });
  return seen;
}

async function networkWithServers(): Promise<PodNetwork> {
  const network = await PodNetwork.start();
  onTestFinished(() => network.end());
  const { pod, neighbour } = network;
  await neighbour.configure([`addr add ${elsewhere.v4}/32 dev lo`, `addr add ${elsewhere.v6}/128 dev lo`]);
  const first = [ports.mysql, ports.serverFirst, ports.vipServerFirst].map((port) => `tcp ${port}`);
  const replying = [ports.clientFirst, ports.vipClientFirst].map((port) => `reply ${port}`);
  const http = [ports.http, ports.vipOnlyHttp, ports.serviceHttp].map((port) => `http ${port}`);
  await neighbour.listen({ ports: [...first, ...replying, ...http] });
  const agent = [process.execPath, programFile('pilot-agent'), 'istio-iptables'];
  await pod.mustRun(...agent, '-b', '', '-i', '*', '-g', `${proxyGroup}`, '--force-ipv6=true');
  return network;
}

/** The control plane and Envoy, both in the pod's network: nothing redirects loopback. */
function startPrograms(pod: NetworkSide, root: string, meshFile: string): Program[] {
  writeFileSync(join(root, 'services.yaml'), families.map(services).join('---'));
  const node = {
    id: `sidecar~${own.v4}~client-0.shop~shop.svc.cluster.local`,
    cluster: 'client',
    metadata: { NAMESPACE: 'shop', INSTANCE_IPS: `${own.v4},${own.v6}` },
  };
  const bootstrap = adsBootstrap({ node, xdsPort: 15010, adminPort: 15000, delta: false });
  writeFileSync(join(root, 'bootstrap.json'), JSON.stringify(bootstrap));
  const { executable: control, args: entry } = pilotDiscovery();
  const discovery = [control, ...entry, 'discovery', '--registries=', '--configDir', root];
  const envoy = ['setpriv', '--regid', `${proxyGroup}`, '--clear-groups', envoyBinary()];
  return Object.entries({
    discovery: [...discovery, '--meshConfig', meshFile, '--grpcAddr=127.0.0.1:15010', '--httpAddr=127.0.0.1:8080'],
    envoy: [...envoy, '-c', join(root, 'bootstrap.json'), '--disable-hot-restart', '--concurrency', '1'],
  }).map(([name, command]) => {
    const [executable = '', ...args] = pod.within(command);
    const more = name === 'discovery' ? ['--secureGRPCAddr=', '--httpsAddr=', '--monitoringAddr='] : ['-l', 'warning'];
    const logFile = join(root, `${name}.log`);
    const program = Program.run(name, executable, { args: [...args, ...more], env: process.env, cwd: root, logFile });
    onTestFinished(async () => void (await program.stop({ signal: 'SIGKILL' })));
    return program;
  });
}
