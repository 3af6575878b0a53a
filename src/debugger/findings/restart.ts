import type { RestartReason } from '../../../machines/agent/protocol.ts';
import { actorText, durationText, fileName, text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { type CauseLink, causeChain } from '../trace/cause-chain.ts';
import type { Finding, FindingRule, RuleRun, Run } from './finding.ts';
import { Serving, servingEvents } from './serving.ts';
import { timeSpent } from './time-spent.ts';

export const restartRule: FindingRule = {
  name: 'restart',
  reads: { events: [...servingEvents, 'restart.decided', 'supervisor.stop', 'supervisor.stop-now'] },
  begin: () => new RestartRun(),
};

class RestartRun implements RuleRun {
  readonly #servingState = new Serving();
  #isStopping = false;
  /** Retries keep the reason of the first attempt. */
  #reason = '';

  onRecord(record: TraceRecord, index: number, run: Run): Finding[] | undefined {
    const previousEpoch = this.#servingState.name;
    const { lostAt, hasServed } = this.#servingState;
    this.#servingState.addRecord(record, index);
    if (record.kind !== 'event') return undefined;
    const { event } = record;
    if (event.type === 'restart.decided') this.#reason = text(event.reason);
    if (event.type === 'supervisor.stop' || event.type === 'supervisor.stop-now') this.#isStopping = true;
    if (event.type !== 'serving.began' || typeof event.name !== 'string' || this.#isStopping) return undefined;
    const isUnrequested = this.#reason !== '' && !requestedReasons.has(this.#reason);
    const { links } = causeChain(run, index, isUnrequested ? isEnvoyLoss : isRestartOrder);
    const root = links.at(-1);
    const gapMs = lostAt === undefined ? 0 : record.t - lostAt;
    const causeText = root === undefined ? 'cause not in the trace' : reasonOf(root, links, run);
    const name = actorText(event.name);
    const change =
      previousEpoch === undefined
        ? `serves after ${durationText(gapMs)} of downtime`
        : `replaced ${actorText(previousEpoch)} with ${gapMs === 0 ? 'no' : durationText(gapMs)} downtime`;
    const sentence = hasServed
      ? `${name} ${change}: ${causeText}`
      : `${name} is live ${durationText(record.t - (run.recordAt(0)?.t ?? 0))} after the start`;
    return [
      {
        rule: 'restart',
        weight: hasServed && gapMs > 0 ? 'bad' : hasServed ? 'note' : 'fine',
        sentence,
        index,
        range: [root?.index ?? index, index],
        ...(root !== undefined && { root: root.index }),
        spent: timeSpent(record, links),
      },
    ];
  }
}

/** These starts are requested by a user or a file change; all others follow the loss of an Envoy. */
const requestedReasons: ReadonlySet<string> = new Set([
  'first start',
  'configuration changed',
  'Envoy replaced',
  'Envoy put back',
  'ordered',
] satisfies RestartReason[]);

/** Matches the order for a restart. Causes of the order only show how the agent waited. */
export function isRestartOrder({ record }: CauseLink): boolean {
  if (record.kind !== 'event') return false;
  return record.event.type === 'files.changed' || record.event.type === 'signal.received' || record.from === 'outside';
}

/** Matches the exit of an Envoy that served or drained. */
function isEnvoyLoss({ record }: CauseLink): boolean {
  if (record.kind !== 'event' || record.event.type !== 'epoch.failed') return false;
  return record.event.during === 'serving' || record.event.during === 'draining';
}

function reasonOf({ record }: CauseLink, links: readonly CauseLink[], run: Run): string {
  if (record.kind !== 'event') return 'start of the agent';
  const { event } = record;
  switch (event.type) {
    case 'files.changed':
      return `${changedFileNames(record, links, run).join(', ')} changed`;
    case 'signal.received':
      return `${text(event.signal)} received`;
    case 'epoch.failed':
      return `${actorText(text(event.name))} failed (${text(event.reason)})`;
    default:
      return event.type;
  }
}

const maxChanges = 100;
const maxNamedFiles = 3;

function changedFileNames({ to }: TraceRecord & { kind: 'event' }, links: readonly CauseLink[], run: Run): string[] {
  const changedAt = links.find(
    ({ record }) => record.kind === 'event' && record.event.type === 'config.changed',
  )?.index;
  const names = new Set<string>();
  let endIndex = changedAt ?? links.at(-1)!.index + 1;
  for (let inspectedCount = 0; inspectedCount < maxChanges; inspectedCount++) {
    const eventIndex = run.lastIndexAbout(to, ['event'], endIndex);
    const record = eventIndex === undefined ? undefined : run.recordAt(eventIndex);
    if (eventIndex === undefined || record?.kind !== 'event' || precedesChain(record, links)) break;
    if (record.event.type === 'files.changed') {
      names.add(typeof record.event.path === 'string' ? changedName(record.event.path) : 'a watched file');
    }
    endIndex = eventIndex;
  }
  const changedNames = [...names].reverse();
  return changedNames.length <= maxNamedFiles
    ? changedNames
    : [...changedNames.slice(0, maxNamedFiles), `${changedNames.length - maxNamedFiles} more`];
}

/** Returns `tls.crt`, or `files in certs/` for a Kubernetes volume. */
function changedName(path: string): string {
  const name = fileName(path);
  return name.endsWith('/') ? `files in ${name}` : name;
}

/** Changes before the chain belong to another configuration. */
function precedesChain({ seq }: TraceRecord, links: readonly CauseLink[]): boolean {
  return seq < links.at(-1)!.record.seq;
}
