import { text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { isRestartOrder } from '../findings/restart.ts';
import { causeChain } from '../trace/cause-chain.ts';
import type { RecordedRun } from '../trace/record-list.ts';
import type { AttributeValue, OtlpSpan } from './span.ts';

/** The end of a phase may be missing in the trace. */
interface Phase {
  readonly key: string;
  readonly name: string;
  readonly from: number;
  to?: number;
  error?: string;
  readonly attributes: Record<string, AttributeValue>;
}

interface Restart {
  readonly trace: string;
  readonly epoch: string;
  readonly startKind: string;
  readonly from: number;
  readonly attributes: Record<string, AttributeValue>;
  readonly phases: Phase[];
  error?: string;
  /** `seq` of the record that reported the epoch live. */
  liveAt?: number;
  /** The previous epoch, which drains. */
  parent?: string;
}

/** The spans of each start of an Envoy, from its cause to the end of the epoch that it replaced. */
export function restartSpans(run: RecordedRun): OtlpSpan[] {
  const restarts: Restart[] = [];
  /** An epoch number is reused after a failure. */
  const restartsByEpoch = new Map<string, Restart>();
  for (const [index, record] of run.records.entries()) {
    if (record.kind === 'event' && record.event.type === 'restart.decided') {
      const newRestart = beginRestart(run, record, index);
      restarts.push(newRestart);
      restartsByEpoch.set(newRestart.epoch, newRestart);
      continue;
    }
    followRestarts(record, restartsByEpoch, restarts);
  }
  const endTime = run.records.at(-1)?.t ?? 0;
  return restarts.flatMap((restart) => spansOf(restart, endTime));
}

function beginRestart(run: RecordedRun, record: TraceRecord & { kind: 'event' }, index: number): Restart {
  const { event, seq, t } = record;
  const root = causeChain(run, index, isRestartOrder).links.at(-1);
  const epoch = text(event.name);
  // The epoch was spawned, and its validation began, before this record.
  const phases: Phase[] = [];
  for (let recordIndex = index; recordIndex >= 0 && run.records[recordIndex]!.t >= t - 1_000; recordIndex--) {
    const previousRecord = run.records[recordIndex]!;
    if (previousRecord.kind === 'spawn' && previousRecord.actor === `${epoch}/prepare`) {
      phases.push(phase('validate', previousRecord.t));
      break;
    }
  }
  return {
    trace: `restart ${seq}`,
    epoch,
    startKind: text(event.how),
    from: root !== undefined && isRestartOrder(root) ? root.record.t : t,
    attributes: {
      'chartpilot.epoch.name': epoch,
      'chartpilot.restart.reason': text(event.reason),
      'chartpilot.restart.attempt': Number(event.attempt ?? 1),
      'chartpilot.trace.seq': seq,
    },
    phases,
  };
}

function followRestarts(
  record: TraceRecord,
  restartsByEpoch: ReadonlyMap<string, Restart>,
  restarts: readonly Restart[],
): void {
  const { t } = record;
  if (record.kind === 'spawn' || record.kind === 'stop') {
    const [epoch = '', child = ''] = record.actor.split('/');
    const restart = restartsByEpoch.get(epoch);
    if (record.kind === 'spawn' && child === 'prepare' && restart !== undefined && !hasPhase(restart, 'validate')) {
      restart.phases.push(phase('validate', t));
    }
    if (record.kind === 'spawn' && child === 'process') restart?.phases.push(phase('start', t));
    if (record.kind === 'stop' && child === 'prepare') closeSpan(restart, 'validate', t, record.error);
    return;
  }
  if (record.kind !== 'event') return;
  const { from, to, event } = record;
  const restart = restartsByEpoch.get(typeof event.name === 'string' ? event.name : to);
  switch (event.type) {
    case 'process.spawned': {
      const ownRestart = restartsByEpoch.get(to);
      closeSpan(ownRestart, 'start', t);
      ownRestart?.phases.push(phase('initialise', t, { 'process.pid': Number(event.pid) }));
      break;
    }
    case 'handover.began':
      restart?.phases.push(phase('hand-over', t));
      break;
    case 'serving.began':
      closeSpan(restart, 'hand-over', t);
      break;
    case 'epoch.live':
      closeSpan(restart, 'initialise', t);
      if (restart !== undefined) restart.liveAt = record.seq;
      break;
    case 'epoch.supersede': {
      const successorRestart = restarts.findLast(({ liveAt }) => liveAt !== undefined && liveAt === record.cause);
      if (successorRestart === undefined) break;
      successorRestart.parent = to;
      successorRestart.phases.push(phase('drain', t, { 'chartpilot.epoch.name': to }));
      break;
    }
    case 'epoch.failed':
    case 'epoch.exited': {
      if (to !== 'supervisor') break;
      const heir = restarts.findLast(
        ({ parent, phases }) =>
          parent === from && phases.some(({ name, to: end }) => name === 'drain' && end === undefined),
      );
      const reason = event.type === 'epoch.failed' ? text(event.reason) : undefined;
      closeSpan(heir, 'drain', t, reason);
      if (restart === undefined || restart.liveAt !== undefined || reason === undefined) break;
      restart.error = `${text(event.during)}: ${reason}`;
      for (const { name, to: end } of restart.phases) if (end === undefined) closeSpan(restart, name, t, restart.error);
      break;
    }
  }
}

function phase(name: string, from: number, attributes: Record<string, AttributeValue> = {}): Phase {
  return { key: name, name, from, attributes };
}

function hasPhase({ phases }: Restart, phaseName: string): boolean {
  return phases.some(({ name }) => name === phaseName);
}

function closeSpan(restart: Restart | undefined, name: string, t: number, error?: string): void {
  const openPhase = restart?.phases.findLast((candidate) => candidate.name === name && candidate.to === undefined);
  if (openPhase === undefined) return;
  openPhase.to = t;
  if (error !== undefined) openPhase.error = error;
}

function spansOf({ trace, startKind, from, attributes, phases, error }: Restart, endTime: number): OtlpSpan[] {
  const phaseEnds = phases.map(({ to }) => to ?? endTime);
  const root: OtlpSpan = {
    trace,
    key: '',
    name: startKind,
    from,
    to: Math.max(from, ...phaseEnds),
    attributes: { ...attributes, ...(phases.some(({ to }) => to === undefined) && unfinishedMark) },
    ...(error !== undefined && { error }),
  };
  return [
    root,
    ...phases.map(
      ({ to, error: reason, ...phaseFields }, i): OtlpSpan => ({
        ...phaseFields,
        trace,
        key: `${i} ${phaseFields.key}`,
        parent: '',
        to: Math.max(phaseFields.from, to ?? endTime),
        attributes: { ...phaseFields.attributes, ...(to === undefined && unfinishedMark) },
        ...(reason !== undefined && { error: reason }),
      }),
    ),
  ];
}

/** Marks a span whose end is not in the trace; OTLP requires an end. */
export const unfinishedMark = { 'chartpilot.unfinished': true };
