import type { AnyStateMachine } from 'xstate';
import { ChartpilotError } from '../../runtime/errors.ts';
import { machinesOf, statechartOf } from '../../runtime/trace/statechart.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { describeGap } from '../trace/record-gaps.ts';

const recordFullHint = 'record with --traceLevel full';

/** A trace with properties that depend on all of its records. */
export class TraceToReplay {
  readonly records: readonly TraceRecord[];
  /** Notes for the user on the limits of this replay. */
  readonly notes: string[] = [];
  readonly #machines: ReadonlyMap<string, AnyStateMachine>;
  readonly #earlyFlags: Uint8Array;
  readonly #parents = new Map<string, string | undefined>();
  /** Names of actors that cannot be replayed because their input was not recorded. */
  readonly #omittedKinds = new Set<string>();

  /** @throws ChartpilotError TRACE_INVALID if the trace has no beginning, or records are missing */
  constructor(header: TraceHeader, records: readonly TraceRecord[], machines: ReadonlyMap<string, AnyStateMachine>) {
    assertComplete(header, records);
    this.records = records;
    this.#machines = machines;
    this.#earlyFlags = findEarlyRecords(records);
    this.#omitActors(header.omits ?? []);
  }

  isOmitted(recordIndex: number): boolean {
    const record = this.records[recordIndex];
    if (record === undefined) return false;
    if (record.kind === 'log') return true;
    if (this.#omittedKinds.size === 0) return false;
    return record.kind === 'event' ? this.#omittedKinds.has(record.to) : this.#omittedKinds.has(record.actor);
  }

  /** Whether a record was written while a machine was processing. */
  isEarlyRecord(recordIndex: number): boolean {
    return this.#earlyFlags[recordIndex] === 1;
  }

  /** The trace may end while a machine was processing, because none of the records from this index on causes another. */
  mayBeTruncatedAt(recordIndex: number): boolean {
    const { seq } = this.records[recordIndex]!;
    return this.records.slice(recordIndex).every((record) => ((record as { cause?: number }).cause ?? 0) < seq);
  }

  markEarlyFrom(startIndex: number): void {
    this.#earlyFlags.fill(1, startIndex);
  }

  machineOf({ actor, machine: id }: TraceRecord & { kind: 'spawn' }): AnyStateMachine | undefined {
    if (id === undefined) return undefined;
    const machine = this.#machines.get(id);
    if (machine !== undefined) return machine;
    throw new ChartpilotError('FLAG_INVALID', `${actor} runs machine '${id}', which is unknown`, {
      hint: 'name the module that exports the machine: --machine MODULE#EXPORT',
    });
  }

  /** `undefined` if XState did not generate the ID. */
  numberedIdAt(recordIndex: number): string | undefined {
    const record = this.records[recordIndex];
    return record?.kind === 'spawn' ? /(?:^|\/)(x:\d+)$/.exec(record.actor)?.[1] : undefined;
  }

  failureAt(recordIndex: number, actor: string): Error | undefined {
    const record = this.records[recordIndex];
    if (record?.kind !== 'stop' || record.actor !== actor || record.status !== 'error') return undefined;
    return new Error(record.error);
  }

  /** @returns the root whose entire tree is stopped by the records from this index on */
  rootStoppedAt(recordIndex: number): string | undefined {
    const firstRecord = this.records[recordIndex];
    if (firstRecord?.kind !== 'stop') return undefined;
    const root = this.#rootOf(firstRecord.actor);
    for (let i = recordIndex; i < this.records.length; i++) {
      const record = this.records[i]!;
      if (record.kind === 'log') continue;
      if (record.kind !== 'stop' || record.status !== 'stopped' || this.#rootOf(record.actor) !== root)
        return undefined;
      if (record.actor === root) return root;
    }
    return undefined;
  }

  #rootOf(actor: string): string {
    let root = actor;
    for (let parent = this.#parents.get(root); parent !== undefined; parent = this.#parents.get(root)) root = parent;
    return root;
  }

  #omitActors(omittedNames: readonly string[]): void {
    const roots = new Set<string>();
    for (const record of this.records) {
      if (record.kind !== 'spawn') continue;
      this.#parents.set(record.actor, record.parent);
      const receivesOmitted =
        omittedNames.length > 0 && record.parent === undefined && this.#acceptsAnyOf(record.machine, omittedNames);
      if (receivesOmitted) roots.add(record.actor);
      if (receivesOmitted || (record.parent !== undefined && this.#omittedKinds.has(record.parent)))
        this.#omittedKinds.add(record.actor);
    }
    if (roots.size === 0) return;
    const [first = ''] = roots;
    const excludedRoots = roots.size === 1 ? first : `${first} and ${roots.size - 1} more`;
    this.notes.push(
      `${excludedRoots}: not replayed, because the trace omits ${omittedNames.join(', ')}; ${recordFullHint}`,
    );
  }

  #acceptsAnyOf(id: string | undefined, omittedNames: readonly string[]): boolean {
    const machine = id === undefined ? undefined : this.#machines.get(id);
    if (machine === undefined) return false;
    return machinesOf(machine).some((childMachine) =>
      statechartOf(childMachine).transitions.some(({ on }) => omittedNames.includes(on)),
    );
  }
}

function assertComplete(header: TraceHeader, records: readonly TraceRecord[]): void {
  const [first] = records;
  if (first !== undefined && first.seq !== 1) {
    const reason =
      header.actors === undefined ? 'earlier records are missing' : 'it was rotated, or copied from a running program';
    throw new ChartpilotError('TRACE_INVALID', `expected record 1 first, got record ${first.seq}: ${reason}`, {
      hint: 'a replay requires all records since the start: use the file of --trace together with FILE.1, before the second rotation',
    });
  }
  const restoredSpawn = records.find((record) => record.kind === 'spawn' && record.restored === true);
  if (restoredSpawn !== undefined) {
    const { actor } = restoredSpawn as TraceRecord & { kind: 'spawn' };
    throw new ChartpilotError(
      'TRACE_INVALID',
      `${actor} was created from a persisted snapshot, which a trace does not contain`,
      {
        hint: 'record and replay a run that starts without a snapshot',
      },
    );
  }
  const gapIndex = records.findIndex((record, i) => record.seq !== i + 1);
  if (gapIndex < 0) return;
  throw new ChartpilotError('TRACE_INVALID', describeGap(gapIndex, records[gapIndex]!.seq), {
    hint: 'a replay requires all records: use an unchanged trace of a program that reported no lost records',
  });
}

/**
 * All actions during the processing of an event have that event as their cause, so every record between the event and its last effect was written
 * during it.
 */
function findEarlyRecords(records: readonly TraceRecord[]): Uint8Array {
  const earlyFlags = new Uint8Array(records.length);
  let earliestCause = Number.POSITIVE_INFINITY;
  for (let i = records.length - 1; i >= 0; i--) {
    const record = records[i]!;
    const isBeforeEarly = earlyFlags[i + 1] === 1 && isFromOutside(records, i) && isFromOutside(records, i + 1);
    if (record.kind !== 'timer' && (earliestCause < record.seq || isBeforeEarly)) earlyFlags[i] = 1;
    const { cause = record.seq, during = cause } = record as { cause?: number; during?: number };
    earliestCause = Math.min(earliestCause, cause, during);
  }
  return earlyFlags;
}

/**
 * An action of a machine has a cause, an action from outside has none. The end of an effect has no cause either; the following record identifies it.
 */
function isFromOutside(records: readonly TraceRecord[], recordIndex: number): boolean {
  const [record, next] = [records[recordIndex]!, records[recordIndex + 1]];
  if (record.kind === 'stop') return next?.kind === 'event' && next.from === record.actor && next.cause === undefined;
  return record.kind === 'event' && record.cause === undefined;
}
