import { X509Certificate } from 'node:crypto';
import { identityName } from '../../../machines/agent/secrets/held-secrets.ts';
import type { SecretVault } from './secret-vault.ts';

/** In milliseconds. */
const buckets = [10, 50, 100, 500, 1_000, 5_000, 10_000] as const;
const prefix = 'istio_agent_';
const requestType = 'request_type="csr"';

export class SecretCounts {
  #calls = 0;
  #failedCount = 0;
  #retries = 0;
  #fileFailures = 0;
  #identityFailure = '';
  #hasLastCallFailed = false;
  /** Not cumulative; the last bucket has no upper bound. */
  readonly #bucketCounts: number[] = [...buckets, Number.POSITIVE_INFINITY].map(() => 0);
  #totalMs = 0;
  readonly #vault: Pick<SecretVault, 'newestPairs' | 'allNewestLists'>;
  readonly #now: () => number;

  constructor(vault: Pick<SecretVault, 'newestPairs' | 'allNewestLists'>, now: () => number = Date.now) {
    this.#vault = vault;
    this.#now = now;
  }

  countCall(durationMs: number, isObtained: boolean): void {
    this.#calls++;
    if (this.#hasLastCallFailed) this.#retries++;
    if (!isObtained) this.#failedCount++;
    this.#hasLastCallFailed = !isObtained;
    this.#totalMs += durationMs;
    const bucket = buckets.findIndex((limit) => durationMs <= limit);
    this.#bucketCounts[bucket < 0 ? buckets.length : bucket]!++;
  }

  identityFailed(reason: string): void {
    this.#identityFailure = reason;
  }

  /** The reason why the workload has no certificate. */
  get missingCertificate(): string | undefined {
    for (const [name] of this.#vault.newestPairs()) if (name === identityName) return undefined;
    return this.#identityFailure || 'not obtained yet';
  }

  countFileFailure(): void {
    this.#fileFailures++;
  }

  text(): string {
    const expiry = `${prefix}cert_expiry_seconds`;
    const listExpiry = `${prefix}revocation_list_expiry_seconds`;
    const latency = `${prefix}outgoing_latency`;
    let cumulativeCount = 0;
    const cumulativeCounts = this.#bucketCounts.map((count, i) => {
      cumulativeCount += count;
      return `${latency}_bucket{${requestType},le="${buckets[i] ?? '+Inf'}"} ${cumulativeCount}`;
    });
    return [
      ...counter('num_outgoing_requests', 'Certificate requests sent to the CA.', this.#calls, `{${requestType}}`),
      ...counter('num_failed_outgoing_requests', 'Failed certificate requests.', this.#failedCount, `{${requestType}}`),
      ...counter('num_outgoing_retries', 'Retried certificate requests.', this.#retries, `{${requestType}}`),
      ...counter('num_file_secret_failures_total', 'Failed reads of mounted certificate files.', this.#fileFailures),
      `# HELP ${latency} Latency of certificate requests in milliseconds.`,
      `# TYPE ${latency} histogram`,
      ...cumulativeCounts,
      `${latency}_sum{${requestType}} ${this.#totalMs}`,
      `${latency}_count{${requestType}} ${cumulativeCount}`,
      `# HELP ${expiry} Seconds until the certificate expires; negative after expiry.`,
      `# TYPE ${expiry} gauge`,
      ...[...this.#vault.newestPairs()].flatMap(([name, { chain }]) => {
        const endsAtMs = expiryMsOf(chain);
        return endsAtMs === undefined
          ? []
          : [`${expiry}{resource_name="${escapeLabel(name)}"} ${Math.floor((endsAtMs - this.#now()) / 1000)}`];
      }),
      `# HELP ${listExpiry} Seconds until the first certificate revocation list of the secret expires; negative after expiry.`,
      `# TYPE ${listExpiry} gauge`,
      ...[...this.#vault.allNewestLists()].flatMap(([name, revocationLists]) => {
        const expiryTimes = revocationLists.flatMap(({ nextUpdate }) => nextUpdate?.getTime() ?? []);
        if (expiryTimes.length === 0) return [];
        const seconds = Math.floor((Math.min(...expiryTimes) - this.#now()) / 1000);
        return [`${listExpiry}{resource_name="${escapeLabel(name)}"} ${seconds}`];
      }),
      '',
    ].join('\n');
  }
}

function expiryMsOf(chain: string): number | undefined {
  try {
    const endsAtMs = Date.parse(new X509Certificate(chain).validTo);
    return Number.isNaN(endsAtMs) ? undefined : endsAtMs;
  } catch {
    return undefined;
  }
}

/** Envoy chooses names freely. */
function escapeLabel(label: string): string {
  return label.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function counter(name: string, help: string, value: number, labels = ''): string[] {
  const metricName = `${prefix}${name}`;
  return [`# HELP ${metricName} ${help}`, `# TYPE ${metricName} counter`, `${metricName}${labels} ${value}`];
}
