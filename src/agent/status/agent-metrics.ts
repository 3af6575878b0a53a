import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { RestartEnded, ServingReport } from '../../../machines/agent/protocol.ts';
import type { IdentitySettings } from '../../../machines/agent/settings.ts';
import type { UncaughtOrigin } from '../../runtime/fences/uncaught.ts';
import { labelValue } from '../../runtime/label-value.ts';
import type { SinkLines } from '../../runtime/output/line-sink.ts';
import { definitionsOf, type MetricDefinition } from '../../runtime/output/metric-definitions.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { visibleMetrics } from '../../runtime/visible-text.ts';
import type { DnsCounts } from '../dns/dns-counts.ts';
import type { ProbeResult } from '../envoy/serving-envoy.ts';
import { XdsActivity } from '../xds/xds-activity.ts';
import { binaryEventIn, restartEventIn } from './agent-log.ts';

/** Lines that log and trace have lost, and lines that wait to be written. */
export interface UnwrittenLines {
  readonly log: SinkLines;
  readonly trace: SinkLines;
}

interface TextCounts {
  text(): string;
}

const noSinkLines: SinkLines = { lost: 0, waiting: 0 };

/** Counts in plain numbers until the first scrape: most agents are scraped rarely, and prom-client needs memory. */
export class AgentMetrics {
  #identity: Pick<IdentitySettings, 'source' | 'reason'> | undefined;
  #startupSeconds: number | undefined;
  #scrapes = 0;
  #droppedLines = 0;
  readonly #scrapeFailures = { envoy: 0, application: 0, agent: 0 };
  readonly #epochs = new Map([
    ['started', 0],
    ['live', 0],
    ['failed', 0],
  ]);
  readonly #binaries = { offered: 0, refused: 0, withdrawn: 0 };
  readonly #restarts = new Map<string, { labels: Record<'reason' | 'how' | 'outcome', string>; count: number }>();
  /** Times that are not in the histogram yet: few, because a hot restart takes seconds. */
  readonly #timesToLive: number[] = [];
  /** The serving epoch, or the last one that served. */
  #epoch = '';
  #notServingSeconds = 0;
  /** `t`: clock of the trace. `now`: clock of this class. */
  #idleSince: { t: number; now: number } | undefined;
  #unresponsiveSince: number | undefined;
  #hasCertificate = (): boolean => true;
  readonly #uncaughtByOrigin = new Map<UncaughtOrigin, number>();
  readonly #now: () => number;
  readonly #countUnwrittenLines: () => UnwrittenLines;
  readonly #xds: XdsActivity;
  #exposition: Promise<Exposition> | undefined;
  #dns: DnsCounts | undefined;
  #secrets: TextCounts | undefined;
  #wasm: TextCounts | undefined;
  #watchFailures = 0;
  #mesh: { text(): Iterable<string> } | undefined;

  /** @param now monotonic milliseconds */
  constructor(
    now: () => number = () => performance.now(),
    countUnwrittenLines: () => UnwrittenLines = () => ({ log: noSinkLines, trace: noSinkLines }),
    xds: XdsActivity = new XdsActivity(),
  ) {
    this.#now = now;
    this.#countUnwrittenLines = countUnwrittenLines;
    this.#xds = xds;
  }

  withDns(counts: DnsCounts): void {
    this.#dns = counts;
  }

  withSecrets(counts: TextCounts): void {
    this.#secrets = counts;
  }

  withWasm(counts: TextCounts): void {
    this.#wasm = counts;
  }

  withMesh(metrics: { text(): Iterable<string> }): void {
    this.#mesh = metrics;
  }

  /** The chunks contain complete lines, possibly several megabytes. */
  meshText(): Iterable<string> {
    return this.#mesh?.text() ?? [];
  }

  withCertificate(hasCertificate: () => boolean): void {
    this.#hasCertificate = hasCertificate;
  }

  setIdentity(settings: Pick<IdentitySettings, 'source' | 'reason'>): void {
    this.#identity = settings;
  }

  /**
   * An Envoy that is stopped or hangs does not serve; a refused connection proves nothing, because a hot restart moves the admin port.
   *
   * @returns the change that this probe was the first to detect
   */
  recordProbe({ responded, timedOut }: ProbeResult): 'stopped responding' | 'responds again' | 'unchanged' {
    const isUnresponsive = this.#unresponsiveSince !== undefined;
    if (timedOut !== true) {
      if (responded !== true || !isUnresponsive) return 'unchanged';
      this.#endUnresponsive();
      return 'responds again';
    }
    if (isUnresponsive || this.#idleSince !== undefined || this.#epoch === '') return 'unchanged';
    this.#unresponsiveSince = this.#now();
    return 'stopped responding';
  }

  #endUnresponsive(): void {
    if (this.#unresponsiveSince !== undefined)
      this.#notServingSeconds += (this.#now() - this.#unresponsiveSince) / 1000;
    this.#unresponsiveSince = undefined;
  }

  recordReady(sinceStartMs: number): void {
    this.#startupSeconds ??= sinceStartMs / 1000;
  }

  countScrape(): void {
    this.#scrapes++;
  }

  countScrapeFailure(part: 'envoy' | 'application' | 'agent'): void {
    this.#scrapeFailures[part]++;
  }

  countDroppedLines(count: number): void {
    this.#droppedLines += count;
  }

  countUncaught(origin: UncaughtOrigin): void {
    this.#uncaughtByOrigin.set(origin, (this.#uncaughtByOrigin.get(origin) ?? 0) + 1);
  }

  observe(record: TraceRecord): void {
    if (record.kind !== 'event') return;
    const type = record.event.type.replace(/^epoch\./, '');
    const count = record.to === 'supervisor' ? this.#epochs.get(type) : undefined;
    if (count !== undefined) this.#epochs.set(type, count + 1);
    const restart = restartEventIn(record);
    if (restart?.type === 'restart.ended') this.#recordRestart(restart);
    const binary = binaryEventIn(record);
    if (binary !== undefined) this.#binaries[outcomeCounters[binary.type]]++;
    if (record.event.type === 'watch.failed') this.#watchFailures++;
    if (record.to === 'status') this.#recordServing(record.event as unknown as ServingReport, record.t);
  }

  #recordRestart({ reason, how, outcome, timeToLiveMs }: RestartEnded): void {
    const labels = { reason: labelValue(reason), how: labelValue(how), outcome: labelValue(outcome) };
    const key = Object.values(labels).join('|');
    this.#restarts.set(key, { labels, count: (this.#restarts.get(key)?.count ?? 0) + 1 });
    if (timeToLiveMs !== undefined) this.#timesToLive.push(timeToLiveMs / 1000);
  }

  /** Time before the first serving epoch is not counted. */
  #recordServing(event: ServingReport, t: number): void {
    if (event.type === 'serving.began' || event.type === 'serving.ended') this.#endUnresponsive();
    if (event.type === 'serving.began') {
      this.#epoch = event.name;
      if (this.#idleSince !== undefined) this.#notServingSeconds += (t - this.#idleSince.t) / 1000;
      this.#idleSince = undefined;
    } else if (event.type === 'serving.ended' && this.#epoch !== '') {
      this.#idleSince ??= { t, now: this.#now() };
    }
  }

  async definitions(): Promise<MetricDefinition[]> {
    this.#exposition ??= createExposition();
    return definitionsOf((await this.#exposition).registry);
  }

  async text(): Promise<string> {
    this.#exposition ??= createExposition();
    const { registry, startup, scrapes, scrapeFailures, droppedLines, watchFailures, ...otherMetrics } =
      await this.#exposition;
    const { epochs, uncaught, lostLines, waitingLines, identity, ...envoy } = otherMetrics;
    for (const metric of [scrapes, scrapeFailures, droppedLines, epochs, uncaught, lostLines, waitingLines])
      metric.reset();
    if (this.#startupSeconds !== undefined) startup.set(this.#startupSeconds);
    scrapes.inc(this.#scrapes);
    droppedLines.inc(this.#droppedLines);
    watchFailures.reset();
    watchFailures.inc(this.#watchFailures);
    for (const [type, count] of Object.entries(this.#scrapeFailures)) scrapeFailures.inc({ type }, count);
    for (const [event, count] of this.#epochs) epochs.inc({ event }, count);
    for (const [origin, count] of this.#uncaughtByOrigin) uncaught.inc({ origin }, count);
    for (const [sinkName, { lost, waiting }] of Object.entries(this.#countUnwrittenLines())) {
      lostLines.inc({ of: sinkName }, lost);
      waitingLines.set({ of: sinkName }, waiting);
    }
    if (this.#identity !== undefined) {
      const { source, reason } = this.#identity;
      identity.reset();
      if (this.#hasCertificate()) identity.set({ source: labelValue(source), reason }, 1);
      else identity.set({ source: 'nowhere', reason: `no certificate was obtained yet with ${reason}` }, 1);
    }
    this.#exposeEnvoy(envoy);
    this.#exposeXds(envoy);
    const ownMetrics = await registry.metrics();
    return visibleMetrics(
      [ownMetrics, ...[this.#dns, this.#secrets, this.#wasm].flatMap((counts) => counts?.text() ?? [])].join('\n'),
    );
  }

  #exposeEnvoy({ restarts, timeToLive, notServing, serving, binaries }: EnvoyExposition): void {
    for (const metric of [restarts, notServing, serving, binaries]) metric.reset();
    for (const [outcome, count] of Object.entries(this.#binaries)) binaries.inc({ outcome }, count);
    for (const { labels, count } of this.#restarts.values()) restarts.inc(labels, count);
    for (const seconds of this.#timesToLive.splice(0)) timeToLive.observe(seconds);
    const idleSince = this.#idleSince?.now ?? this.#unresponsiveSince;
    const idleMs = idleSince === undefined ? 0 : this.#now() - idleSince;
    notServing.inc(this.#notServingSeconds + idleMs / 1000);
    serving.set({ epoch: this.#epoch }, this.#epoch === '' || idleSince !== undefined ? 0 : 1);
  }

  #exposeXds(exposition: XdsExposition): void {
    const { xdsRequests, xdsResponses, xdsDropped, connectionFailures, upstreamEnds, downstreamEnds } = exposition;
    const counters = [
      [xdsRequests, this.#xds.requests],
      [xdsResponses, this.#xds.responses],
      [xdsDropped, this.#xds.dropped],
      [connectionFailures, this.#xds.connectionFailures],
    ] as const;
    for (const [counter, count] of counters) {
      counter.reset();
      counter.inc(count);
    }
    for (const [counter, exitCounts] of [
      [upstreamEnds, this.#xds.upstreamEnds],
      [downstreamEnds, this.#xds.downstreamEnds],
    ] as const) {
      counter.reset();
      for (const [type, count] of Object.entries(exitCounts)) counter.inc({ type }, count);
    }
  }
}

const outcomeCounters = {
  'binary.changed': 'offered',
  'binary.rejected': 'refused',
  'binary.withdrawn': 'withdrawn',
} as const;

interface XdsExposition {
  readonly xdsRequests: Counter;
  readonly xdsResponses: Counter;
  readonly xdsDropped: Counter;
  readonly connectionFailures: Counter;
  readonly upstreamEnds: Counter;
  readonly downstreamEnds: Counter;
}

interface EnvoyExposition {
  readonly restarts: Counter;
  readonly binaries: Counter;
  readonly timeToLive: Histogram;
  readonly notServing: Counter;
  readonly serving: Gauge;
}

interface Exposition extends EnvoyExposition, XdsExposition {
  readonly registry: Registry;
  readonly startup: Gauge;
  readonly scrapes: Counter;
  readonly scrapeFailures: Counter;
  readonly droppedLines: Counter;
  readonly watchFailures: Counter;
  readonly epochs: Counter;
  readonly uncaught: Counter;
  readonly lostLines: Counter;
  readonly waitingLines: Gauge;
  readonly identity: Gauge;
}

/** In seconds: Envoy is live after 0.2 s on an idle host. A new epoch that is not live after 20 s is stopped if another one serves. */
const timeToLiveBuckets = [0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 20, 60];

async function createExposition(): Promise<Exposition> {
  // The package is CommonJS: in every bundle, its names are on the default export.
  const { default: client } = await import('prom-client');
  const registry = new client.Registry();
  client.collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    startup: new client.Gauge({
      name: 'istio_agent_startup_duration_seconds',
      help: 'Seconds from the start of the agent until the proxy was ready for the first time.',
      registers,
    }),
    scrapes: new client.Counter({
      name: 'istio_agent_scrapes_total',
      help: 'Scrapes of the metrics endpoint.',
      registers,
    }),
    scrapeFailures: new client.Counter({
      name: 'istio_agent_scrape_failures_total',
      help: 'Failed scrapes of Envoy or the application.',
      labelNames: ['type'],
      registers,
    }),
    watchFailures: new client.Counter({
      name: 'istio_agent_num_file_watcher_failures_total',
      help: 'Directory watches that failed.',
      registers,
    }),
    droppedLines: new client.Counter({
      name: 'istio_agent_scrape_dropped_lines_total',
      help: 'Invalid lines dropped from scraped metrics.',
      registers,
    }),
    epochs: new client.Counter({
      name: 'istio_agent_envoy_epochs_total',
      help: 'Envoy epochs that started, became live, or exited unexpectedly.',
      labelNames: ['event'],
      registers,
    }),
    uncaught: new client.Counter({
      name: 'istio_agent_uncaught_errors_total',
      help: 'Uncaught errors, each a bug of the agent, which continued.',
      labelNames: ['origin'],
      registers,
    }),
    waitingLines: new client.Gauge({
      name: 'istio_agent_waiting_lines',
      help: 'Log lines and trace records waiting to be written.',
      labelNames: ['of'],
      registers,
    }),
    lostLines: new client.Counter({
      name: 'istio_agent_lost_lines_total',
      help: 'Log lines and trace records lost because the output was full or blocked.',
      labelNames: ['of'],
      registers,
    }),
    identity: new client.Gauge({
      name: 'istio_agent_identity',
      help: 'Always 1. Source of the workload certificate (authority, files, or nowhere without one) and the setting that selected it.',
      labelNames: ['source', 'reason'],
      registers,
    }),
    ...createEnvoyExposition(client, registers),
    ...createXdsExposition(client, registers),
  };
}

function createEnvoyExposition(client: typeof import('prom-client'), registers: Registry[]): EnvoyExposition {
  return {
    restarts: new client.Counter({
      name: 'istio_agent_envoy_restarts_total',
      help: 'Envoy starts by reason, method and outcome.',
      labelNames: ['reason', 'how', 'outcome'],
      registers,
    }),
    binaries: new client.Counter({
      name: 'istio_agent_envoy_binaries_total',
      help: 'New Envoy binaries found at the binary path: offered for a hot restart, rejected, or withdrawn after a failed start.',
      labelNames: ['outcome'],
      registers,
    }),
    timeToLive: new client.Histogram({
      name: 'istio_agent_envoy_time_to_live_seconds',
      help: 'Seconds from the start of an Envoy process until it was live.',
      buckets: timeToLiveBuckets,
      registers,
    }),
    notServing: new client.Counter({
      name: 'istio_agent_envoy_not_serving_seconds_total',
      help: 'Seconds since the first Envoy was live in which none served or the serving one did not respond to probes.',
      registers,
    }),
    serving: new client.Gauge({
      name: 'istio_agent_envoy_serving',
      help: '1 if an Envoy is serving and responds to probes, else 0. The label is the serving epoch, or the last one.',
      labelNames: ['epoch'],
      registers,
    }),
  };
}

function createXdsExposition({ Counter }: typeof import('prom-client'), registers: Registry[]): XdsExposition {
  return {
    xdsRequests: new Counter({
      name: 'istio_agent_xds_proxy_requests',
      help: 'xDS requests forwarded from Envoy to the control plane.',
      registers,
    }),
    xdsResponses: new Counter({
      name: 'istio_agent_xds_proxy_responses',
      help: 'xDS responses forwarded from the control plane to Envoy.',
      registers,
    }),
    xdsDropped: new Counter({
      name: 'istio_agent_xds_proxy_dropped_responses_total',
      help: 'xDS responses dropped because no stream is subscribed to their type.',
      registers,
    }),
    connectionFailures: new Counter({
      name: 'istio_agent_istiod_connection_failures',
      help: 'Failed connections to the control plane.',
      registers,
    }),
    upstreamEnds: new Counter({
      name: 'istio_agent_istiod_connection_terminations',
      help: 'xDS streams to the control plane that ended.',
      labelNames: ['type'],
      registers,
    }),
    downstreamEnds: new Counter({
      name: 'istio_agent_envoy_connection_terminations',
      help: 'xDS streams from Envoy that ended.',
      labelNames: ['type'],
      registers,
    }),
  };
}
