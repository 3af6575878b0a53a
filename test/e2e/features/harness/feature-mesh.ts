/** A control plane, Envoys and applications, shared by the feature tests of a file (README.md). */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfigFile } from '../../../../src/model/config/config-file.ts';
import { problemText } from '../../../../src/model/config/problem.ts';
import { type CertificateAuthority, createAuthority } from '../../../certs/authority.ts';
import { DelayingProxy } from '../../../harness/delaying-proxy.ts';
import { eventually } from '../../../harness/eventually.ts';
import { freePorts } from '../../../harness/free-ports.ts';
import { Program } from '../../../harness/program.ts';
import { pilotDiscovery } from '../../../harness/program-files.ts';
import { HttpBackend, type HttpBackendOptions, TcpBackend, type TcpBackendOptions } from './backends.ts';
import { FeatureEnvoy, nodeOf, type ProxySettings } from './envoy.ts';
import { Explained } from './explained.ts';
import {
  type BackendResponse,
  type ConnectTo,
  openConnection,
  type ReceivedData,
  type RequestTo,
  sendRequest,
} from './requests.ts';
import { startWorkloadSecrets, type WorkloadSecrets } from './workload-secrets.ts';

export interface FeatureMeshOptions {
  readonly proxies: Readonly<Record<string, ProxySettings>>;
  /** Additions to the mesh configuration; the access log for the comparison with `explain` is added by default. */
  readonly meshConfig?: Readonly<Record<string, unknown>>;
  /** Environment of the control plane. */
  readonly env: Readonly<Record<string, string>>;
  /** Additional arguments of `discovery`. */
  readonly args: readonly string[];
  /** Additional arguments of every Envoy. */
  readonly envoyArgs: readonly string[];
  /** Compares each request with the result of `explain`. Set to false if the test configures its own access log. */
  readonly explains: boolean;
}

export interface ApplyOptions {
  /** Whether validation may reject objects: the other objects and the last valid ones apply. */
  readonly invalid?: boolean;
  /** Whether Envoy may reject a response. */
  readonly rejected?: boolean;
  /** Whether to wait until listeners and clusters are warm. Set to false if a dependency never arrives. */
  readonly warms?: boolean;
}

/** A host in a separate namespace that no proxy can see. It shows which files the control plane has pushed. */
const generationHost = (generation: number): string => `generation-${generation}.harness.test`;

export class FeatureMesh {
  /** Contains all files of this mesh until it is stopped. */
  readonly root = mkdtempSync(join(tmpdir(), 'chartpilot-feature-'));
  /** Issues the workload certificates and those of tests. */
  readonly authority: CertificateAuthority = createAuthority();
  readonly #options: FeatureMeshOptions;
  readonly #envoys = new Map<string, FeatureEnvoy>();
  readonly #delayingProxies: DelayingProxy[] = [];
  readonly #cleanups: (() => Promise<void> | void)[] = [];
  readonly #configDir = join(this.root, 'config');
  readonly #meshFile = join(this.root, 'mesh.yaml');
  readonly #accessLog = join(this.root, 'access.log');
  #backends: { close(): Promise<void> }[] = [];
  #pilot!: Program;
  #pilotHttp = 0;
  #xdsPort = 0;
  #generation = 0;
  #explained: Explained | undefined;

  private constructor(options: FeatureMeshOptions) {
    this.#options = options;
  }

  /** Starts the mesh. If a part fails, stops the others. */
  static async start(options: Partial<FeatureMeshOptions> & Pick<FeatureMeshOptions, 'proxies'>): Promise<FeatureMesh> {
    const ownLog = options.meshConfig?.accessLogFile !== undefined;
    const mesh = new FeatureMesh({ env: {}, args: [], envoyArgs: [], explains: !ownLog, ...options });
    try {
      await mesh.#start();
      return mesh;
    } catch (error) {
      await mesh.#end();
      throw error;
    }
  }

  /** A free port, for a gateway's server or a service. */
  async port(): Promise<number> {
    return (await freePorts(1))[0]!;
  }

  async ports<Names extends string>(...names: Names[]): Promise<Record<Names, number>> {
    const foundPorts = await freePorts(names.length);
    return Object.fromEntries(names.map((name, index) => [name, foundPorts[index]])) as Record<Names, number>;
  }

  /** An HTTP application; it is closed by the next {@link FeatureMesh.reset}, or at the end. */
  async http(name: string, options: HttpBackendOptions = {}): Promise<HttpBackend> {
    return this.#register(await HttpBackend.start(name, options));
  }

  async tcp(name: string, options: TcpBackendOptions = {}): Promise<TcpBackend> {
    return this.#register(await TcpBackend.start(name, options));
  }

  /**
   * Replaces the previous configuration by this YAML (or these files by name), and waits until every Envoy has applied it.
   * @throws Error if validation rejects an object, or Envoy a response, unless the options expect it
   */
  async apply(config: string | Readonly<Record<string, string>>, options: ApplyOptions = {}): Promise<void> {
    await this.#explained?.compare();
    const files = typeof config === 'string' ? { 'case.yaml': config } : config;
    if (!options.invalid) for (const [name, text] of Object.entries(files)) checkValid(name, text);
    for (const name of this.#files) if (!(name in files)) rmSync(join(this.#configDir, name));
    for (const [name, text] of Object.entries(files)) this.#write(name, text);
    this.#files = Object.keys(files);
    await this.#inForce(options);
  }

  /** Replaces the mesh configuration without waiting. */
  writeMeshConfig(meshConfig: Readonly<Record<string, unknown>>): void {
    this.#writeMeshConfig(meshConfig);
  }

  /** Writes a file of the configuration without waiting. The next {@link FeatureMesh.apply} must include it. */
  write(name: string, text: string): void {
    if (!this.#files.includes(name)) this.#files.push(name);
    this.#write(name, text);
  }

  /** @param proxy the proxy that forwards the request, for which explain runs too */
  async request(proxy: string, to: RequestTo): Promise<BackendResponse> {
    this.envoy(proxy);
    const response = await sendRequest(to);
    this.#explained?.requested(proxy, { ...to, kind: 'http' }, response.localPort);
    return response;
  }

  /**
   * Sends several requests, one after the other.
   * @returns the number of responses by backend, or by status if Envoy responded
   */
  async split(proxy: string, to: RequestTo, requests: number): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (let i = 0; i < requests; i++) {
      const { headers, status } = await this.request(proxy, to);
      const responder = String(headers['x-backend'] ?? status);
      counts[responder] = (counts[responder] ?? 0) + 1;
    }
    return counts;
  }

  async connect(proxy: string, to: ConnectTo): Promise<ReceivedData> {
    this.envoy(proxy);
    const connection = await openConnection(to);
    this.#explained?.requested(proxy, { ...to, kind: 'tcp' }, connection.localPort);
    return connection;
  }

  envoy(name: string): FeatureEnvoy {
    const envoy = this.#envoys.get(name);
    if (envoy === undefined) throw new Error(`no proxy ${name} in this mesh: ${[...this.#envoys.keys()].join(', ')}`);
    return envoy;
  }

  /** The control plane with its output lines. */
  get pilot(): Program {
    return this.#pilot;
  }

  /** Closes the connections between the control plane and all proxies with a latency; they reconnect. */
  disconnect(): void {
    for (const proxy of this.#delayingProxies) proxy.disconnect();
  }

  /** `host:port` of the control plane's pages. */
  get address(): string {
    return `127.0.0.1:${this.#pilotHttp}`;
  }

  /** Port of the control plane's plaintext xDS server. */
  get xdsPort(): number {
    return this.#xdsPort;
  }

  /** A page of the control plane, such as `/debug/syncz` or `/metrics`. */
  async page(path: string): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.#pilotHttp}${path}`)).text();
  }

  /**
   * Writes a file next to the configuration, such as a certificate.
   * @returns its path
   */
  file(name: string, text: string): string {
    writeFileSync(join(this.root, name), text);
    return join(this.root, name);
  }

  /** Closes the applications of the previous test. Optional. */
  async reset(): Promise<void> {
    for (const backend of this.#backends.splice(0)) await backend.close();
  }

  /**
   * Stops all programs.
   * @throws Error if explain and Envoy disagreed about a request
   */
  async stop(): Promise<void> {
    try {
      await this.#explained?.compare();
    } finally {
      await this.#end();
    }
    this.#explained?.conclude();
  }

  #files: string[] = [];

  async #start(): Promise<void> {
    const names = Object.keys(this.#options.proxies);
    const [xds, http, ...admin] = (await freePorts(2 + names.length)) as [number, number, ...number[]];
    this.#pilotHttp = http;
    this.#xdsPort = xds;
    mkdirSync(this.#configDir);
    this.#writeMeshConfig(this.#options.meshConfig ?? {});
    this.#startPilot(xds, http);
    const secrets = await this.#startSecrets();
    for (const [index, name] of names.entries()) {
      const settings = this.#options.proxies[name]!;
      const programOptions = {
        root: this.root,
        ip: `127.0.0.${index + 11}`,
        xdsPort: await this.#delayedPort(xds, settings),
        adminPort: admin[index]!,
        args: this.#options.envoyArgs,
      };
      this.#envoys.set(name, new FeatureEnvoy({ ...programOptions, name, settings, secretsPort: secrets?.port ?? 0 }));
    }
    await eventually('the control plane is ready', async () => (await this.page('/ready')) !== undefined, {
      hopeless: () => this.#pilot.hopeless(),
    });
    if (this.#options.explains) {
      const files = { configDir: this.#configDir, meshConfigFile: this.#meshFile, accessLog: this.#accessLog };
      this.#explained = new Explained({ ...files, env: this.#options.env, envoys: this.#envoys });
    }
    await this.apply('');
  }

  async #delayedPort(xdsPort: number, { roundTripMs = 0 }: ProxySettings): Promise<number> {
    if (roundTripMs === 0) return xdsPort;
    const proxy = await DelayingProxy.start({ to: xdsPort, roundTripMs });
    this.#delayingProxies.push(proxy);
    this.#cleanups.push(() => proxy.close());
    return proxy.port;
  }

  #startPilot(xds: number, http: number): void {
    const { executable, args } = pilotDiscovery();
    const flags = ['discovery', '--registries=', '--configDir', this.#configDir, '--meshConfig', this.#meshFile];
    flags.push('--grpcAddr', `127.0.0.1:${xds}`, '--httpAddr', `127.0.0.1:${http}`);
    flags.push('--monitoringAddr=', '--secureGRPCAddr=', '--httpsAddr=', '--shutdownDuration', '1s');
    this.#pilot = Program.run('pilot-discovery', executable, {
      args: [...args, ...flags, ...this.#options.args],
      env: { ...process.env, PILOT_DEBOUNCE_AFTER: '10ms', ...this.#options.env },
      cwd: this.root,
    });
    this.#cleanups.push(async () => void (await this.#pilot.stop({ signal: 'SIGKILL' })));
  }

  async #startSecrets(): Promise<WorkloadSecrets | undefined> {
    const identities = new Map<string, string>();
    for (const [index, [name, settings]] of Object.entries(this.#options.proxies).entries()) {
      const { id } = nodeOf(name, settings, `127.0.0.${index + 11}`);
      if (settings.identity !== undefined) identities.set(id, settings.identity);
    }
    if (identities.size === 0) return undefined;
    const secrets = await startWorkloadSecrets(this.authority, identities);
    this.#cleanups.push(() => secrets.close());
    return secrets;
  }

  /** The marker is written last, so a push context with the marker contains all earlier files. */
  async #inForce({ rejected: mayReject = false, warms = true }: ApplyOptions): Promise<void> {
    const host = generationHost(++this.#generation);
    this.#write('generation.yaml', generationEntry(host));
    const hopeless = (): string | undefined => this.#pilot.hopeless();
    const version = await eventually(
      `the control plane has pushed generation ${this.#generation}`,
      async () => {
        const status = JSON.parse(await this.page('/debug/push_status')) as Record<string, object | undefined>;
        if (!Object.keys(status.pilot_eds_no_instances ?? {}).some((key) => key.startsWith(`${host}.`))) return;
        return (JSON.parse(await this.page('/debug/pushcontext')) as { version: string }).version;
      },
      { hopeless },
    );
    await eventually('every Envoy has acknowledged it', () => this.#isAcknowledged(countOf(version), mayReject), {
      hopeless: () => hopeless() ?? this.#endedEnvoy() ?? this.#refusal(mayReject),
    }).catch((error: Error) => {
      throw new Error(`${error.message}\n${version} ${this.#lastStates}`);
    });
    if (!warms) return;
    for (const envoy of this.#envoys.values()) await envoy.warmed();
    // Envoy's workers apply a new listener or route shortly after the main thread.
    await sleep(10);
  }

  #rejection: string | undefined;
  #lastStates = '';

  async #isAcknowledged(count: number, mayReject: boolean): Promise<boolean> {
    const all = JSON.parse(await this.page('/debug/proxyz')) as ProxyState[];
    // A test may connect other clients.
    const proxies = all.filter(({ proxy }) => this.#envoys.has(proxy.slice(0, proxy.indexOf('.'))));
    const rejectedTypes = proxies
      .filter(({ context }) => countOf(context) >= count)
      .flatMap(({ proxy, types }) =>
        types
          .filter(isWatched)
          // A rejection may belong to the previous test until a later response is sent and acknowledged.
          .filter(({ pending }) => pending === undefined)
          .flatMap((type) => (type.rejected ? [`${proxy} rejected ${type.type}: ${type.rejected}`] : [])),
      );
    this.#rejection = rejectedTypes.join('\n') || undefined;
    this.#lastStates = JSON.stringify(proxies);
    const isDone = ({ context, types }: ProxyState): boolean =>
      countOf(context) >= count &&
      types.length >= 2 &&
      types
        .filter((type) => isWatched(type) && !isMissingSecret(type))
        .every(
          ({ state, pending }) => pending === undefined && (state === 'SYNCED' || (mayReject && state === 'ERROR')),
        );
    return proxies.length === this.#envoys.size && proxies.every(isDone);
  }

  /** The last output of an Envoy that crashed on its configuration. */
  #endedEnvoy(): string | undefined {
    return [...this.#envoys.values()].map(({ program }) => program.hopeless()).find((reason) => reason !== undefined);
  }

  #refusal(mayReject: boolean): string | undefined {
    return mayReject ? undefined : this.#rejection;
  }

  #writeMeshConfig(meshConfig: Readonly<Record<string, unknown>>): void {
    const log = this.#options.explains ? Explained.meshConfig(this.#accessLog) : {};
    writeFileSync(`${this.#meshFile}.saving`, JSON.stringify({ ...log, ...meshConfig }));
    renameSync(`${this.#meshFile}.saving`, this.#meshFile);
  }

  /** Replaces the file by a rename, as most editors do. */
  #write(name: string, text: string): void {
    writeFileSync(join(this.#configDir, `.${name}.saving`), text);
    renameSync(join(this.#configDir, `.${name}.saving`), join(this.#configDir, name));
  }

  #register<Backend extends { close(): Promise<void> }>(backend: Backend): Backend {
    this.#backends.push(backend);
    return backend;
  }

  async #end(): Promise<void> {
    for (const envoy of this.#envoys.values()) await envoy.stop();
    for (const close of this.#cleanups.splice(0)) await close();
    await this.reset();
    rmSync(this.root, { recursive: true, force: true });
  }
}

interface ProxyState {
  readonly proxy: string;
  readonly context: string;
  readonly types: readonly {
    readonly type: string;
    readonly state: string;
    readonly watches: '*' | number;
    readonly rejected?: string;
    readonly pending?: string;
  }[];
}

/** Missing Secrets get no response. */
function isMissingSecret({ type, state }: ProxyState['types'][number]): boolean {
  return type.endsWith('.Secret') && state === 'NOT_SENT';
}

/** Rejections of resources that are no longer requested do not matter. */
function isWatched({ watches }: ProxyState['types'][number]): boolean {
  return watches !== 0;
}

/** Versions have the form `TIME/COUNT`. */
function countOf(version: string): number {
  return Number(version.slice(version.lastIndexOf('/') + 1));
}

function checkValid(name: string, text: string): void {
  const { problems } = readConfigFile(name, text, { creationTimestamp: 0 });
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(`not valid:\n${errors.map(problemText).join('\n')}`);
}

function generationEntry(host: string): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: generation, namespace: harness}
spec:
  hosts: [${host}]
  exportTo: [.]
  resolution: STATIC
  ports: [{number: 1, name: tcp, protocol: TCP}]
  workloadSelector: {labels: {nobody: has-this}}
`;
}
