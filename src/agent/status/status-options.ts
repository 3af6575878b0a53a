import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { readSwitch } from '../../model/fields/switches.ts';
import { mustBe } from '../../model/fields/violation.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import { parseScrapeTargets } from './application-metrics.ts';
import { type ApplicationProbes, parseProbes } from './application-probes.ts';
import type { MetricsTarget } from './merged-metrics.ts';

export interface StatusOptions {
  readonly probes: ApplicationProbes;
  /** Probes are sent to this address of the pod. */
  readonly destination: string;
  readonly localhost: string;
  readonly source: string | undefined;
  readonly http2Probes: boolean;
  readonly keepsProbeConnections: boolean;
  readonly applicationMetrics: readonly MetricsTarget[];
  readonly profiling: boolean;
  /** Heap snapshots contain the workload's private key. */
  readonly heapSnapshots: boolean;
  readonly metricsForThisHost: boolean;
  /** Envoy must serve one of these ports before the proxy is ready; if the list is empty, no port is checked. */
  readonly applicationPorts: readonly number[];
}

export interface StatusSources {
  readonly role: 'sidecar' | 'router';
  readonly env: NodeJS.ProcessEnv;
  readonly profiling: string | undefined;
  readonly heapSnapshots?: string | undefined;
  readonly applicationPorts?: string | undefined;
  readonly address: string;
  readonly localhost: string;
  readonly statusPort: number;
  readonly errors: OptionErrors;
  readonly warnings: LogWarning[];
  readonly hasAddress?: (address: string) => boolean;
}

/** The rules of istio-iptables do not redirect connections from these addresses. */
const sourceAddresses = { v4: '127.0.0.6', v6: '::6' } as const;

export function statusOptions(statusSources: StatusSources): StatusOptions {
  const { env, address, localhost, errors } = statusSources;
  const isLegacy = readSwitch('REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION', env, errors);
  const destination = isLegacy ? localhost : address;
  return {
    probes: probesOf(statusSources),
    destination,
    localhost,
    source: isLegacy ? undefined : sourceFor(destination, statusSources.hasAddress ?? hostHasAddress),
    http2Probes: readSwitch('ISTIO_ENABLE_HTTP2_PROBING', env, errors, true),
    keepsProbeConnections: readSwitch('ENABLE_PROBE_KEEPALIVE_CONNECTIONS', env, errors),
    applicationMetrics: applicationMetrics(statusSources),
    profiling: readSwitch('--profiling', { '--profiling': statusSources.profiling }, errors, true),
    heapSnapshots: readSwitch('--heapSnapshots', { '--heapSnapshots': statusSources.heapSnapshots }, errors),
    metricsForThisHost: readSwitch('METRICS_LOCALHOST_ACCESS_ONLY', env, errors),
    applicationPorts: applicationPorts(statusSources.applicationPorts, errors),
  };
}

function applicationPorts(text: string | undefined, errors: OptionErrors): number[] {
  const items = (text ?? '').split(',').flatMap((item) => item.trim() || []);
  for (const item of items) {
    if (/^\d+$/.test(item) && Number(item) <= 65535) continue;
    errors.addFlagError('--applicationPorts', mustBe('a list of ports such as 8080,8443', item));
  }
  return [...new Set(items.map(Number))];
}

function probesOf({ env, statusPort, errors, warnings }: StatusSources): ApplicationProbes {
  const text = env.ISTIO_KUBE_APP_PROBERS;
  if (!text) return new Map();
  const parsedProbes = parseProbes(text, statusPort);
  if ('error' in parsedProbes) {
    const { field, violation } = parsedProbes.error;
    errors.addFlagError({ source: 'ISTIO_KUBE_APP_PROBERS', field }, violation);
    return new Map();
  }
  warnings.push(...parsedProbes.warnings);
  if (statusPort === 0) {
    const reason = 'requires --statusPort';
    warnings.push({ event: 'option.ignored', setting: 'ISTIO_KUBE_APP_PROBERS', reason });
  }
  return parsedProbes.probes;
}

/** An empty value is invalid: the variable is set, but not to an object. */
function applicationMetrics({ role, env, statusPort, errors, warnings }: StatusSources): readonly MetricsTarget[] {
  const text = env.ISTIO_PROMETHEUS_ANNOTATIONS;
  if (role !== 'sidecar' || text === undefined) return [];
  const parsedTargets = parseScrapeTargets(text, statusPort);
  if ('targets' in parsedTargets) {
    const { targets, warning } = parsedTargets;
    if (warning !== undefined) {
      warnings.push({ event: 'option.ignored', setting: 'ISTIO_PROMETHEUS_ANNOTATIONS', reason: warning });
    }
    return targets;
  }
  const { field, violation } = parsedTargets.error;
  errors.addFlagError({ source: 'ISTIO_PROMETHEUS_ANNOTATIONS', field }, violation);
  return [];
}

/** All of 127.0.0.0/8 exists on any host; `::6` only if istio-iptables has added it. */
function sourceFor(destination: string, hasAddress: (address: string) => boolean): string | undefined {
  if (!isIPv6(destination)) return sourceAddresses.v4;
  return hasAddress(sourceAddresses.v6) ? sourceAddresses.v6 : undefined;
}

function hostHasAddress(searched: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === searched));
}
