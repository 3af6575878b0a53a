/** A complete control plane in the test's process: files in, gRPC and HTTP out. */
import { EventEmitter } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import type { ChannelCredentials, ClientOptions } from '@grpc/grpc-js';
import type { DiscoveryOutput } from '../../machines/discovery/discovery.machine.ts';
import { TraceChecker } from '../../src/debugger/check/check.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import type { DiscoveryProgram } from '../../src/discovery/discovery-program.ts';
import { runDiscovery } from '../../src/discovery/discovery-system.ts';
import type { DiscoveryFlags } from '../../src/discovery/options/discovery-flags.ts';
import { resolveDiscoveryOptions } from '../../src/discovery/options/discovery-options.ts';
import { ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { createLogger, silentLogger } from '../../src/runtime/output/log.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { DebuggerAccess } from '../../src/runtime/trace/debugger-access.ts';
import { readDebuggerToken } from '../../src/runtime/trace/debugger-token.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { TraceEndpoint } from '../../src/runtime/trace/trace-endpoint.ts';
import { TraceRing } from '../../src/runtime/trace/trace-ring.ts';
import { AdsTestClient, type SotwStream, typeUrls } from '../ads-client.ts';
import { eventually } from './eventually.ts';
import { unexpectedErrorsIn } from './unexpected-errors.ts';

export const sidecar = {
  id: 'sidecar~127.0.0.1~web-0.shop~shop.svc.cluster.local',
  cluster: 'web',
  metadata: { NAMESPACE: 'shop', INTERCEPTION_MODE: 'NONE', ISTIO_VERSION: '1.30.0', LABELS: { app: 'web' } },
};
/** Cluster of the service of {@link serviceEntry}. */
export const cartCluster = 'outbound|80||cart.example.com';

const runningPlanes: ControlPlane[] = [];

/** Stops all control planes of the test; for `afterEach`. */
export async function stopControlPlanes(): Promise<void> {
  for (const plane of runningPlanes.splice(0)) await plane.stop();
}

/** A control plane with its own folder. */
export class ControlPlane {
  readonly root = mkdtempSync(join(tmpdir(), 'chartpilot-discovery-'));
  readonly lines: string[] = [];
  readonly records: TraceRecord[] = [];
  readonly ended: Promise<DiscoveryOutput>;
  readonly trace: TraceEndpoint;
  readonly #signals = new EventEmitter();
  readonly #clients: AdsTestClient[] = [];
  readonly #streams: SotwStream[] = [];

  /** @param prepare called before the start, when the folder exists */
  constructor(
    flags: DiscoveryFlags = {},
    files: Record<string, string> = { 'cart.yaml': serviceEntry() },
    prepare: (plane: { root: string }) => void = () => {},
    env: NodeJS.ProcessEnv = {},
    programOptions: Partial<DiscoveryProgram> = {},
  ) {
    runningPlanes.push(this);
    mkdirSync(join(this.root, 'config'));
    prepare(this);
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    const ring = new TraceRing(1_000);
    const recorder = createRecorder({ program: 'pilot-discovery', sinks: [ring] });
    const access = new DebuggerAccess({ runDir: this.root });
    this.trace = new TraceEndpoint({ ring, mode: 'on', access, log: silentLogger });
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
        httpsAddr: '',
        shutdownDuration: '2s',
        ...flags,
      },
      env,
    );
    const log = createLogger({ write: (line) => this.lines.push(line.trimEnd()) });
    this.ended = runDiscovery({
      options,
      log,
      recorder,
      version: 'test',
      access,
      trace: this.trace,
      signals: this.#signals as never,
      ...programOptions,
    });
  }

  static async serving(flags: DiscoveryFlags = {}, files?: Record<string, string>): Promise<ControlPlane> {
    const plane = new ControlPlane(flags, files);
    await plane.ready();
    return plane;
  }

  /** A control plane that may fail to start. */
  static starting(
    flags: DiscoveryFlags,
    prepare: (plane: { root: string }) => void = () => {},
    env: NodeJS.ProcessEnv = {},
  ): ControlPlane {
    return new ControlPlane(flags, undefined, prepare, env);
  }

  async ready(): Promise<void> {
    await eventually('the control plane is ready', async () => (await this.get('/ready')).status === 200);
  }

  /** Writes a file of the configuration directory. */
  write(name: string, text: string): void {
    writeFileSync(join(this.root, 'config', name), text);
  }

  /** Headers of a caller that may read the token file of the HTTP port. */
  get operator(): Record<string, string> {
    return { authorization: `Bearer ${readDebuggerToken(this.port('http.listening'), { runDir: this.root })}` };
  }

  async get(
    path: string,
    { method = 'GET', headers = this.operator }: { method?: string; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; text: string; json: () => never }> {
    const response = await fetch(`http://${this.#address('http.listening')}${path}`, { method, headers });
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

  /** Returns the port number in this event. */
  port(event: string, index = 0): number {
    const eventRecord = this.records.filter((record) => record.kind === 'event' && record.event.type === event)[index];
    if (eventRecord?.kind !== 'event') throw new Error(`no ${event} yet`);
    return Number((eventRecord.event.addresses as string[])[0]!.split(':').at(-1));
  }

  /** @param at a port, or the event whose last occurrence contains the address */
  client(at: string | number, credentials?: ChannelCredentials, options?: ClientOptions): AdsTestClient {
    const port = typeof at === 'number' ? at : Number(this.#address(at).split(':').at(-1));
    const client = new AdsTestClient(port, credentials, options);
    this.#clients.push(client);
    return client;
  }

  /**
   * Opens a stream whose first request names a sidecar and requests clusters.
   * @returns the stream and the cluster names
   */
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

  /** The stream of the trace, as sent to a client with the token. */
  async watch(query = ''): Promise<Response> {
    return fetch(`http://${this.#address('http.listening')}/debug/trace${query}`, { headers: this.operator });
  }

  troubles(): string[] {
    return this.lines.filter((line) => /\t(warn|error)\t/.test(line));
  }

  /** Warnings and errors, except those that only a busy machine causes. */
  unexpectedErrors(): string[] {
    return unexpectedErrorsIn(this.troubles());
  }

  signal(): void {
    this.#signals.emit('SIGTERM', 'SIGTERM');
  }

  async stop(): Promise<void> {
    // A stream with a pending response would delay the shutdown.
    for (const stream of this.#streams) stream.cancel();
    for (const client of this.#clients) client.close();
    this.signal();
    await this.ended;
    rmSync(this.root, { recursive: true, force: true });
  }

  deviations(): unknown[] {
    const checker = new TraceChecker(loadDiagrams(join(packageRoot(), 'machines/discovery/sequences')));
    for (const record of this.records) checker.feed(record);
    return checker.report().departures;
  }

  #address(event: string): string {
    const eventRecord = this.records.findLast((record) => record.kind === 'event' && record.event.type === event);
    if (eventRecord?.kind !== 'event') throw new Error(`no ${event} yet`);
    return (eventRecord.event.addresses as string[])[0]!;
  }
}

export function serviceEntry(addresses: readonly string[] = ['10.1.1.1'], port = 80): string {
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
