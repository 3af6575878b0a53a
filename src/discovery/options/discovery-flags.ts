import { durationMsOf, maxTimerMs } from '../../model/fields/duration.ts';
import { isHostname, isNamespace } from '../../model/fields/names.ts';
import { mustBe } from '../../model/fields/violation.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { optionError } from '../../runtime/option-errors.ts';
import type { ConsulFlags } from '../consul/consul-settings.ts';
import { booleanOf } from '../environment.ts';
import { type ListenAddress, parseListenAddress } from '../listen-address.ts';
import type { SecurePortFlags } from '../xds/secure-port/secure-port.ts';

export interface DiscoveryFlags extends SecurePortFlags, ConsulFlags {
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
  readonly namespace?: string;
  readonly clusterRegistriesNamespace?: string;
  readonly kubeconfig?: string;
  /** `true` if the flag has no value. */
  readonly profile?: string | boolean;
  readonly heapSnapshots?: string | boolean;
  readonly shutdownDuration?: string;
  readonly keepaliveInterval?: string;
  readonly keepaliveTimeout?: string;
  readonly keepaliveMaxServerConnectionAge?: string;
}

const oneSecondMs = 1_000;

export function requireNamespace(flag: string, text: string | undefined): void {
  if (text && !isNamespace(text)) throw optionError(flag, mustBe('a namespace such as istio-system', text));
}

export function clusterDomainOf(text: string | undefined): string {
  if (text && !isHostname(text)) throw optionError('--domain', mustBe('a DNS domain such as cluster.local', text));
  return (text || 'cluster.local').toLowerCase();
}

export function addressesOf(flags: DiscoveryFlags): {
  readonly httpAddresses: readonly ListenAddress[];
  readonly grpcAddress: ListenAddress | undefined;
} {
  const http = parseListenAddress('--httpAddr', flags.httpAddr ?? ':8080');
  const monitoring = parseListenAddress('--monitoringAddr', flags.monitoringAddr ?? ':15014');
  const grpcAddress = parseListenAddress('--grpcAddr', flags.grpcAddr ?? ':15010');
  if (grpcAddress === undefined && http === undefined) {
    throw new ChartpilotError('FLAG_INVALID', '--grpcAddr, --httpAddr: at least one address is required to serve xDS');
  }
  return { httpAddresses: [http, monitoring].flatMap((address) => address ?? []), grpcAddress };
}

/** The flag may have no value (`--profile`) or one (`--profile=false`). */
export function parseSwitch(flag: string, value: string | boolean | undefined, defaultValue: boolean): boolean {
  if (value === undefined || value === '') return defaultValue;
  const isEnabled = typeof value === 'boolean' ? value : booleanOf(value);
  if (isEnabled === undefined)
    throw new ChartpilotError('FLAG_INVALID', `${flag}: must be true or false, got ${value}`);
  return isEnabled;
}

/** Parses `alias1=cluster1,alias2=cluster2`. */
export function parseAliases(text: string): Record<string, string> {
  const aliases = new Map<string, string>();
  for (const item of text.split(',').filter(Boolean)) {
    const [alias = '', cluster = '', ...otherParts] = item.split('=');
    if (alias === '' || cluster === '' || otherParts.length > 0) {
      throw new ChartpilotError(
        'FLAG_INVALID',
        `--clusterAliases: must be ALIAS=CLUSTER,…, got ${JSON.stringify(item)}`,
      );
    }
    const otherAlias = [...aliases].find(([, otherCluster]) => otherCluster === cluster)?.[0];
    if (otherAlias !== undefined) {
      throw new ChartpilotError(
        'FLAG_INVALID',
        `--clusterAliases: cluster ${cluster} has two aliases, ${otherAlias} and ${alias}`,
      );
    }
    aliases.set(alias, cluster);
  }
  return Object.fromEntries(aliases);
}

export function duration(flag: string, text: string | undefined, defaultMs: number): number {
  if (text === undefined || text === '') return defaultMs;
  const ms = durationMsOf(text);
  if (ms === undefined || ms < 0) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `${flag}: must be a duration such as 300ms, 30s or 1h30m, got ${JSON.stringify(text)}`,
    );
  }
  if (ms > maxTimerMs && flag !== connectionAge) {
    throw new ChartpilotError('FLAG_INVALID', `${flag}: must be at most ${maxTimerMs / 3_600_000}h, got ${text}`);
  }
  return ms;
}

const connectionAge = '--keepaliveMaxServerConnectionAge';

/** Returns 0 (unlimited) for ages that exceed the longest timer, because Istio's default is Go's maximum duration. */
export function maxConnectionAge(text: string | undefined): number {
  const ms = duration(connectionAge, text, 0);
  if (ms > maxTimerMs) return 0;
  if (text !== undefined && text !== '' && ms < oneSecondMs) {
    throw new ChartpilotError('FLAG_INVALID', `${connectionAge}: must be at least 1s, got ${text}`);
  }
  return ms;
}
