/** The status port serves the metrics of the application, Envoy and the agent. */
import { booleanOf } from '../../model/fields/go-boolean.ts';
import * as violation from '../../model/fields/violation.ts';
import type { Pod, Texts } from './pod.ts';
import { withAnnotations } from './pod.ts';

/** Address of the application's metrics, as in `ISTIO_PROMETHEUS_ANNOTATIONS`. */
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
/** Scraping these ports of Envoy, the agent and interception would recurse or not reach the application. */
const reservedPorts = new Set([15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090]);

/** Prometheus replaces characters that are invalid in its labels, so `prometheus/io.port` equals `prometheus_io_port`. */
function fieldOf(key: string): keyof ScrapeSettings | undefined {
  const name = key.replaceAll(/\W/g, '_');
  return Object.hasOwn(fieldsByKey, name) ? fieldsByKey[name] : undefined;
}

export function scrapeSettingsOf({ metadata: { annotations = {} } }: Pod): ScrapeSettings {
  const valueByField = new Map(Object.entries(annotations).map(([key, value]) => [fieldOf(key), value]));
  const fields = ['scrape', 'path', 'port'] as const;
  return Object.fromEntries(
    fields.filter((field) => valueByField.has(field)).map((field) => [field, valueByField.get(field)]),
  );
}

export function mergesMetrics({ scrape, port }: ScrapeSettings, statusPort: number): boolean {
  return booleanOf(scrape ?? '') !== false && port !== String(statusPort);
}

export function scrapePortError({ port = '' }: ScrapeSettings): violation.FieldViolation | undefined {
  return reservedPorts.has(Number(port))
    ? violation.disallowedValue('must not be a port of the sidecar', port)
    : undefined;
}

export function withMergedMetrics(pod: Pod, statusPort: number): Pod {
  return withScrapeSettings(pod, { scrape: 'true', path: mergedPath, port: String(statusPort) });
}

/**
 * @param originalSettings annotations that the injection stored; `undefined` if the pod had none
 * @param statusPort that the injection wrote
 */
export function withoutMergedMetrics(pod: Pod, originalSettings: ScrapeSettings | undefined, statusPort: number): Pod {
  if (originalSettings !== undefined) return withScrapeSettings(pod, originalSettings);
  const { port, path } = scrapeSettingsOf(pod);
  return path === mergedPath && port === String(statusPort) ? withScrapeSettings(pod, {}) : pod;
}

function withScrapeSettings(pod: Pod, settings: ScrapeSettings): Pod {
  const otherAnnotations = Object.entries(pod.metadata.annotations ?? {}).filter(([key]) => fieldOf(key) === undefined);
  const scrapeAnnotations: Texts = Object.fromEntries(
    Object.entries(settings).map(([field, value]) => [`prometheus.io/${field}`, value]),
  );
  return withAnnotations(pod, { ...Object.fromEntries(otherAnnotations), ...scrapeAnnotations });
}
