import type { UpstreamCounts } from './dns-upstream.ts';

/** In seconds. */
const buckets = [0.001, 0.005, 0.01, 0.1, 1, 5] as const;

export class DnsCounts {
  requests = 0;
  readonly upstream: UpstreamCounts = {
    requests: 0,
    failures: 0,
    refused: 0,
    recordDuration: (seconds) => {
      this.#seconds += seconds;
      const bucket = buckets.findIndex((limit) => seconds <= limit);
      this.#bucketCounts[bucket < 0 ? buckets.length : bucket]!++;
    },
  };
  /** Not cumulative; the last bucket has no upper bound. */
  readonly #bucketCounts: number[] = [...buckets, Number.POSITIVE_INFINITY].map(() => 0);
  #seconds = 0;

  text(): string {
    const { requests, failures, refused } = this.upstream;
    const name = 'istio_agent_dns_upstream_request_duration_seconds';
    let cumulativeCount = 0;
    const cumulativeCounts = this.#bucketCounts.map((count, i) => {
      cumulativeCount += count;
      return `${name}_bucket{le="${buckets[i] ?? '+Inf'}"} ${cumulativeCount}`;
    });
    return [
      ...counter('istio_agent_dns_requests_total', 'DNS queries of the workload.', this.requests),
      ...counter(
        'istio_agent_dns_upstream_requests_total',
        'DNS queries forwarded to upstream name servers.',
        requests,
      ),
      ...counter('istio_agent_dns_upstream_failures_total', 'Forwarded DNS queries without a response.', failures),
      ...counter(
        'istio_agent_dns_upstream_refused_total',
        'DNS queries not forwarded because too many were pending.',
        refused,
      ),
      `# HELP ${name} Duration of forwarded DNS queries in seconds.`,
      `# TYPE ${name} histogram`,
      ...cumulativeCounts,
      `${name}_sum ${this.#seconds}`,
      `${name}_count ${cumulativeCount}`,
      '',
    ].join('\n');
  }
}

function counter(name: string, help: string, value: number): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} counter`, `${name} ${value}`];
}
