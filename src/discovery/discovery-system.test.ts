/** The whole control plane in this process: files in, gRPC and HTTP out. */
import { EventEmitter } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, describe, expect, it } from 'vitest';
import type { DiscoveryOutput } from '../../machines/discovery/discovery.machine.ts';
import { AdsTestClient, type SotwStream, typeUrls } from '../../test/ads-client.ts';
import { eventually } from '../../test/harness/eventually.ts';
import { TraceChecker } from '../debugger/check/check.ts';
import { loadDiagrams } from '../debugger/diagram/load.ts';
import { ClusterSchema } from '../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { createRecorder } from '../runtime/actor-system.ts';
import { readDebuggerToken } from '../runtime/debugger-access.ts';
import { createLogger, silentLogger } from '../runtime/log.ts';
import { packageRoot } from '../runtime/package-root.ts';
import type { TraceLine, TraceRecord } from '../runtime/trace.ts';
import { TraceEndpoint } from '../runtime/trace-endpoint.ts';
import { TraceRing } from '../runtime/trace-ring.ts';
import { type DiscoveryFlags, resolveDiscoveryOptions } from './discovery-options.ts';
import { runDiscovery } from './discovery-system.ts';

const sidecar = {
  id: 'sidecar~127.0.0.1~web-0.shop~shop.svc.cluster.local',
  cluster: 'web',
  metadata: { NAMESPACE: 'shop', INTERCEPTION_MODE: 'NONE', ISTIO_VERSION: '1.30.0', LABELS: { app: 'web' } },
};
const cartCluster = 'outbound|80||cart.example.com';

const running: ControlPlane[] = [];

afterEach(async () => {
  for (const plane of running.splice(0)) await plane.stop();
});

/** A control plane with a folder of its own. */
class ControlPlane {
  readonly root = mkdtempSync(join(tmpdir(), 'chartpilot-discovery-'));
  readonly lines: string[] = [];
  readonly records: TraceRecord[] = [];
  readonly ended: Promise<DiscoveryOutput>;
  readonly trace: TraceEndpoint;
  readonly #signals = new EventEmitter();
  readonly #clients: AdsTestClient[] = [];
  readonly #streams: SotwStream[] = [];

  constructor(flags: DiscoveryFlags = {}, files: Record<string, string> = { 'cart.yaml': serviceEntry() }) {
    running.push(this);
    mkdirSync(join(this.root, 'config'));
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    const ring = new TraceRing(1_000);
    const recorder = createRecorder({ program: 'pilot-discovery', sinks: [ring] });
    this.trace = new TraceEndpoint({ ring, mode: 'on', runDir: this.root, log: silentLogger });
    recorder.observe((record) => this.records.push(record));
    const options = resolveDiscoveryOptions(
      {
        registries: '',
        configDir: join(this.root, 'config'),
        meshConfig: join(this.root, 'mesh'),
        networksConfig: join(this.root, 'meshNetworks'),
        grpcAddr: '127.0.0.1:0',
        httpAddr: '127.0.0.1:0',
        monitoringAddr: '',
        shutdownDuration: '2s',
        ...flags,
      },
      { PILOT_MAX_REQUESTS_PER_SECOND: '1000' },
    );
    const log = createLogger({ write: (line) => this.lines.push(line.trimEnd()) });
    this.ended = runDiscovery({
      options,
      log,
      recorder,
      version: 'test',
      trace: this.trace,
      signals: this.#signals as never,
    });
  }

  static async serving(flags: DiscoveryFlags = {}, files?: Record<string, string>): Promise<ControlPlane> {
    const plane = new ControlPlane(flags, files);
    await eventually('the control plane is ready', async () => (await plane.get('/ready')).status === 200);
    return plane;
  }

  /** Writes a file of the configuration directory. */
  write(name: string, text: string): void {
    writeFileSync(join(this.root, 'config', name), text);
  }

  async get(path: string): Promise<{ status: number; text: string; json: () => never }> {
    const response = await fetch(`http://${this.#address('http.listening')}${path}`);
    const text = await response.text();
    return {
      status: response.status,
      text,
      json: () => {
        if (response.status !== 200) throw new Error(text);
        return JSON.parse(text) as never;
      },
    };
  }

  client(at: string): AdsTestClient {
    const client = new AdsTestClient(Number(this.#address(at).split(':').at(-1)));
    this.#clients.push(client);
    return client;
  }

  /** A stream whose first request names a sidecar and asks for clusters; their names are answered. */
  async subscribe(at = 'ads.listening'): Promise<{ stream: SotwStream; clusters: string[] }> {
    const stream = this.client(at).sotw();
    this.#streams.push(stream);
    stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    const response = await stream.next();
    return {
      stream,
      clusters: response.resources.map(({ value }) => fromBinary(ClusterSchema, value).name),
    };
  }

  /** The stream of the trace, as it is given to who has the token. */
  async watch(query = ''): Promise<Response> {
    const address = this.#address('http.listening');
    const token = readDebuggerToken(Number(address.split(':').at(-1)), { runDir: this.root });
    return fetch(`http://${address}/debug/trace${query}`, { headers: { authorization: `Bearer ${token}` } });
  }

  troubles(): string[] {
    return this.lines.filter((line) => /\t(warn|error)\t/.test(line));
  }

  signal(): void {
    this.#signals.emit('SIGTERM', 'SIGTERM');
  }

  async stop(): Promise<void> {
    // A stream with an unanswered response would be given its time.
    for (const stream of this.#streams) stream.cancel();
    for (const client of this.#clients) client.close();
    this.signal();
    await this.ended;
    rmSync(this.root, { recursive: true, force: true });
  }

  departures(): unknown[] {
    const checker = new TraceChecker(loadDiagrams(join(packageRoot(), 'machines/discovery/sequences')));
    for (const record of this.records) checker.feed(record);
    return checker.report().departures;
  }

  #address(event: string): string {
    const told = this.records.findLast((record) => record.kind === 'event' && record.event.type === event);
    if (told?.kind !== 'event') throw new Error(`no ${event} yet`);
    return (told.event.addresses as string[])[0]!;
  }
}

function serviceEntry(addresses: readonly string[] = ['10.1.1.1'], port = 80): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints:
${addresses.map((address) => `    - {address: ${address}}`).join('\n')}
`;
}

describe('pilot-discovery', () => {
  it('serves what the directory says, and a changed service within a second', async () => {
    const plane = await ControlPlane.serving();
    const { stream, clusters } = await plane.subscribe();
    expect(clusters).toContain(cartCluster);
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    const changedAt = performance.now();
    plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    const pushed = await stream.next();
    expect(performance.now() - changedAt).toBeLessThan(1_000);
    expect(pushed.resources.map(({ value }) => fromBinary(ClusterSchema, value).name)).toContain(
      'outbound|81||cart.example.com',
    );
  });

  it('pushes endpoints alone when endpoints alone changed', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
    const first = await stream.next();
    stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster], responseNonce: first.nonce });
    plane.write('cart.yaml', serviceEntry(['10.1.1.1', '10.1.1.2']));
    const pushed = await stream.next();
    expect(pushed.typeUrl).toBe(typeUrls.EDS);
    const assignment = fromBinary(ClusterLoadAssignmentSchema, pushed.resources[0]!.value);
    expect(assignment.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints)).toHaveLength(2);
    expect(await stream.unexpected()).toEqual([]);
  });

  it('does not push for what concerns nobody', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    const gateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: shop}
spec:
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]
`;
    plane.write('gateway.yaml', gateway);
    await eventually('the change was taken up', () =>
      plane.lines.some((line) => /push .*Gateway\/shop\/front/.test(line)),
    );
    expect(await stream.unexpected()).toEqual([]);
  });

  it('keeps the last good object when a file is broken, says where, and takes up the mended file', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    plane.write('cart.yaml', serviceEntry().replace('resolution:', 'resolutoin:'));
    await eventually('the mistake is told', () =>
      plane.troubles().some((line) => /cart\.yaml:\d+.*resolutoin/.test(line)),
    );
    expect(await stream.unexpected()).toEqual([]);
    expect((await plane.subscribe()).clusters).toContain(cartCluster);
    plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    await stream.next();
    expect((await plane.subscribe()).clusters).toContain('outbound|81||cart.example.com');
  });

  it('brings everyone up to date when the mesh configuration changes, and not when it is bad', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    writeFileSync(join(plane.root, 'mesh'), 'connectTimeout: 3s\n');
    const pushed = await stream.next();
    const cart = pushed.resources
      .map(({ value }) => fromBinary(ClusterSchema, value))
      .find(({ name }) => name === cartCluster);
    expect(cart?.connectTimeout?.seconds).toBe(3n);
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: pushed.nonce });
    writeFileSync(join(plane.root, 'mesh'), 'connectTimeout: soon\n');
    await eventually('the mistake is told', () => plane.troubles().some((line) => /mesh:1.*connectTimeout/.test(line)));
    expect(await stream.unexpected()).toEqual([]);
  });

  it('starts with the defaults when the mesh configuration is bad', async () => {
    const root = mkdtempSync(join(tmpdir(), 'chartpilot-discovery-'));
    writeFileSync(join(root, 'mesh'), 'connectTimeout: [');
    const plane = await ControlPlane.serving({ meshConfig: join(root, 'mesh') });
    expect(plane.troubles().join('\n')).toMatch(/mesh:1/);
    rmSync(root, { recursive: true });
  });

  it('ends when told to, letting streams go', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    plane.signal();
    expect(await plane.ended).toEqual({ exitCode: 0, trouble: [] });
    expect((await stream.ended).code).toBeDefined();
  });

  it('serves xDS on the HTTP port when it has no port of its own', async () => {
    const plane = await ControlPlane.serving({ grpcAddr: '' });
    const { clusters } = await plane.subscribe('http.listening');
    expect(clusters).toContain(cartCluster);
    expect((await plane.get('/ready')).status).toBe(200);
  });

  it('says which port is in use, and ends', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => holder.once('listening', resolve));
    const address = `127.0.0.1:${(holder.address() as { port: number }).port}`;
    for (const flag of ['httpAddr', 'grpcAddr'] as const) {
      const { exitCode, trouble } = await new ControlPlane({ [flag]: address }).ended;
      expect(exitCode).toBe(1);
      expect(trouble).toEqual([expect.stringContaining(`a port is in use: ${address}`)]);
    }
    holder.close();
  });

  it('says which configuration directory is missing, and ends', async () => {
    const { exitCode, trouble } = await new ControlPlane({ configDir: '/nonexistent/mesh' }).ended;
    expect([exitCode, trouble]).toEqual([1, [expect.stringContaining('/nonexistent/mesh')]]);
  });

  it('does what the sequence diagrams say', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    await stream.next();
    plane.write('cart.yaml', 'spec: [');
    await eventually('the mistake is told', () => plane.troubles().length > 0);
    await plane.get('/debug/adsz?push=true');
    await stream.unexpected(300);
    plane.signal();
    await plane.ended;
    expect(plane.departures()).toEqual([]);
  });
});

describe('the pages', () => {
  it('show who is connected and what they were sent', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    const { nonce } = stream.responses[0]!;
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: nonce });
    await stream.unexpected();
    expect((await plane.get('/debug/adsz')).json()).toMatchObject({
      totalClients: 1,
      clients: [{ connectionId: `${sidecar.id}-1`, labels: { app: 'web' }, watches: { [typeUrls.CDS]: [] } }],
    });
    expect((await plane.get('/debug/syncz')).json()).toMatchObject([
      { proxy: sidecar.id, cluster_sent: nonce, cluster_acked: nonce, listener_sent: '' },
    ]);
    expect((await plane.get('/debug/syncz?namespace=other')).json()).toEqual([]);
    expect((await plane.get('/debug/connections')).json()).toMatchObject({ totalClients: 1 });
  });

  it('show what a proxy was given, as Envoy shows it', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
    await stream.next();
    const dump = (await plane.get(`/debug/config_dump?proxyID=${sidecar.id}&include_eds`)).json() as {
      configs: { '@type': string; dynamic_active_clusters?: { cluster: { name: string } }[] }[];
    };
    expect(dump.configs.map((config) => config['@type'].split('.').at(-1))).toEqual([
      'BootstrapConfigDump',
      'ClustersConfigDump',
      'EndpointsConfigDump',
      'ListenersConfigDump',
      'RoutesConfigDump',
      'ScopedRoutesConfigDump',
      'SecretsConfigDump',
    ]);
    expect(dump.configs[1]!.dynamic_active_clusters!.map(({ cluster }) => cluster.name)).toContain(cartCluster);
    expect((await plane.get('/debug/config_dump')).status).toBe(400);
    expect((await plane.get('/debug/config_dump?proxyID=nobody')).status).toBe(404);
    const clusters = (await plane.get(`/debug/config_dump?proxyID=${sidecar.id}&types=cds`)).json() as typeof dump;
    expect(clusters.configs).toHaveLength(1);
  });

  it('let everything be pushed', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    expect((await plane.get('/debug/adsz?push=true')).text).toBe('Pushed to 1 servers\n');
    await eventually('it is done', () => plane.lines.some((line) => /push .*: everything/.test(line)));
  });

  it('show configuration, services, endpoints and settings', async () => {
    const plane = await ControlPlane.serving();
    expect((await plane.get('/debug/configz')).json()).toMatchObject([
      { kind: 'ServiceEntry', metadata: { name: 'cart', namespace: 'shop' }, spec: { hosts: ['cart.example.com'] } },
    ]);
    expect((await plane.get('/debug/registryz')).json()).toMatchObject([{ hostname: 'cart.example.com' }]);
    expect((await plane.get('/debug/endpointz')).json()).toMatchObject({
      'cart.example.com': { shop: { Shards: { 'External/Kubernetes': [{ address: '10.1.1.1' }] } } },
    });
    expect((await plane.get('/debug/mesh')).json()).toMatchObject({ trustDomain: 'cluster.local' });
    const list = (await plane.get('/debug/list')).json() as string[];
    for (const path of list) {
      expect((await plane.get(`/debug/${path}?pretty`)).status, path).toBe(
        /^(config_dump|edsz)$/.test(path) ? 400 : 200,
      );
    }
    expect((await plane.get('/debug')).text).toContain('/debug/syncz');
    expect((await plane.get('/debug/nothing')).status).toBe(404);
    expect((await plane.get('/version')).text).toBe('test\n');
  });

  it('count what was done', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    const nack = { code: 13, message: 'no such filter' };
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce, errorDetail: nack });
    plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    await stream.next();
    const { text } = await plane.get('/metrics');
    for (const line of [
      'pilot_info{version="test"} 1',
      'pilot_xds{version="1.30.0"} 1',
      'pilot_xds_pushes{type="cds"} 2',
      'pilot_total_xds_rejects{type="cds"} 1',
      `pilot_xds_cds_reject{node="${sidecar.id}",err="no such filter"} 1`,
      'pilot_services 1',
      'pilot_debounce_time_count 1',
      'pilot_pushcontext_init_seconds_count 2',
      'pilot_push_triggers{type="service"} 2',
      'pilot_inbound_updates{type="svc"} 2',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
  });
});

describe('the trace of the control plane', () => {
  const linesOf = (text: string): TraceLine[] =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TraceLine);

  it('is offered at its HTTP ports to who has the token', async () => {
    const plane = await ControlPlane.serving();
    expect((await plane.get('/debug/trace')).status).toBe(401);
    const response = await plane.watch('?follow=false');
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const [first, ...records] = linesOf(await response.text());
    expect(first).toMatchObject({ kind: 'header', program: 'pilot-discovery' });
    expect(records).toContainEqual(expect.objectContaining({ kind: 'spawn', actor: 'discovery' }));
  });

  it('reaches its readers to the last record when the control plane ends, and does not keep it from ending', async () => {
    const plane = await ControlPlane.serving();
    const watched = (await plane.watch()).text();
    const start = performance.now();
    plane.signal();
    expect(await plane.ended).toMatchObject({ exitCode: 0 });
    await plane.trace.end();
    // Its --shutdownDuration, which it would take for a request that goes on, is 2 s.
    expect(performance.now() - start).toBeLessThan(1_000);
    expect(linesOf(await watched).at(-1)).toMatchObject({ kind: 'stop', actor: 'discovery', status: 'done' });
  });
});
