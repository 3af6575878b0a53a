import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import { cachedFunction } from '../../runtime/cached-function.ts';
import type { LogEntry } from '../../runtime/log-events/log-events.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { scopeOfActor } from '../../runtime/output/log-scopes.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { TracedEvent, TraceRecord } from '../../runtime/trace/trace.ts';
import { codesOf, fieldTexts, fileOrSourceOf, placeText } from '../config/sources/config-problem.ts';
import { outageWarningDelayMs } from '../kubernetes/outage-log.ts';
import { RepeatedLines } from '../xds/stream/repeated-lines.ts';

/** Log entries by event type. An event is logged when it reaches its receiver. */
const entries: Readonly<Record<string, (event: TracedEvent) => readonly LogEntry[]>> = {
  'settings.loaded': ({ name, origin, version }) => [{ event: 'settings.loaded', settings: name, origin, version }],
  'settings.changed': ({ name, version }) => [{ event: 'settings.changed', settings: name, version }],
  'settings.rejected': ({ problems }) => problemEntries(problems as ConfigProblem[]),
  'configs.rejected': ({ problems }) => problemEntries(problems as ConfigProblem[]),
  'config.recovered': ({ places }) => [{ event: 'config.recovered', places: namesOf(places) }],
  'sources.pending': ({ sources }) => [{ event: 'sources.awaited', sources: namesOf(sources) }],
  'configs.synced': ({ objects, version }) => [{ event: 'configs.synced', objects, version }],
  'key-set.fetched': ({ source, version }) => [{ event: 'key-set.fetched', source, version }],
  'key-set.failed': ({ source, version, reason }) => [
    { event: version === '' ? 'key-set.failed.none' : 'key-set.failed', source, reason },
  ],
  'trust-bundle.fetched': ({ endpoint, version }) => [{ event: 'trust-bundle.fetched', endpoint, version }],
  'trust-bundle.failed': ({ endpoint, version, reason }) => [
    { event: version === '' ? 'trust-bundle.failed.none' : 'trust-bundle.failed', endpoint, reason },
  ],
  'gateway-name.resolved': ({ hostname, addresses }) => [
    { event: 'gateway-name.resolved', hostname, addresses: namesOf(addresses) },
  ],
  'registry.failed': ({ registry, reason }) => [{ event: 'registry.failed', registry, reason }],
  'catalog.synced': ({ datacenter, services, instances }) => [
    { event: 'catalog.synced', datacenter: datacenterOf(datacenter), services, instances },
  ],
  'strategy.chosen': ({ datacenter, strategy, transport, connections }) => [
    { event: 'strategy.chosen', datacenter: datacenterOf(datacenter), strategy, transport, connections },
  ],
  'catalog.held': ({ datacenter, reason }) => [{ event: 'catalog.held', datacenter: datacenterOf(datacenter), reason }],
  'catalog.released': ({ datacenter, cause }) => [
    { event: 'catalog.released', datacenter: datacenterOf(datacenter), cause },
  ],
  'catalog.recovered': ({ datacenter }) => [{ event: 'catalog.recovered', datacenter: datacenterOf(datacenter) }],
  'services.pending': ({ registries }) => [{ event: 'services.awaited', registries: namesOf(registries) }],
  'services.synced': ({ services, endpoints, missing }) => [
    { event: 'services.synced', services, endpoints },
    ...((missing as string[]).length > 0
      ? ([{ event: 'services.synced.missing', registries: namesOf(missing) }] as const)
      : []),
  ],
  'services.failed': ({ reason }) => [{ event: 'services.failed', reason }],
  'context.failed': ({ reason }) => [{ event: 'context.failed', reason }],
  'leader.elected': ({ lease }) => [{ event: 'leader.elected', lease }],
  'leader.lost': ({ lease, reason }) => [{ event: 'leader.lost', lease, reason }],
  'names.listening': ({ address }) => [{ event: 'names.listening', address }],
  'webhooks.listening': ({ address }) => [{ event: 'webhooks.listening', address }],
  'http.listening': ({ addresses }) => [{ event: 'http.listening', addresses: namesOf(addresses) }],
  'ads.listening': ({ port, addresses }) => [{ event: 'ads.listening', port, addresses: namesOf(addresses) }],
  'certificate.changed': ({ serialNumber, endsAt }) => [
    { event: 'certificate.changed', serialNumber, notAfter: new Date(Number(endsAt)).toISOString() },
  ],
  'authority.changed': ({ stage, signer, roots }) => [
    { event: 'authority.changed', stage, signer, roots: namesOf(roots) },
  ],
  'clients.push': ({ version, forced, configs }) => [
    { event: 'clients.push', version, configs: forced ? '*' : summary(configs as string[]) },
  ],
};

/** Receivers at which forwarded events are logged. */
const lastReceivers: Readonly<Record<string, string>> = {
  'registry.failed': 'discovery',
  'authority.changed': 'discovery',
};

/** These entries are logged at a limited rate. */
interface RepeatedFailure {
  readonly scope: string;
  readonly persistsMs?: number;
  readonly toEntry: (event: TracedEvent) => { readonly key: string; readonly entry: RepeatedEntry } | undefined;
}

type RepeatedEntry = LogEntry<
  | 'gateway-name.failed'
  | 'gateway-name.failed.none'
  | 'names.failed'
  | 'webhooks.failed'
  | 'catalog.failed'
  | 'kind.failed'
  | 'registration.failed'
  | 'leader.failed'
  | 'duty.written'
>;

const repeatedFailures: Readonly<Record<string, RepeatedFailure>> = {
  'gateway-name.failed': {
    scope: 'gateway-names',
    toEntry: ({ hostname, addresses, reason }) => {
      const knownAddresses = namesOf(addresses);
      const entry: RepeatedEntry =
        knownAddresses === ''
          ? { event: 'gateway-name.failed.none', hostname, reason }
          : { event: 'gateway-name.failed', hostname, addresses: knownAddresses, reason };
      return { key: String(hostname), entry };
    },
  },
  'names.failed': {
    scope: 'discovery',
    toEntry: ({ reason }) => ({ key: 'DNS server', entry: { event: 'names.failed', reason } }),
  },
  'webhooks.failed': {
    scope: 'discovery',
    toEntry: ({ reason }) => ({ key: 'webhooks', entry: { event: 'webhooks.failed', reason } }),
  },
  // Short failures are not logged, because the API server serves a new kind shortly after its definition.
  'kind.failed': {
    ...{ scope: 'cluster', persistsMs: outageWarningDelayMs },
    toEntry: ({ resource, reason }) => ({
      key: String(resource),
      entry: { event: 'kind.failed', resource, reason },
    }),
  },
  // Short failures are not logged, because a restarted server responds again within seconds.
  'catalog.failed': {
    ...{ scope: 'consul', persistsMs: outageWarningDelayMs },
    toEntry: ({ datacenter, reason }) => ({
      key: `datacenter ${datacenter}`,
      entry: { event: 'catalog.failed', datacenter: datacenterOf(datacenter), reason },
    }),
  },
  // All failures share a key, because an unreachable API server affects many workloads.
  'registration.failed': {
    ...{ scope: 'cluster', persistsMs: outageWarningDelayMs },
    toEntry: ({ entry, reason }) => ({ key: 'registration', entry: { event: 'registration.failed', entry, reason } }),
  },
  'leader.failed': {
    ...{ scope: 'elections', persistsMs: outageWarningDelayMs },
    toEntry: ({ lease, reason }) => ({ key: `lease ${lease}`, entry: { event: 'leader.failed', lease, reason } }),
  },
  'duty.written': {
    ...{ scope: 'elections', persistsMs: outageWarningDelayMs },
    toEntry: ({ lease, failed, reason }) =>
      Number(failed) === 0 || reason === ''
        ? undefined
        : { key: `writes of ${lease}`, entry: { event: 'duty.written', lease, objects: failed, reason } },
  },
};

export function logEvents(recorder: Recorder, log: Logger, now: () => number = () => performance.now()): () => void {
  const scopeOf = cachedFunction((actor) => log.scope(scopeOfActor(actor)), maxScopes);
  const scopes = new Map<string, RepeatedLines>();
  for (const { scope, persistsMs } of Object.values(repeatedFailures)) {
    if (!scopes.has(scope)) scopes.set(scope, new RepeatedLines(log.scope(scope), now, persistsMs));
  }
  const unsubscribe = recorder.observe((record) => {
    if (record.kind !== 'event') return;
    const { event, from, to } = record;
    const rateLimited = repeatedFailures[event.type];
    const limitedEntry = rateLimited?.toEntry(event);
    if (rateLimited !== undefined && limitedEntry !== undefined) {
      const { event: id, ...fields } = limitedEntry.entry;
      scopes.get(rateLimited.scope)!.warn(limitedEntry.key, id, fields);
    }
    const lastReceiver = lastReceivers[event.type];
    if (lastReceiver !== undefined && to !== lastReceiver) return;
    const eventEntries = entries[event.type]?.(event) ?? [];
    for (const entry of eventEntries) scopeOf(from).write(entry);
  });
  return () => {
    for (const scopeLines of scopes.values()) scopeLines.end();
    unsubscribe();
  };
}

const maxScopes = 200;

const rejections = ['configs.rejected', 'settings.rejected'] as const;

/** Summarizes rejected configuration. {@link logEvents} logs the problems object by object. */
export function discoveryLogEntry(record: TraceRecord): LogEntry | 'logged elsewhere' | undefined {
  if (record.kind !== 'event') return undefined;
  const { type } = record.event;
  if (type in repeatedFailures || type === 'request.failed') {
    return { event: 'event.received', actor: record.from, type, ...reasonOf(record.event) };
  }
  const rejection = rejections.find((rejectionType) => rejectionType === type);
  if (rejection === undefined) return type in entries ? 'logged elsewhere' : undefined;
  const problems = (record.event.problems ?? []) as ConfigProblem[];
  if (problemEntries(problems).length === 1) return 'logged elsewhere';
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  return { event: errors > 0 ? rejection : 'configs.warned', errors, warnings: problems.length - errors };
}

function reasonOf({ reason }: TracedEvent): object {
  return typeof reason === 'string' && reason !== '' ? { reason } : {};
}

/** One entry for each object or unparsable file, with all its errors. */
function problemEntries(problems: readonly ConfigProblem[]): LogEntry[] {
  const groups = Map.groupBy(
    problems,
    ({ severity, place, object }) => `${severity} ${fileOrSourceOf(place)} ${object}`,
  );
  return [...groups.values()].map((group) => {
    const [{ severity, place, object }] = group as [ConfigProblem, ...ConfigProblem[]];
    const effect = group.find((problem) => problem.closed !== undefined)?.closed;
    const facts = {
      ...(placeText(place) !== '' && { place: placeText(place) }),
      ...(object !== '' && { object }),
      ...(codesOf(group) !== '' && { code: codesOf(group) }),
      reason: fieldTexts(group),
    };
    if (severity === 'warning') return { event: 'object.warned', ...facts };
    return effect === undefined
      ? { event: 'object.rejected', ...facts }
      : { event: 'object.rejectedClosed', ...facts, effect };
  });
}

function datacenterOf(name: unknown): string {
  return String(name) || "the agent's";
}

function namesOf(names: unknown): string {
  return (names as string[]).join(', ');
}

const maxNamedConfigs = 3;

function summary(configs: readonly string[]): string {
  const omittedCount = configs.length - maxNamedConfigs;
  return configs.slice(0, maxNamedConfigs).join(', ') + (omittedCount > 0 ? ` and ${omittedCount} more` : '');
}
