/** The control plane: its statecharts with their effects, started and recorded. */
import { type AnyActorRef, fromCallback, fromPromise } from 'xstate';
import { configControllerMachine, type DirectoryReading } from '../../machines/discovery/config-controller.machine.ts';
import { type DiscoveryOutput, discoveryMachine } from '../../machines/discovery/discovery.machine.ts';
import { meshConfigMachine, type SettingsReading } from '../../machines/discovery/mesh-config.machine.ts';
import type { AdsOrder, ConfigChange, HttpOrder, SettingsName, StopSignal } from '../../machines/discovery/protocol.ts';
import { pushMachine } from '../../machines/discovery/push.machine.ts';
import { type ServicesReading, serviceRegistryMachine } from '../../machines/discovery/service-registry.machine.ts';
import type { DiscoverySettings } from '../../machines/discovery/settings.ts';
import { problemText } from '../model/problem.ts';
import { type Recorder, startRoot, whenDone } from '../runtime/actor-system.ts';
import { explainError, messageOf } from '../runtime/errors.ts';
import type { Logger } from '../runtime/log.ts';
import { narrate } from '../runtime/narrate.ts';
import { type StreamAnswer, type TraceEndpoint, tracePath } from '../runtime/trace-endpoint.ts';
import { type AdsServer, createAdsServer } from './ads/ads-server.ts';
import { encodeResource } from './ads/encoding.ts';
import { ConfigDirectory } from './config/config-directory.ts';
import { type StopWatching, type WatchHandlers, watchDirectory, watchFile } from './config/file-watch.ts';
import { SettingsFiles } from './config/settings-files.ts';
import type { DiscoveryOptions } from './discovery-options.ts';
import { formatAddress, type ListenAddress } from './listen-address.ts';
import { answerDebug } from './monitor/debug-endpoints.ts';
import { logEvents } from './monitor/event-log.ts';
import { type HttpAnswer, type HttpRequest, HttpServers } from './monitor/http-server.ts';
import { DiscoveryMetrics } from './monitor/metrics.ts';
import { EncodedCache } from './push/encoded-cache.ts';
import { MeshResources } from './push/mesh-resources.ts';
import { MeshState } from './push/mesh-state.ts';

export interface DiscoveryProgram {
  readonly options: DiscoveryOptions;
  readonly log: Logger;
  readonly recorder: Recorder;
  /** One line, for `/version`. */
  readonly version: string;
  /** Offered at every HTTP port; absent: not at all. Who made it ends it. */
  readonly trace?: TraceEndpoint;
  /** The source of signals; the process itself unless a test says otherwise. */
  readonly signals?: Pick<NodeJS.Process, 'on' | 'off'>;
}

/**
 * Runs the control plane until it is told to end, or cannot go on.
 *
 * @returns the exit code, and what to tell the person
 */
export async function runDiscovery(program: DiscoveryProgram): Promise<DiscoveryOutput> {
  const { options, log, recorder } = program;
  for (const warning of options.warnings) log.warn(warning);
  const stops = [
    logEvents(recorder, log),
    narrate(recorder, log.scope('discovery'), { quiet: (actor) => actor !== 'discovery' }),
  ];
  const plane = new ControlPlane(program);
  stops.push(plane.metrics.observe(recorder));
  try {
    const actor = startRoot(plane.machine(), {
      id: 'discovery',
      input: { settings: settingsOf(options) },
      recorder,
      onError: () => {},
    });
    const output = await whenDone(actor);
    if (output === undefined) throw new Error('the control plane ended without saying how');
    return output;
  } finally {
    for (const stop of stops) stop();
  }
}

/** Where xDS is served when its only way in is the HTTP port. */
const onlyForHttp: ListenAddress = { host: '127.0.0.1', port: 0 };

/** What the statecharts' effects work on. */
class ControlPlane {
  readonly metrics: DiscoveryMetrics;
  readonly #program: DiscoveryProgram;
  readonly #directory: ConfigDirectory | undefined;
  readonly #state: MeshState;
  readonly #cache: EncodedCache;
  readonly #resources: MeshResources;
  #ads: AdsServer | undefined;
  /** Where the xDS server listens. */
  #grpcPort: number | undefined;
  #isServing = false;

  constructor(program: DiscoveryProgram) {
    const { options, log } = program;
    this.#program = program;
    this.#directory = options.configDir === '' ? undefined : new ConfigDirectory(options.configDir);
    const settings = new SettingsFiles((problem) => log.scope('mesh-config').warn(problemText(problem)));
    const { domain, clusterId } = options;
    this.#state = new MeshState({
      settings,
      domain,
      clusterId,
      ...(this.#directory && { directory: this.#directory }),
    });
    this.#cache = new EncodedCache({
      encode: ({ schema, message, name }) => encodeResource(schema, message, name),
      maxEntries: options.cacheEntries,
    });
    this.#resources = new MeshResources({
      context: () => this.#state.context,
      cache: this.#cache,
      clusterAliases: options.clusterAliases,
    });
    this.#state.onPublished((published) => this.#cache.carryOver(published));
    this.metrics = new DiscoveryMetrics({
      version: program.version,
      state: this.#state,
      cache: this.#cache,
      connectedVersions: () => this.#connectedVersions(),
    });
  }

  machine() {
    const settings = meshConfigMachine.provide({
      actors: {
        watchFile: watchEffect<{ file: string }>(
          ({ file }, handlers) => watchFile(file, handlers),
          this.#log('mesh-config'),
        ),
        readSettings: fromPromise<SettingsReading, { what: SettingsName; file: string }>(async ({ input }) =>
          this.#state.settings.read(input.what, input.file),
        ),
      },
      actions: {
        adopt: ({ context }, { version }) => this.#state.settings.adopt(context.what, version),
      },
    });
    const configController = configControllerMachine.provide({
      actors: {
        watchDirectory: watchEffect<{ directory: string }>(
          ({ directory }, handlers) => watchDirectory(directory, handlers),
          this.#log('config-controller'),
        ),
        readDirectory: fromPromise<DirectoryReading, { directory: string }>(async () => this.#directory!.read()),
      },
    });
    const serviceRegistry = serviceRegistryMachine.provide({
      actors: {
        computeServices: fromPromise<ServicesReading, { changes: ConfigChange[] }>(async () =>
          this.#state.computeServices(),
        ),
      },
    });
    const push = pushMachine.provide({
      actors: {
        buildContext: fromPromise<{ version: string }, { forced: boolean; configs: string[] }>(async ({ input }) =>
          this.#buildContext(input),
        ),
      },
    });
    return discoveryMachine.provide({
      actors: {
        signals: signalEffect(this.#program.signals ?? process),
        http: this.#httpEffect(),
        adsServer: this.#adsEffect(),
        meshConfig: settings,
        configController,
        serviceRegistry,
        push,
      },
    });
  }

  #log(scope: string): Logger {
    return this.#program.log.scope(scope);
  }

  #buildContext({ forced, configs }: { forced: boolean; configs: string[] }): { version: string } {
    const start = performance.now();
    const { version } = this.#state.publishContext({ forced, changed: configs });
    this.metrics.contextPublished(performance.now() - start);
    return { version };
  }

  #httpEffect() {
    const { options, trace } = this.#program;
    return fromCallback<HttpOrder, undefined>(({ receive, sendBack }) => {
      const servers = new HttpServers(
        (request) => this.#answer(request, () => sendBack({ type: 'push.wanted' })),
        options.grpcAddress === undefined ? { grpcPort: () => this.#grpcPort } : {},
      );
      const open = async (): Promise<void> => {
        try {
          const opened = await servers.open(options.httpAddresses);
          if (options.servesDebug) for (const { port } of opened) trace?.opened(port);
          sendBack({ type: 'http.listening', addresses: opened.map(formatAddress) });
        } catch (error) {
          sendBack({ type: 'http.failed', reason: inOneLine(error) });
        }
      };
      receive((order) => {
        switch (order.type) {
          case 'http.open':
            void open();
            break;
          case 'serving.began':
            this.#isServing = true;
            break;
          case 'serving.ended':
            this.#isServing = false;
            break;
          case 'http.close':
            void servers.close().then(() => sendBack({ type: 'http.closed' }));
            break;
        }
      });
      return () => servers.cut();
    });
  }

  async #answer(request: HttpRequest, pushAll: () => void): Promise<HttpAnswer | StreamAnswer> {
    const { path, query } = request;
    const { trace } = this.#program;
    if (path === '/ready') return { status: this.#isServing ? 200 : 503, body: '' };
    if (path === '/version') return { status: 200, body: `${this.#program.version}\n` };
    if (path === '/metrics') return { status: 200, ...(await this.metrics.text()) };
    const { clusterId, servesDebug } = this.#program.options;
    if (servesDebug && trace !== undefined && path === tracePath) return trace.answer(request, query);
    const debug = answerDebug(
      {
        state: this.#state,
        resources: this.#resources,
        cache: this.#cache,
        connections: () => this.#ads?.connections() ?? [],
        pushAll,
        shard: `External/${clusterId}`,
      },
      request,
    );
    return (servesDebug ? debug : undefined) ?? { status: 404, body: `no page ${path}; /debug lists what there is\n` };
  }

  #adsEffect() {
    const { options, recorder } = this.#program;
    return fromCallback<AdsOrder, undefined>(({ receive, sendBack, self }) => {
      const server = createAdsServer({
        source: this.#resources,
        logger: this.#log('ads'),
        recorder,
        observer: this.metrics,
        isReady: () => this.#state.context !== undefined,
        sender: self as AnyActorRef,
        limits: {
          streamsPerSecond: options.streamsPerSecond,
          maxRequestBytes: options.maxRequestBytes,
          maxConcurrentStreams: options.maxConcurrentStreams,
          keepaliveTimeMs: options.keepaliveIntervalMs,
          keepaliveTimeoutMs: options.keepaliveTimeoutMs,
          maxConnectionAgeMs: options.maxConnectionAgeMs,
        },
      });
      this.#ads = server;
      const listen = async (): Promise<void> => {
        try {
          const address = options.grpcAddress ?? onlyForHttp;
          const { port } = await server.listen(formatAddress({ host: address.host || '::', port: address.port }));
          this.#grpcPort = port;
          sendBack({ type: 'ads.listening', addresses: [formatAddress({ ...address, port })] });
        } catch (error) {
          sendBack({ type: 'ads.failed', reason: inOneLine(error) });
        }
      };
      receive((order) => {
        switch (order.type) {
          case 'ads.listen':
            void listen();
            break;
          case 'clients.push':
            server.push({ version: order.version, forced: order.forced, configs: new Set(order.configs) });
            break;
          case 'ads.drain':
            void server.drain(options.shutdownMs).then(() => sendBack({ type: 'ads.drained' }));
            break;
        }
      });
      return () => server.close();
    });
  }

  *#connectedVersions(): Iterable<string> {
    for (const { identity } of this.#ads?.connections() ?? []) {
      yield String(identity.metadata.ISTIO_VERSION ?? 'unknown');
    }
  }
}

function settingsOf(options: DiscoveryOptions): DiscoverySettings {
  return {
    mesh: { file: options.meshConfigFile, settleMs: 100 },
    networks: { file: options.networksConfigFile, settleMs: 100 },
    configs: { directory: options.configDir, coalesceMs: 20 },
    push: options.push,
    shutdownMs: options.shutdownMs,
  };
}

/** Passes on what a watch sees. That it cannot watch is told in the log: what was read stays good. */
function watchEffect<Input>(begin: (input: Input, handlers: WatchHandlers) => StopWatching, log: Logger) {
  return fromCallback<{ type: never }, Input>(({ input, sendBack }) =>
    begin(input, {
      changed: (path) => sendBack({ type: 'files.changed', path }),
      failed: (error) => log.error('files cannot be watched: changes may go unnoticed', { reason: messageOf(error) }),
    }),
  );
}

function signalEffect(source: Pick<NodeJS.Process, 'on' | 'off'>) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    const handled: readonly StopSignal[] = ['SIGTERM', 'SIGINT'];
    const listener = (signal: NodeJS.Signals): void => {
      sendBack({ type: 'signal.received', signal });
    };
    for (const signal of handled) source.on(signal, listener);
    return () => {
      for (const signal of handled) source.off(signal, listener);
    };
  });
}

/** A chart keeps of an error only its message: what to do goes into it. */
function inOneLine(error: unknown): string {
  return explainError(error).replaceAll(/\s*\n\s*/g, ' ');
}
