/** Metrics of the application, merged with those of Envoy and the agent on the status port (spec/injection.md §3.4). */
import { booleanOf } from '../../model/fields/go-boolean.ts';
import * as violation from '../../model/fields/violation.ts';
import type { Pod, Texts } from './pod.ts';
import { withAnnotations } from './pod.ts';

/** Value of `ISTIO_PROMETHEUS_ANNOTATIONS`: where the application serves its metrics. */
export interface ScrapeSettings {
  readonly scrape?: string;
  readonly path?: string;
  readonly port?: string;
}

const fieldsByKey: Readonly<Record<string, keyof ScrapeSettings>> = {
  prometheus_io_scrape: 'scrape',
  prometheus_io_path: 'path',
  prometheus_io_port: 'port',
};

const mergedPath = '/stats/prometheus';
/** Ports of Envoy, the agent and interception: a scrape of one of them would not end, or reach no application. */
const reservedPorts = new Set([15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090]);

/** Prometheus replaces characters that its labels cannot have, so `prometheus/io.port` is `prometheus_io_port`. */
function fieldOf(key: string): keyof ScrapeSettings | undefined {
  const name = key.replaceAll(/\W/g, '_');
  return Object.hasOwn(fieldsByKey, name) ? fieldsByKey[name] : undefined;
}

/** The annotations that a scraper reads of the pod. */
export function scrapeSettingsOf({ metadata: { annotations = {} } }: Pod): ScrapeSettings {
  const found = new Map(Object.entries(annotations).map(([key, value]) => [fieldOf(key), value]));
  const fields = ['scrape', 'path', 'port'] as const;
  return Object.fromEntries(fields.filter((field) => found.has(field)).map((field) => [field, found.get(field)]));
}

/** Whether the agent has to merge metrics: not if the pod refuses scrapes, or names the status port already. */
export function mergesMetrics({ scrape, port }: ScrapeSettings, statusPort: number): boolean {
  return booleanOf(scrape ?? '') !== false && port !== String(statusPort);
}

/** `undefined`: the port may be scraped. */
export function scrapePortError({ port = '' }: ScrapeSettings): violation.Violation | undefined {
  return reservedPorts.has(Number(port)) ? violation.notAllowed('must not be a port of the sidecar', port) : undefined;
}

/** The pod, scraped on the status port instead. */
export function withMergedMetrics(pod: Pod, statusPort: number): Pod {
  return withScrapeSettings(pod, { scrape: 'true', path: mergedPath, port: String(statusPort) });
}

/**
 * Undoes {@link withMergedMetrics}.
 *
 * @param original stored by the injection; `undefined`: none was stored, because the pod had no such annotations
 * @param statusPort that the injection wrote
 */
export function withoutMergedMetrics(pod: Pod, original: ScrapeSettings | undefined, statusPort: number): Pod {
  if (original !== undefined) return withScrapeSettings(pod, original);
  const { port, path } = scrapeSettingsOf(pod);
  return path === mergedPath && port === String(statusPort) ? withScrapeSettings(pod, {}) : pod;
}

function withScrapeSettings(pod: Pod, settings: ScrapeSettings): Pod {
  const otherAnnotations = Object.entries(pod.metadata.annotations ?? {}).filter(([key]) => fieldOf(key) === undefined);
  const written: Texts = Object.fromEntries(
    Object.entries(settings).map(([field, value]) => [`prometheus.io/${field}`, value]),
  );
  return withAnnotations(pod, { ...Object.fromEntries(otherAnnotations), ...written });
}
