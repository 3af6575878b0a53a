export interface EnvoyFlags {
  readonly drainMs: number;
  readonly parentShutdownMs: number;
  readonly ipVersion: 'v4' | 'v6';
  readonly logLevel: string;
  readonly componentLogLevel: string;
  /**
   * Each epoch has the same number of workers: Envoy resets connections if a child has fewer workers than its parent (docs/hot-restart-reference.md,
   * fact 9).
   */
  readonly concurrency: number;
  /** Envoy merges this YAML or JSON over the bootstrap. */
  readonly configOverride: string;
  /** Set if this Envoy has no hot restart, and so needs no shared memory. */
  readonly disableHotRestart?: boolean;
  /** Istio's bootstrap contains deprecated fields, which Envoy would log. */
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

export const envoyLogFormat = '%Y-%m-%dT%T.%fZ\t%l\tenvoy %n\t%v';

const defaultFileFlushMs = 1000;

/** Keeps Envoy's default drain strategy (gradual): no request failed in measurements. */
export function envoyArguments(flags: EnvoyFlags, { configFile, epoch, baseId }: EnvoyRun): string[] {
  return [
    ...['-c', configFile],
    ...['--restart-epoch', String(epoch)],
    ...['--drain-time-s', secondsText(flags.drainMs)],
    ...['--parent-shutdown-time-s', secondsText(flags.parentShutdownMs)],
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

/** A validating Envoy opens no port and uses no base ID. */
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

function secondsText(ms: number): string {
  return String(Math.floor(ms / 1000));
}

export const envoyLogLevels = ['trace', 'debug', 'info', 'warning', 'warn', 'error', 'critical', 'off'] as const;

export interface ProxyLogLevel {
  readonly level: string;
  readonly components: string;
  /** These items have more than one colon. */
  readonly dropped: readonly string[];
}

/** The last item without a colon is the level, `component:level` items are component levels. */
export function parseProxyLogLevel(spec: string, componentSpec: string): ProxyLogLevel {
  let level = 'warning';
  const components: string[] = [];
  const droppedArgs: string[] = [];
  for (const item of spec.split(',').filter(Boolean)) {
    const segments = item.split(':');
    if (segments.length === 1) level = item;
    else if (segments.length === 2) components.push(item);
    else droppedArgs.push(item);
  }
  return { level, components: components.length > 0 ? components.join(',') : componentSpec, dropped: droppedArgs };
}
