/** The control plane: its statecharts with their effects, started and recorded. */
import { fromCallback, fromPromise } from 'xstate';
import { configControllerMachine, type DirectoryReading } from '../../machines/discovery/config-controller.machine.ts';
import { type DiscoveryOutput, discoveryMachine } from '../../machines/discovery/discovery.machine.ts';
import { meshConfigMachine, type SettingsReading } from '../../machines/discovery/mesh-config.machine.ts';
import type { ConfigChange, SettingsName, StopSignal } from '../../machines/discovery/protocol.ts';
import { pushMachine } from '../../machines/discovery/push.machine.ts';
import { type ServicesReading, serviceRegistryMachine } from '../../machines/discovery/service-registry.machine.ts';
import type { DiscoverySettings } from '../../machines/discovery/settings.ts';
import { problemText } from '../model/problem.ts';
import { type Recorder, startRoot, whenDone } from '../runtime/actor-system.ts';
import type { Logger } from '../runtime/log.ts';
import { narrate } from '../runtime/narrate.ts';
import type { TraceEndpoint } from '../runtime/trace-endpoint.ts';
import { adsEffect } from './ads/ads-effect.ts';
import type { AdsServer } from './ads/ads-server.ts';
import { encodeResource } from './ads/encoding.ts';
import { ConfigDirectory } from './config/config-directory.ts';
import { watchDirectory, watchFile } from './config/file-watch.ts';
import { SettingsFiles } from './config/settings-files.ts';
import { watchEffect } from './config/watch-effect.ts';
import type { DiscoveryOptions } from './discovery-options.ts';
import type { ListenAddress } from './listen-address.ts';
import { logEvents } from './monitor/event-log.ts';
import { httpEffect } from './monitor/http-effect.ts';
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
    const { options, trace, version } = this.#program;
    return httpEffect({
      addresses: options.httpAddresses,
      version,
      metrics: this.metrics,
      ...(options.grpcAddress === undefined && { grpcPort: () => this.#grpcPort }),
      ...(options.servesDebug && {
        debug: {
          state: this.#state,
          resources: this.#resources,
          cache: this.#cache,
          connections: () => this.#ads?.connections() ?? [],
          shard: `External/${options.clusterId}`,
        },
      }),
      ...(trace !== undefined && { trace }),
    });
  }

  #adsEffect() {
    const { options, recorder } = this.#program;
    return adsEffect({
      address: options.grpcAddress ?? onlyForHttp,
      shutdownMs: options.shutdownMs,
      source: this.#resources,
      logger: this.#log('ads'),
      recorder,
      observer: this.metrics,
      isReady: () => this.#state.context !== undefined,
      limits: {
        streamsPerSecond: options.streamsPerSecond,
        maxRequestBytes: options.maxRequestBytes,
        maxConcurrentStreams: options.maxConcurrentStreams,
        keepaliveTimeMs: options.keepaliveIntervalMs,
        keepaliveTimeoutMs: options.keepaliveTimeoutMs,
        maxConnectionAgeMs: options.maxConnectionAgeMs,
      },
      made: (server) => {
        this.#ads = server;
      },
      listening: (port) => {
        this.#grpcPort = port;
      },
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
