/** Merges flags, environment, mesh file and annotations in Istio's order. */

import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { availableParallelism, hostname, networkInterfaces } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { durationMsOf } from '../../model/fields/duration.ts';
import { checkSwitches, isSwitchOn, readSwitch } from '../../model/fields/switches.ts';
import {
  disallowedValue,
  type FieldViolation,
  mustBe,
  outOfRange,
  tooLarge,
  unknownValue,
  wrongType,
} from '../../model/fields/violation.ts';
import { defaultProxyConfig, maxThreads, mergeProxyConfig, type ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { OptionErrors, optionError } from '../../runtime/option-errors.ts';
import { dnsOptions } from '../dns/dns-options.ts';
import { envoyLogLevels, type ProxyLogLevel, parseProxyLogLevel } from '../envoy/envoy-args.ts';
import { parseWorkloadProbe, type WorkloadProbe } from '../health/workload-probe.ts';
import { isStartedByLauncher } from '../signals.ts';
import { statusOptions } from '../status/status-options.ts';
import { localAddresses, proxyAddresses } from './addresses.ts';
import { bootstrapTemplate } from './bootstrap-template.ts';
import { readDownwardFile } from './downward-file.ts';
import { withHostIp } from './host-ip.ts';
import { identityOptions } from './identity-options.ts';
import { nodeFromFlags, parseAddresses } from './node-options.ts';
import { checkLimits } from './option-limits.ts';
import type { ProxyOptions } from './options.ts';
import { mergeSources } from './proxy-config-sources.ts';
import type { ProxyFlags } from './proxy-flags.ts';
import { standardMetricsOptions } from './standard-metrics-options.ts';
import { unknownValueWarnings } from './unknown-words.ts';
import { wasmOptions } from './wasm-options.ts';
import { ineffectiveOptionWarnings } from './without-effect.ts';

export interface OptionSources {
  readonly role: string;
  readonly flags: ProxyFlags;
  readonly env: NodeJS.ProcessEnv;
  /** Base of relative paths (default: the working directory). */
  readonly directory?: string;
  readonly assumesMounts?: boolean;
}

const podDirectory = './etc/istio/pod';

/** @throws ChartpilotError FLAG_INVALID or CONFIG_INVALID with all errors, FILE_UNREADABLE */
export function resolveProxyOptions({
  role,
  flags,
  env,
  directory = '.',
  assumesMounts = false,
}: OptionSources): ProxyOptions {
  const errors = new OptionErrors();
  if (role !== 'sidecar' && role !== 'router') {
    throw optionError('proxy type', unknownValue(['sidecar', 'router'], role));
  }
  const podInfo = flags.podInfoDir ?? join(directory, podDirectory);
  const podLabels = readDownwardFile(join(podInfo, 'labels'));
  const podAnnotations = readDownwardFile(join(podInfo, 'annotations'));
  const warnings: LogWarning[] = [];
  const configuredSources = mergeSources({ flags, env, podAnnotations, directory }, { errors, warnings });
  const { customConfigFile, ...mergedConfig } = withServiceCluster(
    mergeProxyConfig(defaultProxyConfig, configuredSources),
    configuredSources,
    flags,
  );
  checkSwitches(env, errors);
  const runsEnvoy = !readSwitch('DISABLE_ENVOY', env, errors);
  // ISTIO_BOOTSTRAP overrides other sources of the bootstrap.
  const hasCustomBootstrap = customConfigFile && !env.ISTIO_BOOTSTRAP && runsEnvoy;
  const config = { ...mergedConfig, ...(hasCustomBootstrap && { customConfigFile }) };
  warnings.push(...ineffectiveOptionWarnings(env), ...unknownValueWarnings(env));
  for (const [setting, path] of [
    ['--meshConfig', flags.meshConfig],
    ['--podInfoDir', flags.podInfoDir],
  ] as const) {
    if (path === undefined || existsSync(path)) continue;
    warnings.push({ event: 'option.ignored', setting, value: path, reason: 'does not exist' });
  }
  const excludedInterfaces = podAnnotations['traffic.sidecar.istio.io/excludeInterfaces'];
  requireAddress('--ip', flags.ip, errors);
  requireAddress('INSTANCE_IP', env.INSTANCE_IP, errors);
  const addresses =
    parseAddresses(flags.instanceIPs, errors) ?? proxyAddresses(flags.ip || env.INSTANCE_IP, excludedInterfaces);
  const { workloadId, domain } = registryNames(flags, env, addresses[0]!, errors);
  const trustDomain = flags.trustDomain || env.TRUST_DOMAIN;
  const identity = identityOptions(
    { config, env: { ...env, ...(trustDomain && { TRUST_DOMAIN: trustDomain }) }, assumesToken: assumesMounts },
    errors,
  );
  const threadCount = workerThreadsOf(env.ISTIO_CPU_LIMIT, warnings);
  const ownBootstrap = hasCustomBootstrap || !runsEnvoy;
  const options: ProxyOptions = {
    role,
    config,
    binaryPath: configuredSources.binaryPath,
    runsEnvoy,
    concurrency: (config.concurrency ?? threadCount) || availableParallelism(),
    addresses,
    workloadId,
    domain,
    ...nodeFromFlags(flags, errors),
    stsPort: parseOptionalPort('--stsPort', flags.stsPort, 0, errors),
    podLabels,
    podAnnotations,
    logLevel: envoyLogLevel(flags, errors, warnings),
    ...envoyPorts(env, errors),
    connectTimeoutMs: duration('--connectTimeout', flags.connectTimeout ?? '1s', errors),
    outlierLogPath: flags.outlierLogPath || undefined,
    configOverride: readOverride(env, errors, warnings),
    skipDeprecatedLogs: readSwitch('ENVOY_SKIP_DEPRECATED_LOGS', env, errors, true),
    enableCoreDump: readSwitch('ISTIO_ENVOY_ENABLE_CORE_DUMP', env, errors),
    template: bootstrapTemplate(config, env),
    wasm: wasmOptions(env, warnings),
    dns: dnsOptions({
      role,
      env,
      domain,
      uid: process.geteuid?.() ?? 0,
      readFile: (path) => readFileSync(path, 'utf8'),
      ownAddresses: () =>
        Object.values(networkInterfaces()).flatMap((entries = []) => entries.map(({ address }) => address)),
      errors,
      warnings,
    }),
    status: statusOptions({
      role,
      profiling: flags.profiling === undefined ? undefined : String(flags.profiling),
      heapSnapshots: flags.heapSnapshots === undefined ? undefined : String(flags.heapSnapshots),
      applicationPorts: flags.applicationPorts,
      env,
      address: addresses[0]!,
      localhost: localAddresses(addresses).localhost,
      statusPort: config.statusPort,
      errors,
      warnings,
    }),
    workloadProbe: workloadProbe(config, errors),
    standardMetrics: standardMetricsOptions({ env, ownBootstrap: Boolean(ownBootstrap) }, errors),
    delta: flags.delta === true || isSwitchOn(env.ISTIO_DELTA_XDS),
    dualStack: isDualStack(addresses, config, env),
    watch: watchOptions({ role, flags, config, identity }, errors),
    ...restartOptions({ flags, env, runsEnvoy }, errors, warnings),
    runDir: flags.runDir,
    identity,
    env,
    warnings,
  };
  checkLimits(options, errors);
  errors.throwIfAny();
  if (config.parentShutdownDurationMs < config.drainDurationMs) {
    const { parentShutdownDurationMs, drainDurationMs } = config;
    warnings.push({ event: 'option.drainTooShort', parentShutdownDurationMs, drainDurationMs });
  }
  return options;
}

function envoyPorts(env: NodeJS.ProcessEnv, errors: OptionErrors) {
  return {
    envoyStatusPort: parseOptionalPort('ENVOY_STATUS_PORT', env.ENVOY_STATUS_PORT, 15021, errors),
    envoyPrometheusPort: parseOptionalPort('ENVOY_PROMETHEUS_PORT', env.ENVOY_PROMETHEUS_PORT, 15090, errors),
    envoySecureMetricsPort: parseOptionalPort('ENVOY_SECURE_METRICS_PORT', env.ENVOY_SECURE_METRICS_PORT, 0, errors),
    envoySecureMergedMetricsPort: parseOptionalPort(
      'ENVOY_SECURE_MERGED_METRICS_PORT',
      env.ENVOY_SECURE_MERGED_METRICS_PORT,
      0,
      errors,
    ),
  };
}

function restartOptions(
  { flags, env, runsEnvoy }: { flags: ProxyFlags; env: NodeJS.ProcessEnv; runsEnvoy: boolean },
  errors: OptionErrors,
  warnings: LogWarning[],
) {
  return {
    restartPolicy: choice('--restartPolicy', ['retry', 'exit'], flags.restartPolicy, errors),
    hotRestart: choice('--hotRestart', ['on', 'off'], flags.hotRestart, errors) === 'on',
    watchBinary: choice('--watchBinary', ['on', 'off'], flags.watchBinary, errors) === 'on',
    liveRestore: liveRestore(env, runsEnvoy, errors, warnings),
    baseId: baseIdOf(flags, errors),
    spareAdminPort: spareAdminPort(flags, errors),
    exitOnZeroActiveConnections: readSwitch('EXIT_ON_ZERO_ACTIVE_CONNECTIONS', env, errors),
    minimumDrainMs: duration('MINIMUM_DRAIN_DURATION', env.MINIMUM_DRAIN_DURATION || '5s', errors),
  };
}

/** Requires the launcher bin/pilot-agent as the first process: it is the parent of Envoys, and starts the next agent. */
function liveRestore(
  env: NodeJS.ProcessEnv,
  runsEnvoy: boolean,
  errors: OptionErrors,
  warnings: LogWarning[],
): boolean {
  const isEnabled = readSwitch('LIVE_RESTORE', env, errors);
  if (!isEnabled || !runsEnvoy) return false;
  if (isStartedByLauncher(env)) return true;
  warnings.push({ event: 'option.liveRestoreUnavailable', setting: 'LIVE_RESTORE' });
  return false;
}

function withServiceCluster(
  config: ProxyConfig,
  configuredSources: Partial<ProxyConfig>,
  flags: ProxyFlags,
): ProxyConfig {
  if (configuredSources.serviceCluster || configuredSources.tracingServiceName || flags.serviceCluster === undefined)
    return config;
  return { ...config, serviceCluster: flags.serviceCluster };
}

function registryNames(
  flags: ProxyFlags,
  env: NodeJS.ProcessEnv,
  address: string,
  errors: OptionErrors,
): Pick<ProxyOptions, 'workloadId' | 'domain'> {
  const registry = choice('--serviceregistry', ['Kubernetes', 'Consul', 'Mock'], flags.serviceregistry, errors);
  const namespace = env.POD_NAMESPACE || 'default';
  const namesByRegistry = {
    Kubernetes: [`${env.POD_NAME || hostname()}.${namespace}`, `${namespace}.svc.cluster.local`],
    Consul: [`${address}.service.consul`, 'service.consul'],
    Mock: [address, ''],
  } as const;
  const [workloadId, domain] = namesByRegistry[registry];
  return { workloadId: flags.id || workloadId, domain: flags.domain || domain };
}

function workloadProbe({ readinessProbe }: ProxyConfig, errors: OptionErrors): WorkloadProbe | undefined {
  if (readinessProbe === undefined) return undefined;
  const parsedProbe = parseWorkloadProbe(readinessProbe);
  if ('probe' in parsedProbe) return parsedProbe.probe;
  const { field, violation } = parsedProbe.error;
  errors.addFlagError({ source: 'readinessProbe', field }, violation);
  return undefined;
}

function isDualStack(addresses: readonly string[], { proxyMetadata }: ProxyConfig, env: NodeJS.ProcessEnv): boolean {
  const families = new Set(addresses.map(isIP));
  return isSwitchOn(env.ISTIO_DUAL_STACK ?? proxyMetadata.ISTIO_DUAL_STACK) && families.has(4) && families.has(6);
}

function envoyLogLevel(flags: ProxyFlags, errors: OptionErrors, warnings: LogWarning[]): ProxyLogLevel {
  const components = flags.proxyComponentLogLevel ?? '';
  const parsed = parseProxyLogLevel(flags.proxyLogLevel ?? 'warning', components);
  for (const item of components.split(',').filter(Boolean)) {
    const [, level = '', ...otherParts] = item.split(':');
    const isLevel = otherParts.length === 0 && (envoyLogLevels as readonly string[]).includes(level);
    if (!isLevel) errors.addFlagError('--proxyComponentLogLevel', mustBe('COMPONENT:LEVEL,…', item));
  }
  if (!(envoyLogLevels as readonly string[]).includes(parsed.level)) {
    errors.addFlagError('--proxyLogLevel', unknownValue(envoyLogLevels, parsed.level));
  }
  for (const value of parsed.dropped) {
    warnings.push({
      event: 'option.ignored',
      setting: '--proxyLogLevel',
      value,
      reason: 'must be LEVEL or COMPONENT:LEVEL',
    });
  }
  return parsed;
}

function watchOptions(
  { role, flags, config, identity }: Pick<ProxyOptions, 'role' | 'config' | 'identity'> & { flags: ProxyFlags },
  errors: OptionErrors,
): ProxyOptions['watch'] {
  // The agent's SDS server sends changes of these files to Envoy without a restart. A directory of --watchCerts is always watched.
  const isServed = (directory: string): boolean =>
    identity.mounted !== undefined && resolve(directory) === dirname(resolve(identity.mounted.certificate));
  const requiredFiles = tlsFiles(config);
  const directories = [
    ...['/etc/certs'].filter((directory) => !isServed(directory)),
    ...(role === 'router' ? ['/etc/istio/ingress-certs'] : []),
    ...requiredFiles.map((file) => file.slice(0, Math.max(1, file.lastIndexOf('/')))),
    ...(flags.watchCerts ?? '').split(',').map((directory) => directory.trim()),
  ].filter((directory) => directory !== '');
  return {
    directories: [...new Set(directories)],
    delayMs: duration('--watchDelay', flags.watchDelay ?? '10s', errors),
    requiredFiles,
  };
}

/** Empty names in the configuration are ignored. */
function tlsFiles(config: ProxyConfig): string[] {
  const files = [config.envoyMetricsService, config.envoyAccessLogService].flatMap((service) => {
    const tls = service?.tlsSettings;
    if (!isObject(tls) || tls.mode === 'DISABLE') return [];
    return [tls.caCertificates, tls.clientCertificate, tls.privateKey];
  });
  return [...new Set(files.filter((file): file is string => typeof file === 'string' && file !== ''))];
}

function duration(flag: string, text: string, errors: OptionErrors): number {
  const ms = durationMsOf(text);
  if (ms !== undefined && ms >= 0) return ms;
  errors.addFlagError(flag, mustBe('a duration such as 500ms or 10s', text));
  return 0;
}

function requireAddress(optionName: string, text: string | undefined, errors: OptionErrors): void {
  if (text && isIP(text) === 0) errors.addFlagError(optionName, mustBe('an IP address', text));
}

function choice<Word extends string>(
  flag: string,
  allowedValues: readonly [Word, ...Word[]],
  configuredValue: string | undefined,
  errors: OptionErrors,
): Word {
  const matchedValue = allowedValues.find((candidate) => candidate === (configuredValue ?? allowedValues[0]));
  if (matchedValue === undefined) errors.addFlagError(flag, unknownValue(allowedValues, configuredValue));
  return matchedValue ?? allowedValues[0];
}

function spareAdminPort({ spareAdminPort: text }: ProxyFlags, errors: OptionErrors): number {
  if (text === undefined) return 0;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65535) {
    errors.addFlagError('--spareAdminPort', mustBe('a port, or 0 for a free port', text));
  }
  return port;
}

function parseOptionalPort(name: string, text: string | undefined, defaultPort: number, errors: OptionErrors): number {
  if (text === undefined || text === '') return defaultPort;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65535) return port;
  errors.addFlagError(name, mustBe('a port, or 0 to disable', text));
  return defaultPort;
}

function baseIdOf(flags: ProxyFlags, errors: OptionErrors): number | undefined {
  if (flags.baseId === undefined) return undefined;
  const baseId = Number(flags.baseId);
  // Envoy multiplies the base ID by 10 and stores it in 32 bits.
  if (/^\d+$/.test(flags.baseId) && baseId <= 400_000_000) return baseId;
  errors.addFlagError('--baseId', outOfRange('an integer from 0 to 400000000', flags.baseId));
  return undefined;
}

/** Returns `undefined` if ISTIO_CPU_LIMIT is not set or invalid. */
function workerThreadsOf(text: string | undefined, warnings: LogWarning[]): number | undefined {
  if (!text) return undefined;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value <= maxThreads) return value;
  warnings.push({
    event: 'option.defaulted',
    setting: 'ISTIO_CPU_LIMIT',
    value: text,
    default: 'the number of processors',
    reason: `must be an integer from 1 to ${maxThreads}`,
  });
  return undefined;
}

/** Ignores an unreadable override with a warning; an override that Envoy cannot parse would fail at each start. */
function readOverride(env: NodeJS.ProcessEnv, errors: OptionErrors, warnings: LogWarning[]): string {
  const path = env.ISTIO_BOOTSTRAP_OVERRIDE;
  if (!path) return '';
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    warnings.push({ event: 'option.ignored', setting: 'ISTIO_BOOTSTRAP_OVERRIDE', reason: messageOf(error) });
    return '';
  }
  const override = env.HOST_IP ? withHostIp(content, env.HOST_IP) : content;
  const problem = whyNoArgument(override) ?? whyNoObject(content);
  if (problem !== undefined) errors.addConfigError({ source: 'ISTIO_BOOTSTRAP_OVERRIDE', field: path }, problem);
  return override;
}

/** Linux limit of one argument, without the terminating NUL. */
const maxArgumentBytes = 128 * 1024 - 1;

function whyNoArgument(text: string): FieldViolation | undefined {
  if (text.includes('\0')) return disallowedValue('must not contain a NUL character: Envoy gets it as an argument');
  const bytes = Buffer.byteLength(text);
  return bytes <= maxArgumentBytes ? undefined : tooLarge(maxArgumentBytes, bytes, 'bytes');
}

function whyNoObject(yaml: string): FieldViolation | undefined {
  try {
    const value: unknown = parseYaml(yaml);
    const isObject = value === null || (typeof value === 'object' && !Array.isArray(value));
    return isObject ? undefined : wrongType('an object', value);
  } catch (error) {
    return { code: 'YAML_INVALID', message: messageOf(error).split('\n', 1)[0]! };
  }
}
