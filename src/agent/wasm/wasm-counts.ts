/** The names of the metrics are those of Istio's agent. */

/** In milliseconds. */
const buckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384] as const;
const prefix = 'istio_agent_wasm_';

export type FetchResult = 'success' | 'download_failure' | 'checksum_mismatched' | 'fetch_failure';
export type ConversionResult = 'success' | 'no_remote_load' | 'fetch_failure';

export class WasmCounts {
  entries = 0;
  readonly #lookups = { true: 0, false: 0 };
  readonly #fetches: Record<FetchResult, number> = {
    ...{ success: 0, download_failure: 0, checksum_mismatched: 0, fetch_failure: 0 },
  };
  readonly #conversions: Record<ConversionResult, number> = { success: 0, no_remote_load: 0, fetch_failure: 0 };
  /** Not cumulative; the last bucket has no upper bound. */
  readonly #bucketCounts: number[] = [...buckets, Number.POSITIVE_INFINITY].map(() => 0);
  #totalMs = 0;

  recordLookup(isHit: boolean): void {
    this.#lookups[`${isHit}`]++;
  }

  countFetch(result: FetchResult): void {
    this.#fetches[result]++;
  }

  countConversion(result: ConversionResult): void {
    this.#conversions[result]++;
  }

  recordConversionDuration(tookMs: number): void {
    this.#totalMs += tookMs;
    const bucket = buckets.findIndex((limit) => tookMs <= limit);
    this.#bucketCounts[bucket < 0 ? buckets.length : bucket]!++;
  }

  text(): string {
    const duration = `${prefix}config_conversion_duration`;
    let cumulativeCount = 0;
    const cumulativeCounts = this.#bucketCounts.map((count, index) => {
      cumulativeCount += count;
      return `${duration}_bucket{le="${buckets[index] ?? '+Inf'}"} ${cumulativeCount}`;
    });
    return [
      `# HELP ${prefix}cache_entries Wasm modules in the cache.`,
      `# TYPE ${prefix}cache_entries gauge`,
      `${prefix}cache_entries ${this.entries}`,
      ...labelledCounter('cache_lookup_count', 'Lookups of Wasm modules in the cache.', 'hit', this.#lookups),
      ...labelledCounter('remote_fetch_count', 'Fetches of Wasm modules by result.', 'result', this.#fetches),
      ...labelledCounter('config_conversion_count', 'Extension configurations by result.', 'result', this.#conversions),
      `# HELP ${duration} Milliseconds that responses waited for their Wasm modules.`,
      `# TYPE ${duration} histogram`,
      ...cumulativeCounts,
      `${duration}_sum ${this.#totalMs}`,
      `${duration}_count ${cumulativeCount}`,
      '',
    ].join('\n');
  }
}

function labelledCounter(
  name: string,
  help: string,
  label: string,
  counts: Readonly<Record<string, number>>,
): string[] {
  return [
    `# HELP ${prefix}${name} ${help}`,
    `# TYPE ${prefix}${name} counter`,
    ...Object.entries(counts).map(([value, count]) => `${prefix}${name}{${label}="${value}"} ${count}`),
  ];
}
