/** What operators read while the control plane runs: what was wrong in the configuration, what was pushed. */
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import type { LogLine } from '../../runtime/actors/log-records.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { scopeOfActor } from '../../runtime/output/log-scopes.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { TracedEvent, TraceRecord } from '../../runtime/trace/trace.ts';
import { RepeatedLines } from '../ads/stream/repeated-lines.ts';
import { describeProblems, whereabouts } from '../config/config-problem.ts';
import { usualOutageMs } from '../kubernetes/outage-log.ts';

type Tell = (event: TracedEvent, log: Logger) => void;

/** Lines of the log by type of event, told when the event comes to its receiver. */
const logLines: Readonly<Record<string, Tell>> = {
  'settings.loaded': ({ what, origin, version }, log) => log.info(`${nameOf(what)} from ${origin}`, { version }),
  'settings.changed': ({ what, version }, log) => log.info(`${nameOf(what)} changed`, { version }),
  'settings.rejected': ({ problems }, log) => tellProblems(problems as ConfigProblem[], log),
  'configs.rejected': ({ problems }, log) => tellProblems(problems as ConfigProblem[], log),
  'config.recovered': ({ places }, log) => log.info(`in order again: ${(places as string[]).join(', ')}`),
  'sources.awaited': ({ sources }, log) => {
    log.info(`what is in force stays until these have been read: ${namesOf(sources)}`);
  },
  'configs.synced': ({ objects, version }, log) => log.info(`${objects} configuration objects`, { version }),
  'key-set.fetched': ({ source, version }, log) => log.info(`keys of ${source}`, { version }),
  'key-set.failed': ({ source, version, reason }, log) => {
    const meanwhile = version === '' ? 'its tokens are refused' : 'the last keys stay in force';
    log.warn(`keys of ${source}: ${reason} (${meanwhile})`);
  },
  'trust-bundle.fetched': ({ endpoint, version }, log) => log.info(`roots of ${endpoint}`, { version }),
  'trust-bundle.failed': ({ endpoint, version, reason }, log) => {
    const meanwhile = version === '' ? 'nothing that they sign is believed' : 'the last roots stay in force';
    log.warn(`roots of ${endpoint}: ${reason} (${meanwhile})`);
  },
  'gateway-name.resolved': ({ hostname, addresses }, log) => {
    log.info(`gateways of the name ${hostname} are at ${namesOf(addresses)}`);
  },
  'registry.failed': ({ registry, reason }, log) => {
    log.warn(
      `registry ${registry} cannot be had, what it handed over stays in force until it is tried again: ${reason}`,
    );
  },
  'services.awaited': ({ registries }, log) => log.info(`waits for the first list of ${namesOf(registries)}`),
  'services.synced': ({ services, endpoints, missing }, log) => {
    log.info(`${services} services, ${endpoints} endpoints`);
    if ((missing as string[]).length > 0) {
      log.warn(`served without what ${namesOf(missing)} has: its first list did not come in time`);
    }
  },
  'services.failed': ({ reason }, log) => {
    log.error(`services could not be made, the last ones stay in force until it is tried again: ${reason}`);
  },
  'context.failed': ({ reason }, log) => {
    log.error(`no push context, the last one stays in force until it is tried again: ${reason}`);
  },
  'leader.elected': ({ lease }, log) => log.info(`this replica leads, by the Lease ${lease}`),
  'leader.lost': ({ lease, reason }, log) =>
    log.warn(`this replica leads no more (${lease}), and stands again: ${reason}`),
  'http.listening': ({ addresses }, log) => log.info(`HTTP on ${(addresses as string[]).join(', ') || 'no address'}`),
  'ads.listening': ({ addresses }, log) => log.info(`xDS on ${(addresses as string[]).join(', ')}`),
  'clients.push': ({ version, forced, configs }, log) => {
    const what = forced ? 'everything' : summary(configs as string[]);
    log.info(`push ${version}: ${what}`);
  },
};

/**
 * Tells these events in the log.
 *
 * @returns how to stop it
 */
export function logEvents(recorder: Recorder, log: Logger): () => void {
  const failures = new RepeatedLines(log.scope('gateway-names'), () => performance.now());
  const refusals = new RepeatedLines(log.scope('cluster'), () => performance.now(), usualOutageMs);
  const elections = new RepeatedLines(log.scope('elections'), () => performance.now(), usualOutageMs);
  const forget = recorder.observe((record) => {
    if (record.kind !== 'event') return;
    if (record.event.type === 'gateway-name.failed') tellUnresolved(record.event, failures);
    if (record.event.type === 'kind.failed') tellRefused(record.event, refusals);
    if (record.event.type === 'registration.failed') tellUnregistered(record.event, refusals);
    if (record.event.type === 'leader.failed') tellLeaseless(record.event, elections);
    if (record.event.type === 'duty.written') tellUnwritten(record.event, elections);
    logLines[record.event.type]?.(record.event, log.scope(scopeOfActor(record.from)));
  });
  return () => {
    failures.end();
    refusals.end();
    elections.end();
    forget();
  };
}

/** A kind that may not be read is requested again and again; one whose definition is new is served some moments later. */
function tellRefused({ resource, reason }: TracedEvent, refusals: RepeatedLines): void {
  refusals.warn(String(resource), `${resource} not available, keeping last known objects, will retry`, { reason });
}

/** Workloads are many where an API server does not answer, and each is tried again and again. */
function tellUnregistered({ entry, reason }: TracedEvent, failures: RepeatedLines): void {
  failures.warn('registration', 'a WorkloadEntry could not be written, and it is tried again', { entry, reason });
}

/** Without a Lease nothing is written, and it is tried again every few seconds. */
function tellLeaseless({ lease, reason }: TracedEvent, elections: RepeatedLines): void {
  elections.warn(`lease ${lease}`, `Lease ${lease} not available, will retry`, { reason });
}

function tellUnwritten({ lease, failed, reason }: TracedEvent, elections: RepeatedLines): void {
  if (Number(failed) === 0 || reason === '') return;
  elections.warn(`writes of ${lease}`, `${failed} objects could not be written (${lease}; they are tried again)`, {
    reason,
  });
}

/** Names are many where DNS is down, and each is asked for again and again. */
function tellUnresolved({ hostname, addresses, reason }: TracedEvent, failures: RepeatedLines): void {
  const last = namesOf(addresses);
  const meanwhile = last === '' ? 'there is no way through its gateways' : `${last} stays in force`;
  failures.warn(String(hostname), `the name of gateways ${hostname} does not resolve (${meanwhile})`, { reason });
}

/** Failed requests to a cluster, which {@link tellRefused} tells people of: each is made again, and there are many kinds. */
const ofInformers = ['request.failed', 'kind.failed'];
/** And of a Lease or a write by {@link tellLeaseless} and {@link tellUnwritten}. */
const toldOnce = [...ofInformers, 'leader.failed', 'duty.written'];

const rejections = ['configs.rejected', 'settings.rejected'];

/** The line of a record that says what was found wrong: how much was refused, and how much is in force. */
export function rejectionLine(record: TraceRecord): LogLine | undefined {
  if (record.kind === 'event' && toldOnce.includes(record.event.type)) {
    return { level: 'debug', line: `${record.from}: ${record.event.type}`, fields: {} };
  }
  if (record.kind !== 'event' || !rejections.includes(record.event.type)) return undefined;
  const problems = (record.event.problems ?? []) as ConfigProblem[];
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const counts = [counted(errors, 'error'), counted(problems.length - errors, 'warning')].filter((text) => text !== '');
  const line = `${record.from}: ${errors > 0 ? 'configuration was refused' : 'configuration is taken, with warnings'}`;
  return { level: errors > 0 ? 'warn' : 'info', line, fields: { reason: counts.join(', ') } };
}

function counted(count: number, what: string): string {
  return count === 0 ? '' : `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** One line for each object, or for each file that cannot be parsed, with all that is wrong in it. */
function tellProblems(problems: readonly ConfigProblem[], log: Logger): void {
  const groups = Map.groupBy(problems, ({ severity, place, object }) => `${severity} ${whereabouts(place)} ${object}`);
  for (const group of groups.values()) {
    const { severity } = group[0]!;
    const closed = group.find((problem) => problem.closed !== undefined)?.closed;
    const earlier = 'an earlier version that was good, if there is one, stays in force';
    const meanwhile = closed === undefined ? earlier : `until it is mended ${closed}`;
    if (severity === 'error') log.error(`${describeProblems(group)} (${meanwhile})`);
    else log.warn(describeProblems(group));
  }
}

function namesOf(names: unknown): string {
  return (names as string[]).join(', ');
}

const longestList = 3;

function summary(configs: readonly string[]): string {
  const rest = configs.length - longestList;
  return configs.slice(0, longestList).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

function nameOf(what: unknown): string {
  return what === 'mesh' ? 'mesh configuration' : 'mesh networks';
}
