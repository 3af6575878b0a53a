/** The command line of one Envoy (spec/agent.md §4.1, hot-restart mode). Pure. */

export interface EnvoyFlags {
  readonly drainMs: number;
  readonly parentShutdownMs: number;
  readonly ipVersion: 'v4' | 'v6';
  readonly logLevel: string;
  /** `component:level,…`, or empty. */
  readonly componentLogLevel: string;
  /** The same for every epoch: fewer workers in a child reset connections (spec/envoy-hot-restart.md fact 9). */
  readonly concurrency: number;
  /** YAML or JSON that is merged over the bootstrap; empty when there is none. */
  readonly configOverride: string;
  /** The Envoy shares nothing with another one, and needs no shared memory. */
  readonly disableHotRestart?: boolean;
  /** Envoy logs nothing of deprecated fields: the bootstrap has some, as Istio's has. */
  readonly skipDeprecatedLogs?: boolean;
  readonly enableCoreDump?: boolean;
  readonly fileFlushIntervalMs?: number;
  readonly fileFlushMinSizeKb?: number;
}

export interface EnvoyRun {
  readonly configFile: string;
  readonly epoch: number;
  readonly baseId: number;
}

/** What envoy-log.ts reads: time, level, component and text, between tabs. */
export const envoyLogFormat = '%Y-%m-%dT%T.%fZ\t%l\tenvoy %n\t%v';

const defaultFileFlushMs = 1000;

/** Arguments of an Envoy that serves. The drain strategy is Envoy's own, gradual: measured without a failed request. */
export function envoyArguments(flags: EnvoyFlags, { configFile, epoch, baseId }: EnvoyRun): string[] {
  return [
    ...['-c', configFile],
    ...['--restart-epoch', String(epoch)],
    ...['--drain-time-s', wholeSeconds(flags.drainMs)],
    ...['--parent-shutdown-time-s', wholeSeconds(flags.parentShutdownMs)],
    ...['--local-address-ip-version', flags.ipVersion],
    ...['--file-flush-interval-msec', String(flags.fileFlushIntervalMs ?? defaultFileFlushMs)],
    ...(flags.fileFlushMinSizeKb === undefined ? [] : ['--file-flush-min-size-kb', String(flags.fileFlushMinSizeKb)]),
    ...logArguments(flags),
    ...(flags.skipDeprecatedLogs ? ['--skip-deprecated-logs'] : []),
    ...(flags.enableCoreDump ? ['--enable-core-dump'] : []),
    ...overrideArguments(flags),
    ...['--concurrency', String(flags.concurrency)],
    ...['--base-id', String(baseId)],
    ...(flags.disableHotRestart ? ['--disable-hot-restart'] : []),
  ];
}

/** Arguments of an Envoy that only reads its bootstrap: it opens no port and takes no base id. */
export function validationArguments(flags: EnvoyFlags, configFile: string): string[] {
  return [
    ...['--mode', 'validate'],
    ...['-c', configFile],
    ...['--local-address-ip-version', flags.ipVersion],
    ...['--log-format', envoyLogFormat],
    ...['-l', 'error'],
    ...overrideArguments(flags),
  ];
}

function logArguments({ logLevel, componentLogLevel }: EnvoyFlags): string[] {
  return [
    ...['--log-format', envoyLogFormat],
    ...['-l', logLevel],
    ...(componentLogLevel === '' ? [] : ['--component-log-level', componentLogLevel]),
  ];
}

function overrideArguments({ configOverride }: EnvoyFlags): string[] {
  return configOverride === '' ? [] : ['--config-yaml', configOverride];
}

function wholeSeconds(ms: number): string {
  return String(Math.floor(ms / 1000));
}

export const envoyLogLevels = ['trace', 'debug', 'info', 'warning', 'warn', 'error', 'critical', 'off'] as const;

export interface ProxyLogLevel {
  readonly level: string;
  readonly components: string;
  /** Items that mean nothing. */
  readonly dropped: readonly string[];
}

/**
 * Splits `--proxyLogLevel`: the last bare word is the level, scoped items become component levels. Those of
 * `--proxyComponentLogLevel` count only when there are no scoped items.
 */
export function parseProxyLogLevel(spec: string, componentSpec: string): ProxyLogLevel {
  let level = 'warning';
  const components: string[] = [];
  const dropped: string[] = [];
  for (const item of spec.split(',').filter(Boolean)) {
    const parts = item.split(':');
    if (parts.length === 1) level = item;
    else if (parts.length === 2) components.push(item);
    else dropped.push(item);
  }
  return { level, components: components.length > 0 ? components.join(',') : componentSpec, dropped };
}
