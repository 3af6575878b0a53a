/**
 * The control plane's statecharts with scripted effects, under a virtual clock. The test acts as file system, network and proxies: it decides what
 * files contain, which ports open, and when a context is built.
 */
import { type Actor, type AnyActorRef, type AnyEventObject, type EventObject, fromCallback, fromPromise } from 'xstate';
import {
  type BundleResponse,
  type TrustBundleInput,
  trustBundleMachine,
} from '../../machines/discovery/bundles/trust-bundle.machine.ts';
import { trustBundlesMachine } from '../../machines/discovery/bundles/trust-bundles.machine.ts';
import {
  type ConfigReading,
  configControllerMachine,
} from '../../machines/discovery/config/config-controller.machine.ts';
import { configSourceMachine, type SourceSummary } from '../../machines/discovery/config/config-source.machine.ts';
import { meshConfigMachine, type SettingsReading } from '../../machines/discovery/config/mesh-config.machine.ts';
import {
  type DiscoveryOutput,
  discoveryMachine,
  type Preparation,
} from '../../machines/discovery/discovery.machine.ts';
import {
  type DistributionSummary,
  distributionMachine,
} from '../../machines/discovery/distribution/distribution.machine.ts';
import {
  electedWriterMachine,
  type WriteOutcome,
  type WriteRun,
} from '../../machines/discovery/election/elected-writer.machine.ts';
import { electionsMachine } from '../../machines/discovery/election/elections.machine.ts';
import {
  type LeaseOrder,
  type LeaseSighting,
  type LeaseWriteResult,
  leaderMachine,
} from '../../machines/discovery/election/leader.machine.ts';
import { jwksMachine, type KeySource } from '../../machines/discovery/jwks/jwks.machine.ts';
import { type IssuerResponse, keySetMachine } from '../../machines/discovery/jwks/key-set.machine.ts';
import { apiServerMachine, type PingResult } from '../../machines/discovery/kubernetes/api-server.machine.ts';
import { nameServerMachine } from '../../machines/discovery/names/name-server.machine.ts';
import type {
  AdsOrder,
  ConfigChange,
  ConfigProblem,
  HttpOrder,
  ListedRegistry,
  PreparedStage,
  SettingsName,
  SourcesList,
  StopSignal,
} from '../../machines/discovery/protocol.ts';
import { type PublishedContext, pushMachine } from '../../machines/discovery/push/push.machine.ts';
import { registrationsMachine } from '../../machines/discovery/registration/registrations.machine.ts';
import {
  type GatewayNameInput,
  gatewayNameMachine,
  type NameResolution,
} from '../../machines/discovery/registry/gateway-name.machine.ts';
import { gatewayNamesMachine } from '../../machines/discovery/registry/gateway-names.machine.ts';
import { registryMachine } from '../../machines/discovery/registry/registry.machine.ts';
import { serviceRegistryMachine } from '../../machines/discovery/registry/service-registry.machine.ts';
import type { ServicesOrder, ServicesReading } from '../../machines/discovery/registry/service-registry.setup.ts';
import { remoteClustersMachine } from '../../machines/discovery/remote/remote-clusters.machine.ts';
import {
  type AccessResult,
  type AccessReviewInput,
  accessReviewMachine,
} from '../../machines/discovery/secrets/access-review.machine.ts';
import {
  type CredentialDates,
  credentialDatesMachine,
} from '../../machines/discovery/secrets/credential-dates.machine.ts';
import { secretAccessMachine } from '../../machines/discovery/secrets/secret-access.machine.ts';
import type { DiscoverySettings } from '../../machines/discovery/settings.ts';
import { webhookServerMachine } from '../../machines/discovery/webhooks/webhook-server.machine.ts';
import { fileOrSourceOf } from '../../src/discovery/config/sources/config-problem.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { relay } from '../../src/runtime/actors/relay-event.ts';
import { actorName } from '../../src/runtime/trace/known-actors.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import { stateName } from '../../src/runtime/trace/statechart.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from './virtual-clock.ts';

type Send = (event: AnyEventObject) => void;

export const scriptedSettings: DiscoverySettings = {
  cluster: null,
  elections: null,
  mesh: { file: 'mesh', settleMs: 100 },
  networks: { file: 'meshNetworks', settleMs: 100 },
  configs: { quietMs: 5, coalesceMs: 20 },
  registries: { firstListsMs: 30_000 },
  readsConsul: false,
  registrations: { graceMs: 10_000 },
  jwks: { refreshMs: 1_200_000, firstKeysTimeoutMs: 5_000 },
  push: { debounceAfterMs: 100, debounceMaxMs: 10_000, debounceEndpoints: true },
  pushQueue: { throttle: 25 },
  servesNames: false,
  servesWebhooks: false,
  secure: false,
  hasAuthority: false,
  sharesAuthority: false,
  authority: { checkMs: 3_600_000, settleMs: 100 },
  serverCertificate: { checkMs: 3_600_000, settleMs: 100 },
  shutdownMs: 10_000,
};

/** A context build that the test completes. */
export interface ScriptedBuild {
  readonly forced: boolean;
  readonly configs: readonly string[];
  /** Virtual time at which it began. */
  readonly startedAt: number;
  finish(): void;
  fail(reason: string): void;
}

/** Errors in the objects. */
export function problem(message: string): ConfigProblem {
  return {
    severity: 'error',
    place: { file: 'routes.yaml', line: 3 },
    object: 'VirtualService/shop/cart',
    field: 'spec.http',
    message,
  };
}

export function readingOf(changes: ConfigChange[] = [], problems: ConfigProblem[] = []): ConfigReading {
  return {
    outcome: 'read',
    version: `v${changes.length}`,
    objects: 3,
    changes,
    problems,
    problemCount: problems.length,
    recovered: [],
  };
}

export class DiscoveryWorld {
  /** All worlds of this process, for checks after tests. */
  static readonly instances: DiscoveryWorld[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  readonly builds: ScriptedBuild[] = [];
  /** Contexts are built immediately; false: the test completes each build. */
  buildsAtOnce = true;
  /** Results of the next reads. An error is an internal error of the effect. */
  settings: Record<SettingsName, SettingsReading | Error> = {
    mesh: { outcome: 'absent', defaults: 'built-in' },
    networks: { outcome: 'absent', defaults: 'built-in' },
  };
  directory: ConfigReading | Error = readingOf();
  /** Result of a merge of the sources (default: {@link directory}). An error is an internal error of the effect. */
  joinResult: ConfigReading | Error | undefined;
  /** Addresses of sources whose first read waits for {@link read}. */
  unreadSources: string[] = [];
  /** Addresses of missing sources. */
  missingSources: string[] = [];
  /** The sources merged in each merge, and the known sources. */
  readonly joinedSources: string[][] = [];
  readonly knownSources: string[][] = [];
  /** Registries as `Provider/cluster`; with `@revision` unless it is the first. */
  registries: readonly string[] = ['External/c1'];
  /** The list of registries is unknown at the start. */
  listsLate = false;
  /** Registries that do not report their services by themselves. */
  slowRegistries: readonly string[] = [];
  /** Registries that fail to start. */
  unreachableRegistries: readonly string[] = [];
  /** Names of the registries' effects, by registry. */
  readonly feeds = new Map<string, string>();
  /** The registries in each computation of services. */
  readonly computedFrom: (string[] | null)[] = [];
  services: ServicesReading | Error = { services: 2, endpoints: 4, changedServices: [], changedEndpoints: [] };
  /** Key sets that the objects need. An error is an internal error of the effect. */
  keySources: KeySource[] | Error = [];
  /** Next responses of issuers, by source: the version of their keys (default: no response). */
  issuers: Record<string, string | Error> = {};
  /** Requests to issuers, with virtual times. */
  readonly keyRequests: { source: string; at: number }[] = [];
  /** Bundle endpoints in the mesh configuration. An error is an internal error of the effect. */
  endpoints: TrustBundleInput[] | Error = [];
  /** Next responses of bundle endpoints (default: no response), and their stored bundles (default: none). */
  bundles: Record<string, BundleResponse | Error> = {};
  keptBundles: Record<string, BundleResponse> = {};
  /** Dates of credentials, as determined at a time of the world's clock. */
  readDates: (at: number) => CredentialDates | Error = () => ({ due: [], nextInMs: null });
  readonly datesComparedAt: number[] = [];
  /** Requests to bundle endpoints, with virtual times. */
  readonly bundleRequests: (TrustBundleInput & { at: number })[] = [];
  /** Bundles that became active. */
  readonly adoptedBundles: { endpoint: string; version: string }[] = [];
  publishedCount = 0;
  /** Result of a computation of the distribution. */
  computation: DistributionSummary | Error | Promise<DistributionSummary> = { unfinished: 0, tookMs: 0 };
  /** Times of computations. */
  readonly computedAt: number[] = [];
  /** Next responses of the API server about accounts (default: no response). An error is an internal error of the effect. */
  access: Record<string, AccessResult | Error> = {};
  /** Access reviews, with virtual times. */
  readonly reviews: { account: string; at: number }[] = [];
  /** Changes of access that took effect, such as `account true`. */
  readonly adoptedAccess: string[] = [];
  /** Operations on Leases. */
  readonly leases: string[] = [];
  /** Result of Lease writes; `undefined`: the API server accepts them. */
  leaseResult: LeaseWriteResult | Promise<never> | undefined;
  /** Writes of an elected replica never complete during a stop. */
  hangs = false;
  /** Host names of gateways. An error is an internal error of the effect. */
  gatewayNames: string[] | Error = [];
  /** Next responses of DNS (default: no response). An error is an internal error of the effect. */
  dns: Record<string, NameResolution | Error> = {};
  /** Resolved names, with virtual times. */
  readonly nameRequests: { hostname: string; at: number }[] = [];
  /** `hostname address,address`, in the order in which they took effect. */
  readonly adoptedNames: string[] = [];
  #sendNames: Send = () => {};
  /** The servers' response to an order to open; undefined: no response. */
  http: AnyEventObject | undefined = { type: 'http.listening', addresses: ['127.0.0.1:8080'] };
  ads: AnyEventObject | undefined = { type: 'ads.listening', addresses: ['127.0.0.1:15010'] };
  /** Whether streams and requests end in a drain. */
  drains = true;
  /** Prepared stages of the start, and failing ones with the reason. An error is an internal error of the effect. */
  readonly preparedStages: PreparedStage[] = [];
  failingStages: Partial<Record<PreparedStage, string | Error>> = {};
  /** Sources of configuration; a string is the reason why an address is invalid. */
  sources: string[] | string = ['fs://config'];
  readonly appliedVersions: string[] = [];
  readonly orders: AnyEventObject[] = [];
  failure: unknown;
  readonly discovery: Actor<typeof discoveryMachine>;
  readonly #sendByEffect = new Map<string, Send>();
  readonly #heldReads = new Map<string, () => void>();
  #meshCount = 0;

  constructor(settings: Partial<DiscoverySettings> = {}, script: Partial<DiscoveryWorld> = {}) {
    Object.assign(this, script);
    DiscoveryWorld.instances.push(this);
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    recorder.observe((record) => this.records.push(record));
    this.discovery = startRoot(this.#machine(), {
      id: 'discovery',
      input: { settings: { ...scriptedSettings, ...settings } },
      recorder,
      clock: this.clock as never,
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  /** A world in which the control plane serves. */
  static async startServing(settings: Partial<DiscoverySettings> = {}): Promise<DiscoveryWorld> {
    const world = new DiscoveryWorld(settings);
    await world.settle();
    if (world.state() !== 'active.operating.serving') throw new Error(`not serving: ${world.state()}`);
    return world;
  }

  /** Resolves promises of effects without advancing time. */
  async settle(): Promise<void> {
    for (let tick = 0; tick < 60; tick++) await Promise.resolve();
  }

  /** Advances time from deadline to deadline, so that effects respond in between. */
  async passTime(ms: number): Promise<void> {
    const untilMs = this.clock.now() + ms;
    await this.settle();
    for (
      let next = this.clock.pendingDelays()[0];
      next !== undefined && this.clock.now() + next <= untilMs;
      next = this.clock.pendingDelays()[0]
    ) {
      this.clock.fireNext();
      await this.settle();
    }
    this.clock.advance(untilMs - this.clock.now());
    await this.settle();
  }

  /** Sends an event of the effect with this name (`config-controller/files`). */
  sendFrom(effect: string, event: AnyEventObject): void {
    const send = this.#sendByEffect.get(effect);
    if (send === undefined) throw new Error(`${effect} is not running`);
    send(event);
  }

  /** Sends an order of `discovery` to one of its actors. */
  sendTo(actor: string, event: AnyEventObject): void {
    relay(this.discovery, this.discovery.system.get(actor) as AnyActorRef, event);
  }

  /** Sends an event of a registry. */
  fromRegistry(registry: string, type: 'synced' | 'changed' | 'failed', reason = 'connection lost'): void {
    const event = { type: `registry.${type}`, registry, ...(type === 'failed' && { reason }) };
    this.sendFrom(this.feeds.get(registry) ?? registry, event);
  }

  /** Changes the list of registries. */
  listRegistries(...registries: string[]): void {
    this.sendFrom('service-registry/registries', {
      type: 'registries.listed',
      registries: registries.map(parseRegistry),
    });
  }

  /** Changes the sources in the mesh configuration; a string is the reason why an address is invalid. */
  async changeSources(sources: string[] | string): Promise<void> {
    this.sources = sources;
    this.settings.mesh = { outcome: 'valid', version: `mesh-${++this.#meshCount}` };
    this.sendFrom('mesh-config/files', { type: 'files.changed', path: 'mesh' });
    await this.passTime(100);
  }

  signal(signal: StopSignal = 'SIGTERM'): void {
    this.sendFrom('discovery/signals', { type: 'signal.received', signal });
  }

  /** Changes a file of the configuration directory. `reading`: result of the next read. */
  async changeDirectory(reading: ConfigReading | Error): Promise<void> {
    this.directory = reading;
    this.sendFrom('config-source-1/watch', { type: 'source.changed', place: 'routes.yaml' });
    await this.passTime(5);
  }

  state(): string {
    return stateName(this.discovery.getSnapshot().value);
  }

  output(): DiscoveryOutput | undefined {
    return this.discovery.getSnapshot().output;
  }

  /** Running effects and timers; empty after the end. */
  pendingWork(): string[] {
    return [...this.#sendByEffect.keys(), ...this.clock.pendingDelays().map((ms) => `a timer of ${ms} ms`)];
  }

  /** The events that passed between actors, as `from → to: type`. */
  messages(): string[] {
    return this.records.flatMap((r) => (r.kind === 'event' ? [`${r.from} → ${r.to}: ${r.event.type}`] : []));
  }

  /** The events of a type that passed, with their payload. */
  events(type: string): AnyEventObject[] {
    return this.records.flatMap((r) =>
      r.kind === 'event' && r.event.type === type ? [r.event as AnyEventObject] : [],
    );
  }

  #machine() {
    const apiServer = apiServerMachine.provide({
      actors: {
        // Never responds.
        ping: fromPromise<PingResult, { server: string }>(() => new Promise(() => {})),
        watchDefinitions: this.#effect(),
      },
    });
    const settings = meshConfigMachine.provide({
      actors: {
        watchFile: this.#effect(),
        readSettings: fromPromise<SettingsReading, { name: SettingsName; file: string }>(async ({ input }) =>
          orThrow(this.settings[input.name]),
        ),
      },
      actions: { applySettings: (_, params) => void this.appliedVersions.push(params.version) },
    });
    const configController = configControllerMachine.provide({
      actors: {
        configSource: configSourceMachine.provide({
          actors: {
            watchSource: this.#effect(),
            readSource: fromPromise<SourceSummary, { source: string; places: string[] }>(({ input }) =>
              this.#readSource(input.source),
            ),
          },
        }),
        listSources: this.#sources(),
        mergeSources: fromPromise<ConfigReading, { sources: string[]; known: string[] }>(async ({ input }) => {
          this.joinedSources.push(input.sources);
          this.knownSources.push(input.known);
          return orThrow(this.joinResult ?? this.directory);
        }),
      },
    });
    const serviceRegistry = serviceRegistryMachine.provide({
      actors: {
        listRegistries: this.#registries(),
        gatewayNames: gatewayNamesMachine.provide({
          actors: {
            listNames: fromCallback(({ sendBack }) => {
              this.#sendNames = sendBack;
              if (this.gatewayNames instanceof Error) throw this.gatewayNames;
              sendBack({ type: 'gateway-names.listed', hostnames: this.gatewayNames });
            }),
            gatewayName: gatewayNameMachine.provide({
              actors: {
                resolveName: fromPromise<NameResolution, GatewayNameInput>(async ({ input: { hostname } }) => {
                  this.nameRequests.push({ hostname, at: this.clock.now() });
                  const response = this.dns[hostname];
                  return response === undefined ? new Promise(() => {}) : orThrow(response);
                }),
              },
              actions: {
                applyAddresses: ({ context: { hostname } }, response) => {
                  if (response.outcome === 'resolved')
                    this.adoptedNames.push(`${hostname} ${response.addresses.join()}`);
                },
              },
            }),
          },
        }),
        registry: registryMachine.provide({ actors: { runRegistry: this.#registry() } }),
        computeServices: fromPromise<ServicesReading, ServicesOrder>(async ({ input }) => {
          this.computedFrom.push(input.registries);
          return orThrow(this.services);
        }),
      },
    });
    const jwks = jwksMachine.provide({
      actors: {
        findKeySources: fromPromise<KeySource[], undefined>(async () => orThrow(this.keySources)),
        keySet: keySetMachine.provide({
          actors: {
            fetchKeySet: fromPromise<IssuerResponse, { source: string; timeoutMs: number }>(async ({ input }) => {
              this.keyRequests.push({ source: input.source, at: this.clock.now() });
              const response = this.issuers[input.source];
              if (response === undefined) return new Promise(() => {});
              return response instanceof Error
                ? { outcome: 'failed', reason: response.message }
                : { outcome: 'fetched', version: response };
            }),
          },
        }),
      },
    });
    const trustBundles = trustBundlesMachine.provide({
      actors: {
        findEndpoints: fromPromise<TrustBundleInput[], undefined>(async () => orThrow(this.endpoints)),
        trustBundle: trustBundleMachine.provide({
          actors: {
            recallBundle: fromPromise<BundleResponse, TrustBundleInput>(
              async ({ input }) => this.keptBundles[input.endpoint] ?? { outcome: 'failed', reason: 'nothing is kept' },
            ),
            fetchBundle: fromPromise<BundleResponse, TrustBundleInput>(async ({ input }) => {
              this.bundleRequests.push({ ...input, at: this.clock.now() });
              const response = this.bundles[input.endpoint];
              return response === undefined ? new Promise(() => {}) : orThrow(response);
            }),
          },
          actions: {
            applyBundle: ({ context }, { version }) =>
              void this.adoptedBundles.push({ endpoint: context.endpoint, version }),
          },
        }),
      },
      actions: { publishRoots: () => void this.publishedCount++ },
    });
    const secretAccess = secretAccessMachine.provide({
      actors: {
        watchAccounts: this.#effect(),
        accessReview: accessReviewMachine.provide({
          actors: {
            reviewAccess: fromPromise<AccessResult, AccessReviewInput>(async ({ input: { account } }) => {
              this.reviews.push({ account, at: this.clock.now() });
              const response = this.access[account];
              return response === undefined ? new Promise(() => {}) : orThrow(response);
            }),
          },
        }),
      },
      actions: { applyReview: (_, { account, allowed }) => void this.adoptedAccess.push(`${account} ${allowed}`) },
    });
    const push = pushMachine.provide({
      actors: {
        buildContext: fromPromise<PublishedContext, { forced: boolean; configs: string[] }>(({ input }) =>
          this.#build(input),
        ),
      },
    });
    return discoveryMachine.provide({
      actors: {
        apiServer,
        secretAccess,
        distribution: distributionMachine.provide({
          actors: {
            watchFacts: this.#effect(),
            computeDelivery: fromPromise<DistributionSummary, undefined>(async () => {
              this.computedAt.push(this.clock.now());
              return orThrow(await this.computation);
            }),
          },
        }),
        // No Secret defines a cluster; see test/model/remote-clusters.test.ts.
        remoteClusters: remoteClustersMachine.provide({ actors: { listClusters: this.#effect() } }),
        elections: this.#elections(),
        // No workload registers itself; see test/model/registration.test.ts.
        registrations: registrationsMachine.provide({ actors: { watchWorkloads: this.#effect() } }),
        signals: this.#effect(),
        prepare: fromPromise<Preparation, { stage: PreparedStage }>(async ({ input: { stage } }) => {
          this.preparedStages.push(stage);
          const outcome = this.failingStages[stage];
          if (outcome !== undefined) return { failure: orThrow(outcome) };
          return {};
        }),
        http: this.#server<HttpOrder>('http', 'http.open', () => this.http, { 'http.close': 'http.closed' }),
        adsServer: this.#server<AdsOrder>('ads-server', 'ads.listen', () => this.ads, { 'ads.drain': 'ads.drained' }),
        meshConfig: settings,
        configController,
        serviceRegistry,
        jwks,
        trustBundles,
        nameServer: nameServerMachine.provide({ actors: { port: this.#effect() } }),
        webhookServer: webhookServerMachine.provide({ actors: { port: this.#effect() } }),
        credentialDates: credentialDatesMachine.provide({
          actors: {
            compareDates: fromPromise<CredentialDates, undefined>(async () => {
              this.datesComparedAt.push(this.clock.now());
              return orThrow(this.readDates(this.clock.now()));
            }),
          },
        }),
        push,
      },
    });
  }

  /** This replica acquires each Lease as soon as it is a candidate; see test/model/leader.test.ts. */
  #elections() {
    const leaseTaken: LeaseWriteResult = {
      ...{ outcome: 'taken', version: '1', sent: { monotonicMs: 0, wallMs: 0 }, tookMs: 0, draw: 0 },
    };
    const writer = electedWriterMachine.provide({
      actors: {
        watchDuty: this.#effect(),
        writeDuty: fromPromise<WriteOutcome, WriteRun>(async () => ({ written: 1, failed: 0, reason: '' })),
      },
    });
    const leader = leaderMachine.provide({
      actors: {
        readLease: fromPromise<LeaseSighting, { lease: string }>(async () => ({ outcome: 'absent', draw: 0 })),
        writeLease: fromPromise<LeaseWriteResult, LeaseOrder>(async ({ input: { operation, lease } }) => {
          this.leases.push(`${operation} ${lease}`);
          return this.leaseResult ?? leaseTaken;
        }),
        finishWrites: fromPromise<undefined, { lease: string }>(async () => {
          if (this.hangs) await new Promise(() => {});
          return undefined;
        }),
        electedWriter: writer,
      },
    });
    return electionsMachine.provide({ actors: { leader } });
  }

  /** Changes the host names of gateways. */
  async setGatewayNames(hostnames: string[]): Promise<void> {
    this.#sendNames({ type: 'gateway-names.listed', hostnames });
    await this.settle();
  }

  /** Completes a source's delayed first read. */
  async read(source: string): Promise<void> {
    this.unreadSources = this.unreadSources.filter((one) => one !== source);
    this.#heldReads.get(source)?.();
    await this.settle();
  }

  async #readSource(source: string): Promise<SourceSummary> {
    if (this.unreadSources.includes(source)) await new Promise<void>((resolve) => this.#heldReads.set(source, resolve));
    if (this.missingSources.includes(source)) return { outcome: 'missing', reason: `${source}: no such directory` };
    const reading = orThrow(this.directory);
    return reading.outcome === 'read'
      ? { outcome: 'read', objects: reading.objects, problems: reading.problemCount, changed: true }
      : {
          outcome: 'missing',
          reason: reading.problems.map(({ place, message }) => `${fileOrSourceOf(place)}: ${message}`).join('; '),
        };
  }

  #sources() {
    return fromCallback<SourcesList, undefined>(({ sendBack, receive }) => {
      receive(() =>
        sendBack(
          typeof this.sources === 'string'
            ? { type: 'sources.invalid', reason: this.sources }
            : { type: 'sources.listed', sources: this.sources },
        ),
      );
    });
  }

  #registries() {
    return fromCallback<{ type: never }, undefined>(({ sendBack, self }) => {
      this.#sendByEffect.set(actorName(self), sendBack as Send);
      if (!this.listsLate)
        (sendBack as Send)({ type: 'registries.listed', registries: this.registries.map(parseRegistry) });
      return () => this.#sendByEffect.delete(actorName(self));
    });
  }

  /** A registry, synced immediately unless the test lists it in `slowRegistries`. */
  #registry() {
    return fromCallback<{ type: never }, ListedRegistry>(({ input: { registry }, sendBack, self }) => {
      const name = actorName(self);
      this.#sendByEffect.set(name, sendBack as Send);
      this.feeds.set(registry, name);
      if (this.unreachableRegistries.includes(registry)) throw new Error('connection refused');
      if (!this.slowRegistries.includes(registry)) (sendBack as Send)({ type: 'registry.synced', registry });
      return () => this.#sendByEffect.delete(name);
    });
  }

  #effect<Input>() {
    return fromCallback<{ type: never }, Input>(({ sendBack, self }) => {
      const name = actorName(self);
      this.#sendByEffect.set(name, sendBack as Send);
      return () => this.#sendByEffect.delete(name);
    });
  }

  #server<Order extends EventObject>(
    name: string,
    openType: string,
    response: () => AnyEventObject | undefined,
    drain: Record<string, string>,
  ) {
    return fromCallback<Order, undefined>(({ sendBack, receive }) => {
      this.#sendByEffect.set(`discovery/${name}`, sendBack as Send);
      receive((order) => {
        this.orders.push(order);
        const reply = order.type === openType ? response() : undefined;
        if (reply !== undefined) sendBack(reply);
        const drained = drain[order.type];
        if (drained !== undefined && this.drains) sendBack({ type: drained });
      });
      return () => this.#sendByEffect.delete(`discovery/${name}`);
    });
  }

  #build(input: { forced: boolean; configs: string[] }): Promise<PublishedContext> {
    const { promise, resolve, reject } = Promise.withResolvers<PublishedContext>();
    this.builds.push({
      ...input,
      startedAt: this.clock.now(),
      finish: () => resolve({ version: `context-${this.builds.length}`, publishedAt: this.clock.now() }),
      fail: (reason) => reject(new Error(reason)),
    });
    if (this.buildsAtOnce) this.builds.at(-1)!.finish();
    return promise;
  }
}

function parseRegistry(text: string): ListedRegistry {
  const [registry = '', revision = ''] = text.split('@');
  return { registry, revision };
}

function orThrow<T>(value: T | Error): T {
  if (value instanceof Error) throw value;
  return value;
}
