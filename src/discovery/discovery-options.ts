/**
 * Everything that `pilot-discovery discovery` was told, by flags and environment (spec/discovery.md §1.2, §1.4). A flag
 * that makes no sense ends the program; an environment variable that makes none has its default, with a warning.
 */
import { availableParallelism } from 'node:os';
import { durationMsOf } from '../model/duration.ts';
import { ChartpilotError } from '../runtime/errors.ts';
import { type ListenAddress, parseListenAddress } from './listen-address.ts';

/** The flags of `discovery`, as texts; absent when not given. */
export interface DiscoveryFlags {
  readonly registries?: string;
  readonly configDir?: string;
  readonly meshConfig?: string;
  readonly networksConfig?: string;
  readonly domain?: string;
  readonly clusterID?: string;
  readonly clusterAliases?: string;
  readonly httpAddr?: string;
  readonly grpcAddr?: string;
  readonly monitoringAddr?: string;
  readonly httpsAddr?: string;
  /** True: the flag came without a value. */
  readonly secureGRPCAddr?: string | boolean;
  readonly shutdownDuration?: string;
  readonly keepaliveInterval?: string;
  readonly keepaliveTimeout?: string;
  readonly keepaliveMaxServerConnectionAge?: string;
}

export interface DiscoveryOptions {
  /** Empty: no directory. */
  readonly configDir: string;
  readonly meshConfigFile: string;
  readonly networksConfigFile: string;
  readonly domain: string;
  readonly clusterId: string;
  readonly clusterAliases: Readonly<Record<string, string>>;
  /** Each with the same pages. */
  readonly httpAddresses: readonly ListenAddress[];
  /** Undefined: xDS is served on the HTTP port. */
  readonly grpcAddress: ListenAddress | undefined;
  readonly shutdownMs: number;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
  /** 0: without limit. */
  readonly maxConnectionAgeMs: number;
  readonly push: {
    readonly debounceAfterMs: number;
    readonly debounceMaxMs: number;
    readonly debounceEndpoints: boolean;
  };
  readonly streamsPerSecond: number;
  readonly maxConcurrentStreams: number;
  readonly maxRequestBytes: number;
  /** 0: nothing is kept. */
  readonly cacheEntries: number;
  readonly servesDebug: boolean;
  /** For the log: what was strange, but no mistake. */
  readonly warnings: readonly string[];
}

const registries = ['Kubernetes', 'Consul', 'MCP', 'Mock', 'Memory'];
/** These have no services of their own: MCP's come as ServiceEntries, the others are for tests. */
const emptyRegistries = new Set(['MCP', 'Mock', 'Memory']);

const oneSecondMs = 1_000;

/** @throws ChartpilotError FLAG_INVALID */
export function resolveDiscoveryOptions(flags: DiscoveryFlags, env: NodeJS.ProcessEnv): DiscoveryOptions {
  const warnings: string[] = [];
  const from = new Environment(env, warnings);
  checkRegistries(flags.registries ?? 'Kubernetes', flags.registries === undefined, warnings);
  warnOfMissingServers(flags, warnings);
  const http = parseListenAddress('--httpAddr', flags.httpAddr ?? ':8080');
  const monitoring = parseListenAddress('--monitoringAddr', flags.monitoringAddr ?? ':15014');
  const grpcAddress = parseListenAddress('--grpcAddr', flags.grpcAddr ?? ':15010');
  if (grpcAddress === undefined && http === undefined) {
    throw new ChartpilotError('FLAG_INVALID', '--grpcAddr and --httpAddr are both empty: proxies could not be served');
  }
  const caches = ['PILOT_ENABLE_XDS_CACHE', 'PILOT_ENABLE_CDS_CACHE', 'PILOT_ENABLE_RDS_CACHE'];
  return {
    configDir: flags.configDir ?? '',
    meshConfigFile: flags.meshConfig ?? './etc/istio/config/mesh',
    networksConfigFile: flags.networksConfig ?? './etc/istio/config/meshNetworks',
    domain: flags.domain ?? 'cluster.local',
    clusterId: flags.clusterID ?? from.text('CLUSTER_ID', 'Kubernetes'),
    clusterAliases: parseAliases(flags.clusterAliases ?? ''),
    httpAddresses: [http, monitoring].flatMap((address) => address ?? []),
    grpcAddress,
    shutdownMs: duration('--shutdownDuration', flags.shutdownDuration, 10_000),
    keepaliveIntervalMs: duration(
      '--keepaliveInterval',
      flags.keepaliveInterval,
      from.durationMs('GRPC_KEEPALIVE_INTERVAL', 30_000),
    ),
    keepaliveTimeoutMs: duration('--keepaliveTimeout', flags.keepaliveTimeout, 10_000),
    maxConnectionAgeMs: maxConnectionAge(flags.keepaliveMaxServerConnectionAge),
    push: {
      debounceAfterMs: from.durationMs('PILOT_DEBOUNCE_AFTER', 100),
      debounceMaxMs: from.durationMs('PILOT_DEBOUNCE_MAX', 10_000),
      debounceEndpoints: from.boolean('PILOT_ENABLE_EDS_DEBOUNCE', true),
    },
    streamsPerSecond: from.number('PILOT_MAX_REQUESTS_PER_SECOND', 0) || Math.min(15 + 5 * availableParallelism(), 100),
    maxConcurrentStreams: from.number('ISTIO_GPRC_MAXSTREAMS', 100_000),
    maxRequestBytes: from.number('ISTIO_GPRC_MAXRECVMSGSIZE', 4 * 1024 * 1024),
    cacheEntries: caches.every((name) => from.boolean(name, true)) ? from.number('PILOT_XDS_CACHE_SIZE', 60_000) : 0,
    servesDebug: from.boolean('ENABLE_DEBUG_ON_HTTP', true),
    warnings,
  };
}

function checkRegistries(text: string, isDefault: boolean, warnings: string[]): void {
  const seen = new Set<string>();
  for (const name of text.split(',').map((item) => item.trim())) {
    if (name === '') continue;
    if (!registries.includes(name)) {
      throw new ChartpilotError('FLAG_INVALID', `--registries: service registry ${name} is not supported`, {
        remedy: `Known are ${registries.join(', ')}; --registries= for none.`,
      });
    }
    if (seen.has(name)) warnings.push(`--registries names ${name} twice`);
    seen.add(name);
  }
  const missing = [...seen].filter((name) => !emptyRegistries.has(name));
  if (missing.length > 0) {
    const why = isDefault ? ' (the default; --registries= says that you know)' : '';
    warnings.push(`service registries that cannot be read yet are left out: ${missing.join(', ')}${why}`);
  }
}

function warnOfMissingServers({ httpsAddr, secureGRPCAddr }: DiscoveryFlags, warnings: string[]): void {
  if (httpsAddr) warnings.push(`--httpsAddr ${httpsAddr}: webhooks are not served yet, the port stays closed`);
  if (typeof secureGRPCAddr === 'string' && secureGRPCAddr !== '') {
    warnings.push(`--secureGRPCAddr ${secureGRPCAddr}: xDS over TLS is not served yet, the port stays closed`);
  }
}

/** `alias1=cluster1,alias2=cluster2`. */
function parseAliases(text: string): Record<string, string> {
  const aliases: Record<string, string> = {};
  for (const item of text.split(',').filter(Boolean)) {
    const [alias = '', cluster = '', ...rest] = item.split('=');
    if (alias === '' || cluster === '' || rest.length > 0) {
      throw new ChartpilotError('FLAG_INVALID', `--clusterAliases: ${JSON.stringify(item)} is not ALIAS=CLUSTER`);
    }
    const other = Object.entries(aliases).find(([, known]) => known === cluster)?.[0];
    if (other !== undefined) {
      throw new ChartpilotError(
        'FLAG_INVALID',
        `--clusterAliases: cluster ${cluster} has two aliases, ${other} and ${alias}`,
      );
    }
    aliases[alias] = cluster;
  }
  return aliases;
}

function duration(flag: string, text: string | undefined, defaultMs: number): number {
  if (text === undefined || text === '') return defaultMs;
  const ms = durationMsOf(text);
  if (ms === undefined || ms < 0) {
    throw new ChartpilotError('FLAG_INVALID', `${flag} is ${JSON.stringify(text)}, which is no duration`, {
      remedy: 'Write it as 300ms, 30s or 1h30m.',
    });
  }
  return ms;
}

function maxConnectionAge(text: string | undefined): number {
  const ms = duration('--keepaliveMaxServerConnectionAge', text, 0);
  if (text !== undefined && text !== '' && ms < oneSecondMs) {
    throw new ChartpilotError('FLAG_INVALID', `--keepaliveMaxServerConnectionAge is ${text}; it must be at least 1s`);
  }
  return ms;
}

/** Variables of the environment. Empty counts as unset. */
class Environment {
  readonly #env: NodeJS.ProcessEnv;
  readonly #warnings: string[];

  constructor(env: NodeJS.ProcessEnv, warnings: string[]) {
    this.#env = env;
    this.#warnings = warnings;
  }

  text(name: string, byDefault: string): string {
    return this.#env[name] || byDefault;
  }

  durationMs(name: string, byDefault: number): number {
    const ms = durationMsOf(this.#env[name] ?? '');
    return this.#orDefault(name, ms !== undefined && ms >= 0 ? ms : undefined, byDefault);
  }

  number(name: string, byDefault: number): number {
    const value = Number(this.#env[name]);
    return this.#orDefault(name, Number.isInteger(value) && value >= 0 ? value : undefined, byDefault);
  }

  boolean(name: string, byDefault: boolean): boolean {
    const text = this.#env[name] ?? '';
    const value = /^(1|t|true)$/i.test(text) ? true : /^(0|f|false)$/i.test(text) ? false : undefined;
    return this.#orDefault(name, value, byDefault);
  }

  #orDefault<T>(name: string, value: T | undefined, byDefault: T): T {
    const text = this.#env[name];
    if (text === undefined || text === '') return byDefault;
    if (value === undefined) this.#warnings.push(`${name}=${text} makes no sense; the default holds: ${byDefault}`);
    return value ?? byDefault;
  }
}
