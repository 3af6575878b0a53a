/** Compares the pages of a running control plane with the state of its proxies. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readDebuggerToken } from '../../src/runtime/trace/debugger-token.ts';
import { AdsTestClient, type DeltaStream, type SotwStream, typeUrls } from '../ads-client.ts';
import { launchBrowser, openAddress } from '../browser/open-page.ts';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { adsBootstrap } from '../harness/ads-bootstrap.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Program } from '../harness/program.ts';

const host = 'cart.example.com';
const gatewayId = 'router~127.0.0.1~front-0.shop~shop.svc.cluster.local';
const sidecarId = (name: string): string => `sidecar~127.0.0.1~${name}.shop~shop.svc.cluster.local`;
/** Searched for as plain text, in base64, and in a Secret applied by kubectl. */
const secretText = 'pssst-0123456789-do-not-tell';
const secretBase64 = Buffer.from(secretText).toString('base64');

const files: Readonly<Record<string, string>> = {
  'cart.yaml': `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${host}]
  resolution: STATIC
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: 9}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: empty, namespace: shop}
spec:
  hosts: [empty.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
`,
  'secret.yaml': `apiVersion: v1
kind: Secret
metadata:
  name: cart-key
  namespace: shop
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"kind":"Secret","data":{"tls.key":"${secretBase64}"}}'
type: kubernetes.io/tls
data: {tls.crt: ${secretBase64}, tls.key: ${secretBase64}}
---
apiVersion: v1
kind: Secret
metadata: {name: bad-key, namespace: shop}
data: {tls.key: "${secretText}!"}
---
apiVersion: v1
kind: Secret
metadata: {name: plain, namespace: shop}
stringData: {password: ${secretText}}
`,
};

function gatewayObjects(port: number): string {
  return `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: [${host}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${host}]
  gateways: [front]
  http: [{route: [{destination: {host: ${host}}}]}]
`;
}

interface Sync {
  readonly proxy: string;
  readonly resources: Readonly<
    Record<string, { readonly sent: string; readonly acked: string; readonly lastError: string }>
  >;
}

interface DescribedProxy {
  readonly proxy: string;
  readonly worst: string;
  readonly protocol: string;
  readonly types: readonly { readonly type: string; readonly state: string; readonly rejected?: string }[];
}

/** The parts of a config dump by the suffix of their type, such as `Clusters`. */
type Dump = { readonly configs: readonly (Record<string, never[]> & { '@type': string })[] };

interface Addresses {
  readonly cluster: string;
  readonly addresses: readonly string[];
}

/** Addresses of a ClusterLoadAssignment; Envoy shows more fields than it received. */
function addressesOf(assignment: {
  readonly cluster_name: string;
  readonly endpoints?: readonly {
    readonly lb_endpoints?: readonly { readonly endpoint: { readonly address: object } }[];
  }[];
}): Addresses {
  const endpoints = (assignment.endpoints ?? []).flatMap(({ lb_endpoints = [] }) => lb_endpoints);
  return {
    cluster: assignment.cluster_name,
    addresses: endpoints.map(({ endpoint }) => JSON.stringify(endpoint.address)),
  };
}

describe('debug endpoints', () => {
  const root = mkdtempSync(join(tmpdir(), 'chartpilot-e2e-'));
  const trace = join(root, 'discovery.trace.ndjson');
  const programs: Program[] = [];
  const clients: AdsTestClient[] = [];
  let discovery: Program;
  let ports: { readonly xds: number; readonly http: number; readonly admin: number };
  let validStream: DeltaStream;
  let rejectingStream: SotwStream;
  let browser: Browser;

  beforeAll(async () => {
    const [xds, http, admin, listener] = (await freePorts(4)) as [number, number, number, number];
    ports = { xds, http, admin };
    mkdirSync(join(root, 'config'));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(root, 'config', name), text);
    writeFileSync(join(root, 'config/gateway.yaml'), gatewayObjects(listener));
    const node = {
      id: gatewayId,
      cluster: 'front',
      metadata: {
        NAMESPACE: 'shop',
        ISTIO_VERSION: '1.30.0',
        // This mesh has no agent.
        WORKLOAD_CERTIFICATES: 'false',
        LABELS: { istio: 'ingressgateway' },
      },
    };
    const bootstrap = adsBootstrap({ node, xdsPort: xds, adminPort: admin, delta: false });
    writeFileSync(join(root, 'envoy.json'), JSON.stringify(bootstrap));
    const programOptions = { env: { ...process.env, UNSAFE_ENABLE_ADMIN_ENDPOINTS: 'true' }, cwd: root };
    const flags = ['--configDir', join(root, 'config'), '--grpcAddr', `127.0.0.1:${xds}`, '--secureGRPCAddr='];
    flags.push('--httpAddr', `0.0.0.0:${http}`, '--monitoringAddr=', '--trace', trace, '--shutdownDuration', '2s');
    const args = ['discovery', '--registries=', ...flags, '--log_output_level', 'default:debug'];
    discovery = Program.start('pilot-discovery', { ...programOptions, args });
    const envoyArgs = ['-c', join(root, 'envoy.json'), '--disable-hot-restart', '--concurrency', '1', '-l', 'warning'];
    programs.push(Program.run('envoy', envoyBinary(), { ...programOptions, args: envoyArgs }), discovery);
    await eventually('the control plane is ready', async () => (await get('/ready')).status === 200, {
      hopeless: () => programs.map((program) => program.hopeless()).find(Boolean),
    });
    validStream = connect().delta();
    validStream.onResponse = ({ typeUrl, nonce }) => validStream.send({ typeUrl, responseNonce: nonce });
    validStream.send({ node: nodeOf('good-0'), typeUrl: typeUrls.CDS });
    await validStream.next();
    rejectingStream = connect().sotw();
    rejectingStream.onResponse = ({ typeUrl, nonce }) =>
      rejectingStream.send({
        typeUrl,
        responseNonce: nonce,
        errorDetail: { code: 13, message: 'I will not <b>have</b> it' },
      });
    rejectingStream.send({ node: nodeOf('bad-0'), typeUrl: typeUrls.CDS });
    await rejectingStream.next();
    await eventually('Envoy has everything', async () => {
      const sync = await json<Sync[]>('/debug/syncz');
      const types = Object.values(sync.find(({ proxy }) => proxy === 'front-0.shop')?.resources ?? {});
      return types.length === 4 && types.every(({ sent, acked }) => sent !== '' && sent === acked);
    });
    browser = await launchBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    for (const client of clients) client.close();
    for (const program of programs) await program.stop();
    rmSync(root, { recursive: true, force: true });
  });

  function nodeOf(name: string) {
    return {
      id: sidecarId(name),
      cluster: name,
      metadata: { NAMESPACE: 'shop', ISTIO_VERSION: '1.29.1', INTERCEPTION_MODE: 'NONE' },
    };
  }

  function connect(): AdsTestClient {
    const client = new AdsTestClient(ports.xds);
    clients.push(client);
    return client;
  }

  function get(path: string, at = '127.0.0.1', method = 'GET'): Promise<Response> {
    const headers = { authorization: `Bearer ${readDebuggerToken(ports.http)}` };
    return fetch(`http://${at}:${ports.http}${path}`, { method, headers });
  }

  const post = (path: string): Promise<Response> => get(path, undefined, 'POST');

  async function json<T>(path: string): Promise<T> {
    const response = await get(path);
    expect(response.status, path).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    return (await response.json()) as T;
  }

  test('syncz shows which configuration each proxy has acknowledged', async () => {
    const sync = await json<Sync[]>('/debug/syncz');
    expect(sync.map(({ proxy }) => proxy).sort()).toEqual(['bad-0.shop', 'front-0.shop', 'good-0.shop']);
    const clustersOf = (name: string) => sync.find(({ proxy }) => proxy === name)!.resources[typeUrls.CDS]!;
    expect(clustersOf('good-0.shop')).toMatchObject({
      sent: validStream.responses[0]!.nonce,
      acked: validStream.responses[0]!.nonce,
    });
    const rejectedClusters = clustersOf('bad-0.shop');
    expect(rejectedClusters).toMatchObject({ acked: '', lastError: 'I will not <b>have</b> it' });
    expect(await json('/debug/syncz?namespace=elsewhere')).toEqual([]);
  });

  test("config_dump equals Envoy's own config dump", async () => {
    const ownDump = await json<Dump>(`/debug/config_dump?proxyID=front-0.shop&include_eds`);
    const envoyDump = (await (await fetch(`http://127.0.0.1:${ports.admin}/config_dump?include_eds`)).json()) as Dump;
    const sectionOf = (dump: Dump, type: string) =>
      dump.configs.find((config) => config['@type'].endsWith(`.${type}ConfigDump`))!;
    const sorted = (items: object[]): object[] =>
      items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    const compared = {
      Clusters: (dump: Dump) => sectionOf(dump, 'Clusters').dynamic_active_clusters!.map(({ cluster }) => cluster),
      Endpoints: (dump: Dump) =>
        sectionOf(dump, 'Endpoints').dynamic_endpoint_configs!.map(({ endpoint_config }) =>
          addressesOf(endpoint_config),
        ),
      Listeners: (dump: Dump) =>
        sectionOf(dump, 'Listeners').dynamic_listeners!.map(({ active_state: { listener } }) => listener),
      Routes: (dump: Dump) => sectionOf(dump, 'Routes').dynamic_route_configs!.map(({ route_config }) => route_config),
    };
    for (const [type, of] of Object.entries(compared)) {
      const ownEndpoints = sorted(of(ownDump));
      expect(ownEndpoints.length, type).toBeGreaterThan(0);
      // Envoy also lists the endpoints of clusters without EDS.
      const knownItems = of(envoyDump).filter(
        (item) => type !== 'Endpoints' || (item as Addresses).cluster.startsWith('outbound'),
      );
      expect(ownEndpoints, type).toEqual(sorted(knownItems));
    }
    expect(await json<Dump>('/debug/config_dump?proxyID=front-0.shop&types=lds')).toMatchObject({
      configs: [{ '@type': 'type.googleapis.com/envoy.admin.v3.ListenersConfigDump' }],
    });
  });

  test('the connection view shows the configuration of each proxy and its rejections with their reasons', async () => {
    const proxies = await json<DescribedProxy[]>('/debug/proxyz');
    expect(proxies.map(({ proxy, worst, protocol }) => [proxy, worst, protocol])).toEqual([
      ['bad-0.shop', 'ERROR', 'sotw'],
      ['front-0.shop', 'SYNCED', 'sotw'],
      ['good-0.shop', 'SYNCED', 'delta'],
    ]);
    expect(proxies[0]!.types[0]).toMatchObject({ state: 'ERROR', rejected: 'I will not <b>have</b> it' });
  });

  test('the connection view is a readable HTML page', async () => {
    const { page, close } = await openAddress(browser, `http://127.0.0.1:${ports.http}/debug/proxyz`);
    expect(await page.locator('tbody tr').count()).toBe(3);
    expect(await page.locator('tbody tr').first().innerText()).toMatch(/bad-0\.shop.*rejected/s);
    await page.getByRole('link', { name: 'bad-0.shop' }).click();
    await page.getByRole('heading', { name: /bad-0\.shop/ }).waitFor();
    expect(await page.locator('tr.why').innerText()).toContain('I will not <b>have</b> it');
    expect(await page.locator('tr.why b').count()).toBe(0);
    if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, 'proxyz.png') });
    await close();
  });

  test('metrics count the connections, pushes and rejections that the pages show', async () => {
    const metrics = await (await get('/metrics')).text();
    for (const line of [
      /^pilot_info\{version=".+"\} 1$/m,
      /^pilot_xds\{version="1\.30\.0"\} 1$/m,
      /^pilot_xds\{version="1\.29\.1"\} 2$/m,
      /^pilot_xds_pushes\{type="cds"\} [1-9]/m,
      /^pilot_total_xds_rejects\{type="cds"\} 1$/m,
      /^pilot_xds_cds_reject\{node="sidecar~127\.0\.0\.1~bad-0[^"]*",err="I will not <b>have<\/b> it"\} 1$/m,
      /^pilot_services 2$/m,
      /^pilot_virt_services 1$/m,
      /^pilot_eds_no_instances 1$/m,
      /^pilot_k8s_cfg_events\{type="Gateway",event="add"\} 1$/m,
      /^pilot_pushcontext_init_seconds_count [1-9]/m,
      /^pilot_xds_config_size_bytes_count\{type="type\.googleapis\.com\/envoy\.config\.cluster\.v3\.Cluster"\} [1-9]/m,
      /^xds_cache_reads\{type="miss"\} [1-9]/m,
      /^grpc_server_started_total\{[^}]*grpc_method="StreamAggregatedResources"\} 2$/m,
      /^grpc_server_msg_received_total\{[^}]*grpc_method="DeltaAggregatedResources"\} [2-9]/m,
      /^pilot_xds_push_time_count\{type="cds"\} [1-9]/m,
      /^pilot_xds_send_time_count [1-9]/m,
      /^process_resident_memory_bytes \d/m,
    ]) {
      expect(metrics).toMatch(line);
    }
    const push = await json<Record<string, object>>('/debug/push_status');
    expect(push.pilot_eds_no_instances).toEqual({ 'empty.example.com.shop': { message: expect.any(String) } });
  });

  test('invalid requests get a response with the reason', async () => {
    expect([(await get('/debug/config_dump')).status, (await get('/debug/edsz')).status]).toEqual([400, 400]);
    const unknownResponse = await get('/debug/config_dump?proxyID=nobody');
    expect([unknownResponse.status, await unknownResponse.text()]).toEqual([
      404,
      expect.stringContaining('Proxy not connected to this Pilot instance'),
    ]);
    expect((await get('/debug/nothing')).status).toBe(404);
    expect(await (await get('/debug/inject')).text()).toContain('not found: this control plane serves no webhooks');
    const indented = await (await get('/debug/mesh?pretty')).text();
    expect(indented).toMatch(/^\{\n {2}"/);
  });

  test('callers on other hosts must be authenticated', async () => {
    const outside = Object.values(networkInterfaces())
      .flat()
      .find((address) => address?.family === 'IPv4' && !address.internal)?.address;
    // A machine without a network has no other source address.
    if (outside === undefined) return;
    expect((await get('/debug/configz', outside)).status).toBe(401);
    expect((await get('/v1/registration', outside)).status).toBe(401);
    expect((await get('/debug/pprof/heap', outside)).status).toBe(403);
    expect((await get('/ready', outside)).status).toBe(200);
    expect((await get('/metrics', outside)).status).toBe(200);
  });

  test('the profile endpoint rejects a second profile while one is running', async () => {
    expect(await (await get('/debug/pprof/')).text()).toContain('profile?seconds=30');
    // The second profile must be requested while the first one runs.
    const runningProfile = await get('/debug/pprof/profile?seconds=6');
    expect((await get('/debug/pprof/allocs')).status).toBe(503);
    // Heap snapshots are disabled.
    expect((await get('/debug/pprof/heap')).status).toBe(403);
    expect(await runningProfile.json()).toMatchObject({ nodes: expect.any(Array), samples: expect.any(Array) });
    expect(await (await get('/debug/pprof/goroutine')).text()).toMatch(/3 {2}/);
  });

  test('debug pages over xDS require an authenticated client', async () => {
    const stream = connect().sotw();
    stream.send({ node: nodeOf('curious-0'), typeUrl: 'istio.io/debug', resourceNames: ['syncz'] });
    expect(await stream.ended).toMatchObject({
      code: 16,
      details: expect.stringContaining('[CLIENT_UNAUTHENTICATED]'),
    });
    expect(stream.responses).toEqual([]);
  });

  test('no page, log or trace contains a secret', async () => {
    const pages = await json<string[]>('/debug/list');
    // Some pages would change the state under test.
    const harmless = pages.filter((page) => page !== 'force_disconnect');
    const bodies = await Promise.all(
      harmless.map(async (page) => (await get(`/debug/${page}?proxyID=front-0.shop&include_eds&sizes=true`)).text()),
    );
    const texts = [...bodies, await (await get('/metrics')).text(), discovery.output(), readFileSync(trace, 'utf8')];
    expect(bodies[harmless.indexOf('configz')]).toContain('cart-key');
    expect(discovery.output()).toContain('bad-key');
    for (const [index, text] of texts.entries()) {
      expect(text.includes(secretText), `${harmless[index] ?? 'log or trace'} tells the secret`).toBe(false);
      expect(text.includes(secretBase64), `${harmless[index] ?? 'log or trace'} tells the secret`).toBe(false);
    }
  });

  test('a push to all clients reaches each client, and a client whose stream is closed reconnects', async () => {
    const responseCount = validStream.responses.length;
    expect(await (await post('/debug/adsz?push=true')).text()).toBe('Pushed to 3 servers\n');
    await eventually('everything is acknowledged again', async () => {
      const [gateway] = (await json<Sync[]>('/debug/syncz')).filter(({ proxy }) => proxy === 'front-0.shop');
      return Object.values(gateway!.resources).every(({ sent, acked }) => sent === acked);
    });
    // Without a change, a delta client receives nothing.
    await sleep(200);
    expect(validStream.responses.length).toBe(responseCount);
    const id = async (): Promise<string> => {
      const { clients: list } = await json<{ clients: { connectionId: string }[] }>('/debug/connections');
      return list.map(({ connectionId }) => connectionId).find((connectionId) => connectionId.startsWith('router~'))!;
    };
    const first = await id();
    expect(await (await post(`/debug/force_disconnect?proxyID=${encodeURIComponent(first)}`)).text()).toBe('OK\n');
    await eventually('Envoy has connected again', async () => (await id()) !== first && (await id()) !== undefined);
  });
});
