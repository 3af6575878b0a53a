/**
 * Which server a redirected outbound connection reaches for each `outboundTrafficPolicy`: real iptables, a real Envoy, server-first and
 * client-first protocols, IPv4 and IPv6.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
import { sized } from '../harness/size-of-run.ts';

/** Connections of this group are never redirected. A separate user could not read the test's folder. */
const proxyGroup = 1337;
const application = 1000;
const families = ['v4', 'v6'] as const;
type Family = (typeof families)[number];

const { pod: podAddresses, neighbour: server } = addresses;
/** Other addresses routed to the neighbour: another host, and a service VIP, which no interface has. */
const outsideAddresses = { v4: '10.88.0.1', v6: 'fd88::1' };
const vip = { v4: '10.96.0.20', v6: 'fd96::20' };

/** Ports of the neighbour. */
const ports = {
  mysql: 3306,
  serverFirst: 7101,
  clientFirst: 7102,
  http: 7103,
  /** A TCP service with a VIP, in front of server-first and client-first servers. */
  vipServerFirst: 7201,
  vipClientFirst: 7202,
  /** Ports for which only a VIP has a listener; HTTP servers at other addresses use them. */
  vipOnlyHttp: 7203,
  /** An HTTP service, whose listener is at the wildcard address. */
  serviceHttp: 7301,
  /** Target of unknown connections with `egressProxy`. */
  egressProxy: 7401,
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

const egressProxy = `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: egress, namespace: shop }
spec:
  hosts: [egress.test]
  resolution: STATIC
  ports: [{ number: ${ports.egressProxy}, name: tcp, protocol: TCP }]
  endpoints: [{ address: "${server.v4}" }]
`;

/** A policy of the mesh, or of a Sidecar object that overrides it. */
interface Policy {
  readonly name: string;
  readonly mesh: Mode;
  /** `outboundTrafficPolicy` of the Sidecar; without it, there is no Sidecar. */
  readonly sidecar?: string;
  /** Expected column of the table. */
  readonly expected: Mode | 'egressProxy';
}

const policies: readonly Policy[] = [
  { name: 'ALLOW_ANY', mesh: 'ALLOW_ANY', expected: 'ALLOW_ANY' },
  { name: 'REGISTRY_ONLY', mesh: 'REGISTRY_ONLY', expected: 'REGISTRY_ONLY' },
  { name: 'ALLOW_ANY_DYNAMIC_DNS', mesh: 'ALLOW_ANY_DYNAMIC_DNS', expected: 'ALLOW_ANY_DYNAMIC_DNS' },
  { name: 'Sidecar ALLOW_ANY', mesh: 'REGISTRY_ONLY', sidecar: 'mode: ALLOW_ANY', expected: 'ALLOW_ANY' },
  { name: 'Sidecar REGISTRY_ONLY', mesh: 'ALLOW_ANY', sidecar: 'mode: REGISTRY_ONLY', expected: 'REGISTRY_ONLY' },
  {
    ...{ name: 'Sidecar ALLOW_ANY_DYNAMIC_DNS', mesh: 'REGISTRY_ONLY' },
    ...{ sidecar: 'mode: ALLOW_ANY_DYNAMIC_DNS', expected: 'ALLOW_ANY_DYNAMIC_DNS' },
  },
  {
    ...{ name: 'Sidecar egressProxy', mesh: 'REGISTRY_ONLY', expected: 'egressProxy' },
    sidecar: `mode: ALLOW_ANY, egressProxy: { host: egress.test, port: { number: ${ports.egressProxy} } }`,
  },
];

/** Other Sidecars that restrict and redirect cover these. */
const skipped = sized<readonly string[]>({
  quick: ['Sidecar ALLOW_ANY', 'Sidecar ALLOW_ANY_DYNAMIC_DNS'],
  short: ['Sidecar ALLOW_ANY', 'Sidecar ALLOW_ANY_DYNAMIC_DNS'],
  full: [],
});

const sidecarOf = ({ sidecar }: Policy): string =>
  sidecar === undefined
    ? ''
    : `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: policy, namespace: shop }
spec: { egress: [{ hosts: ["*/*"] }], outboundTrafficPolicy: { ${sidecar} } }
`;

const inUrl = (address: string): string => (address.includes(':') ? `[${address}]` : address);

/** How inbound connections reach Envoy; outbound ones are redirected in either mode. */
type Interception = 'REDIRECT' | 'TPROXY';
type Mode = 'ALLOW_ANY' | 'REGISTRY_ONLY' | 'ALLOW_ANY_DYNAMIC_DNS';

interface Row extends Readonly<Record<Mode, string>> {
  readonly title: string;
  readonly destination: Destination;
  /** Absent for HTTP requests, because the server behind `egressProxy` does not support HTTP. */
  readonly egressProxy?: string;
}

/** The expected result of each connection. `to` is the address at which a server was reached. */
function rows(family: Family): Row[] {
  const at: string = server[family];
  const to = (port: number, address = at): string => `${port} for ${address}:${port}`;
  const host = (port: number): string => `${inUrl(outsideAddresses[family])}:${port}`;
  const rowForAllModes = (title: string, destination: Destination, expectedResponse: string): Row => ({
    ...{ title, destination },
    ...{
      ALLOW_ANY: expectedResponse,
      REGISTRY_ONLY: expectedResponse,
      ALLOW_ANY_DYNAMIC_DNS: expectedResponse,
      egressProxy: expectedResponse,
    },
  });
  const unknownRow = (
    title: string,
    destination: Destination,
    expectedResponse: string,
    nameResponse = expectedResponse,
  ): Row => ({
    ...{ title, destination },
    ...{ ALLOW_ANY: expectedResponse, REGISTRY_ONLY: 'closed', ALLOW_ANY_DYNAMIC_DNS: nameResponse },
    ...(!destination.startsWith('http') && { egressProxy: to(ports.egressProxy, server.v4) }),
  });
  const { mysql, serverFirst, clientFirst, http, vipServerFirst, vipClientFirst, vipOnlyHttp, serviceHttp } = ports;
  return [
    unknownRow('unknown MySQL', `tcp ${at} ${mysql}`, to(mysql)),
    unknownRow('unknown server-first TCP', `tcp ${at} ${serverFirst}`, to(serverFirst)),
    unknownRow('unknown client-first TCP', `reply ${at} ${clientFirst}`, to(clientFirst)),
    unknownRow('unknown HTTP', `http ${at} ${http} ${host(http)}`, to(http), to(http, outsideAddresses[family])),
    unknownRow('HTTP at the port of a VIP', `http ${at} ${vipOnlyHttp} ${host(vipOnlyHttp)}`, to(vipOnlyHttp)),
    rowForAllModes('server-first TCP of a VIP', `tcp ${vip[family]} ${vipServerFirst}`, to(vipServerFirst)),
    rowForAllModes('client-first TCP of a VIP', `reply ${vip[family]} ${vipClientFirst}`, to(vipClientFirst)),
    rowForAllModes('an HTTP service', `http ${at} ${serviceHttp} web-${family}.test`, to(serviceHttp)),
    {
      title: 'an unknown host at the port of an HTTP service',
      destination: `http ${at} ${serviceHttp} ${host(serviceHttp)}`,
      ALLOW_ANY: to(serviceHttp),
      REGISTRY_ONLY: '502',
      ALLOW_ANY_DYNAMIC_DNS: to(serviceHttp, outsideAddresses[family]),
    },
  ];
}

const all = families.flatMap((family) => rows(family).map((row) => ({ ...row, title: `${family}: ${row.title}` })));

beforeAll(() => requireIptables());

/** The rows that have a result for the mode. */
const rowsOf = ({ expected }: Policy): readonly (Row & { readonly expectedResponse: string })[] =>
  all.flatMap((row) => (row[expected] === undefined ? [] : [{ ...row, expectedResponse: row[expected] }]));

test.each(sized<readonly Interception[]>({ quick: ['REDIRECT'], short: ['REDIRECT'], full: ['REDIRECT', 'TPROXY'] }))(
  'connections with %s reach the servers that each outbound traffic policy allows, regardless of which side sends first',
  async (interception) => {
    const { pod } = await networkWithServers(interception);
    const root = mkdtempSync(join(tmpdir(), 'chartpilot-outbound-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const [meshFile, config] = [join(root, 'mesh.yaml'), join(root, 'config')];
    mkdirSync(config);
    const apply = (policy: Policy): void => {
      writeFileSync(meshFile, `outboundTrafficPolicy: { mode: ${policy.mesh} }\nprotocolDetectionTimeout: 500ms\n`);
      writeFileSync(join(config, 'sidecar.yaml'), sidecarOf(policy));
    };
    apply(policies[0]!);
    const programs = startPrograms(pod, { root, meshFile, config, interception });
    const hopeless = () => programs.map((program) => program.hopeless()).find(Boolean);
    const responses: Record<string, Record<string, string>> = {};
    const expected: typeof responses = {};
    for (const policy of policies.filter(({ name }) => !skipped.includes(name))) {
      apply(policy);
      const connections = rowsOf(policy);
      // Until Envoy has the listeners of this mode, responses are those of the previous one.
      expected[policy.name] = Object.fromEntries(
        connections.map(({ title, expectedResponse }) => [title, expectedResponse]),
      );
      responses[policy.name] = await eventuallyEqual(expected[policy.name]!, hopeless, async () => {
        const queryResponses = await pod.query(
          connections.map(({ destination }) => destination),
          application,
        );
        // Closing a connection with unread bytes resets it.
        return Object.fromEntries(
          connections.map(({ title }, index) => [title, queryResponses[index]!.replace('refused', 'closed')]),
        );
      });
    }
    expect(responses).toEqual(expected);
  },
);

/** Polls until the value is as expected or the deadline has passed, and returns it. */
async function eventuallyEqual<T>(expected: T, hopeless: () => string | undefined, see: () => Promise<T>): Promise<T> {
  let observed = await see();
  await eventually(
    'the answers of the mode',
    async () => {
      observed = await see();
      return isDeepStrictEqual(observed, expected);
    },
    { hopeless },
  ).catch((error: unknown) => {
    if (hopeless() !== undefined) throw error;
  });
  return observed;
}

async function networkWithServers(interception: Interception): Promise<PodNetwork> {
  const network = await PodNetwork.start();
  onTestFinished(() => network.end());
  const { pod, neighbour } = network;
  await neighbour.configure([
    `addr add ${outsideAddresses.v4}/32 dev lo`,
    `addr add ${outsideAddresses.v6}/128 dev lo`,
  ]);
  const first = [ports.mysql, ports.serverFirst, ports.vipServerFirst, ports.egressProxy].map((port) => `tcp ${port}`);
  const replying = [ports.clientFirst, ports.vipClientFirst].map((port) => `reply ${port}`);
  const http = [ports.http, ports.vipOnlyHttp, ports.serviceHttp].map((port) => `http ${port}`);
  await neighbour.listen({ ports: [...first, ...replying, ...http] });
  const agent = [process.execPath, programFile('pilot-agent'), 'istio-iptables'];
  await pod.mustRun(...agent, '-m', interception, '-b', '', '-i', '*', '-g', `${proxyGroup}`, '--force-ipv6=true');
  return network;
}

interface Setup {
  readonly root: string;
  readonly meshFile: string;
  /** Folder of the objects. */
  readonly config: string;
  readonly interception: Interception;
}

/** Starts the control plane and Envoy in the pod's network, where loopback is not redirected. */
function startPrograms(pod: NetworkSide, { root, meshFile, config, interception }: Setup): Program[] {
  writeFileSync(join(config, 'services.yaml'), families.map(services).join('---') + egressProxy);
  const node = {
    id: `sidecar~${podAddresses.v4}~client-0.shop~shop.svc.cluster.local`,
    cluster: 'client',
    metadata: {
      NAMESPACE: 'shop',
      INSTANCE_IPS: `${podAddresses.v4},${podAddresses.v6}`,
      INTERCEPTION_MODE: interception,
    },
  };
  const bootstrap = adsBootstrap({ node, xdsPort: 15010, adminPort: 15000, delta: false });
  writeFileSync(join(root, 'bootstrap.json'), JSON.stringify(bootstrap));
  const { executable: control, args: entry } = pilotDiscovery();
  const discovery = [control, ...entry, 'discovery', '--registries=', '--configDir', config];
  const envoy = ['setpriv', '--regid', `${proxyGroup}`, '--clear-groups', envoyBinary()];
  return Object.entries({
    discovery: [...discovery, '--meshConfig', meshFile, '--grpcAddr=127.0.0.1:15010', '--httpAddr=127.0.0.1:8080'],
    envoy: [...envoy, '-c', join(root, 'bootstrap.json'), '--disable-hot-restart', '--concurrency', '1'],
  }).map(([name, command]) => {
    const [executable = '', ...args] = pod.within(command);
    const extraArgs =
      name === 'discovery' ? ['--secureGRPCAddr=', '--httpsAddr=', '--monitoringAddr='] : ['-l', 'warning'];
    const logFile = join(root, `${name}.log`);
    const program = Program.run(name, executable, {
      args: [...args, ...extraArgs],
      env: process.env,
      cwd: root,
      logFile,
    });
    onTestFinished(async () => void (await program.stop({ signal: 'SIGKILL' })));
    return program;
  });
}
