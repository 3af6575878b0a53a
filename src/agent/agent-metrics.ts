/** What the agent counts about itself (spec/agent.md §6.5). */
import type { Counter, Gauge, Registry } from 'prom-client';
import type { TraceRecord } from '../runtime/trace.ts';

/** Plain numbers until somebody asks: most agents are scraped rarely, and the metrics library costs memory. */
export class AgentMetrics {
  #startupSeconds: number | undefined;
  #scrapes = 0;
  readonly #scrapeFailures = { envoy: 0, application: 0, agent: 0 };
  readonly #epochs = new Map([
    ['started', 0],
    ['live', 0],
    ['failed', 0],
  ]);
  #exposition: Promise<Exposition> | undefined;

  /** How long the agent took from its start to its first readiness. Later calls count for nothing. */
  ready(sinceStartMs: number): void {
    this.#startupSeconds ??= sinceStartMs / 1000;
  }

  scraped(): void {
    this.#scrapes++;
  }

  scrapeFailed(part: 'envoy' | 'application' | 'agent'): void {
    this.#scrapeFailures[part]++;
  }

  /** Reads what the supervisor is told. */
  observe(record: TraceRecord): void {
    if (record.kind !== 'event' || record.to !== 'supervisor') return;
    const what = record.event.type.replace(/^epoch\./, '');
    const count = this.#epochs.get(what);
    if (count !== undefined) this.#epochs.set(what, count + 1);
  }

  /** Everything in Prometheus' text format. */
  async text(): Promise<string> {
    this.#exposition ??= createExposition();
    const { registry, startup, scrapes, scrapeFailures, epochs } = await this.#exposition;
    for (const metric of [scrapes, scrapeFailures, epochs]) metric.reset();
    if (this.#startupSeconds !== undefined) startup.set(this.#startupSeconds);
    scrapes.inc(this.#scrapes);
    for (const [type, count] of Object.entries(this.#scrapeFailures)) scrapeFailures.inc({ type }, count);
    for (const [event, count] of this.#epochs) epochs.inc({ event }, count);
    return registry.metrics();
  }
}

interface Exposition {
  readonly registry: Registry;
  readonly startup: Gauge;
  readonly scrapes: Counter;
  readonly scrapeFailures: Counter;
  readonly epochs: Counter;
}

async function createExposition(): Promise<Exposition> {
  // The package is CommonJS; its names are found on the default export in every bundle.
  const { default: client } = await import('prom-client');
  const registry = new client.Registry();
  client.collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    startup: new client.Gauge({
      name: 'istio_agent_startup_duration_seconds',
      help: 'Time from the start of the agent until its proxy was ready for the first time.',
      registers,
    }),
    scrapes: new client.Counter({
      name: 'istio_agent_scrapes_total',
      help: 'Requests for metrics.',
      registers,
    }),
    scrapeFailures: new client.Counter({
      name: 'istio_agent_scrape_failures_total',
      help: 'Parts of the metrics that could not be had.',
      labelNames: ['type'],
      registers,
    }),
    epochs: new client.Counter({
      name: 'istio_agent_envoy_epochs_total',
      help: 'Envoys that were started, became live, or ended without an order.',
      labelNames: ['event'],
      registers,
    }),
  };
}
