import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { maxTimerMs } from '../../model/fields/duration.ts';
import { conflict, type FieldViolation, mustBe, outOfRange } from '../../model/fields/violation.ts';
import { isSystemError, messageOf } from '../../runtime/errors.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import type { ProxyOptions } from './options.ts';

export function checkLimits(options: ProxyOptions, errors: OptionErrors): void {
  for (const [name, ms] of durationsOf(options)) {
    if (ms > maxTimerMs) errors.addFlagError(name, outOfRange(`at most ${maxTimerMs / 3_600_000}h`, `${ms}ms`));
  }
  // Envoy rejects 0, and numbers with an exponent, as which JavaScript writes very small ones.
  if (options.connectTimeoutMs < 1)
    errors.addFlagError('--connectTimeout', outOfRange('at least 1ms', `${options.connectTimeoutMs}ms`));
  for (const [port, names] of sharedPorts(options)) {
    errors.addFlagError(
      names.join(', '),
      conflict(`must be different ports, got ${port} for ${names.length} of them`, port),
    );
  }
  const { customConfigFile } = options.config;
  const problem = customConfigFile ? whyNoFile(customConfigFile) : undefined;
  if (problem !== undefined) errors.addFlagError('--customConfigFile', problem);
  const logViolation = options.outlierLogPath === undefined ? undefined : whyNoLog(options.outlierLogPath);
  if (logViolation !== undefined) errors.addFlagError('--outlierLogPath', logViolation);
}

/** Envoy opens the file at startup, and exits if it cannot. */
function whyNoLog(path: string): FieldViolation | undefined {
  try {
    const folder = dirname(path);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory()) return mustBe('a file', path, { hint: 'it is a directory' });
    accessSync(stats === undefined ? folder : path, constants.W_OK);
    return undefined;
  } catch (error) {
    return mustBe('a writable file', path, { hint: messageOf(error).slice(0, 200) });
  }
}

function durationsOf({ config, ...options }: ProxyOptions): [name: string, ms: number][] {
  return [
    ['--drainDuration', config.drainDurationMs],
    ['--parentShutdownDuration', config.parentShutdownDurationMs],
    ['--terminationDrainDuration', config.terminationDrainDurationMs],
    ['--connectTimeout', options.connectTimeoutMs],
    ['--watchDelay', options.watch.delayMs],
    ['MINIMUM_DRAIN_DURATION', options.minimumDrainMs],
    ['fileFlushInterval', config.fileFlushIntervalMs ?? 0],
    ['DNS_FORWARD_TIMEOUT', options.dns?.timeoutMs ?? 0],
  ];
}

/** A custom bootstrap has its own listeners. */
function sharedPorts({ config, ...options }: ProxyOptions): [port: number, names: string[]][] {
  const generatedPorts: [string, number][] = config.customConfigFile
    ? []
    : [
        // The readiness listener exists only with the agent's status port.
        ['ENVOY_STATUS_PORT', config.statusPort === 0 ? 0 : options.envoyStatusPort],
        ['ENVOY_PROMETHEUS_PORT', options.envoyPrometheusPort],
        ['ENVOY_SECURE_METRICS_PORT', options.envoySecureMetricsPort],
        ['ENVOY_SECURE_MERGED_METRICS_PORT', options.envoySecureMergedMetricsPort],
      ];
  const ports: [string, number][] = [
    ['--statusPort', config.statusPort],
    ['--proxyAdminPort', config.proxyAdminPort],
    ['--spareAdminPort', options.spareAdminPort],
    ...generatedPorts,
  ];
  const usesByPort = Map.groupBy(
    ports.filter(([, port]) => port !== 0),
    ([, port]) => port,
  );
  return [...usesByPort]
    .filter(([, uses]) => uses.length > 1)
    .map(([port, uses]) => [port, uses.map(([name]) => name)]);
}

function whyNoFile(path: string): FieldViolation | undefined {
  try {
    if (statSync(path).isDirectory()) return mustBe('a file', path, { hint: 'it is a directory' });
    accessSync(path, constants.R_OK);
    return undefined;
  } catch (error) {
    const isMissing = isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR');
    return mustBe('a readable file', path, {
      hint: isMissing ? 'it does not exist' : messageOf(error).split(',', 1)[0],
    });
  }
}
