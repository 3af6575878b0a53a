/**
 * Merges the traces of several programs and adds arrows between them. The records of each program keep their order. Clocks are aligned by the
 * messages in both directions.
 */
import type { Statechart } from '../../runtime/trace/statechart.ts';
import { type ActorSnapshot, type TraceHeader, type TraceRecord, traceVersion } from '../../runtime/trace/trace.ts';
import { type ClockOffset, clockOffset, type MessageCrossing } from './clock-offset.ts';
import { type LinkEnd, linkEnds } from './link-ends.ts';

export interface ProgramTrace {
  /** Prefix of the names of its actors. */
  readonly label: string;
  readonly header: TraceHeader;
  readonly records: readonly TraceRecord[];
}

export interface Placement {
  readonly label: string;
  /** Absent for the reference program, and for a program without messages to another one. */
  readonly against?: string;
  readonly offset: ClockOffset;
}

export interface MergedTrace {
  readonly header: TraceHeader;
  readonly records: readonly TraceRecord[];
  readonly placements: readonly Placement[];
  readonly arrows: number;
  /** Number of ends without a matching end, and of arrows that would point back in time. */
  readonly unplaced: number;
}

interface ProgramArrow {
  readonly from: { readonly program: number; readonly end: LinkEnd };
  readonly to: { readonly program: number; readonly end: LinkEnd };
}

/** Maximum trusted difference between the clocks of a mesh. */
const trustedMs = 2_000;

export function mergeTraces(programs: readonly ProgramTrace[]): MergedTrace {
  const linkEndLists = programs.map(({ header, records }) => linkEnds(header, records));
  const arrows = arrowsBetween(programs, linkEndLists);
  const placements = placePrograms(programs, arrows);
  const wall = (program: number, t: number): number => startOf(programs[program]!) + t + placements[program]!.offset.ms;
  const wallTimeOf = ({ program, end }: ProgramArrow['from']): number =>
    wall(program, programs[program]!.records[end.index]!.t);
  const usableArrows = arrows.filter(({ from, to }) => wallTimeOf(from) <= wallTimeOf(to));
  const linkEndCount = linkEndLists.reduce((sum, list) => sum + list.length, 0);
  const { header, records } = interleave(programs, usableArrows, wall, placements);
  return { header, records, placements, arrows: usableArrows.length, unplaced: linkEndCount - 2 * usableArrows.length };
}

/** Unique keys are matched exactly; other ends are matched with the nearest unmatched end of the other program. */
function arrowsBetween(
  programs: readonly ProgramTrace[],
  linkEndLists: readonly (readonly LinkEnd[])[],
): ProgramArrow[] {
  const arrowsByKey = new Map<string, { sends: ProgramArrow['from'][]; receives: ProgramArrow['to'][] }>();
  for (const [program, ownEnds] of linkEndLists.entries()) {
    for (const end of ownEnds) {
      const arrowEnds = arrowsByKey.get(end.key) ?? { sends: [], receives: [] };
      arrowsByKey.set(end.key, arrowEnds);
      arrowEnds[end.side].push({ program, end });
    }
  }
  const time = ({ program, end }: ProgramArrow['from']): number =>
    startOf(programs[program]!) + programs[program]!.records[end.index]!.t;
  return [...arrowsByKey.values()].flatMap(({ sends, receives }) => {
    const [from, to] = [sends, receives].map((list) => list.toSorted((a, b) => time(a) - time(b)));
    const isCertain = from!.length === to!.length;
    const arrows: ProgramArrow[] = [];
    let nextIndex = 0;
    for (const [i, send] of from!.entries()) {
      const latestTime = from![i + 1] === undefined ? Number.POSITIVE_INFINITY : time(from![i + 1]!) - trustedMs / 2;
      // Equal numbers of sends and receives are matched in order, independent of clocks. Otherwise clocks are compared.
      const receiveIndex = isCertain
        ? i
        : to!.findIndex(
            (end, j) =>
              j >= nextIndex && time(end) >= time(send) - trustedMs && time(end) <= Math.max(latestTime, time(send)),
          );
      const receive = to![receiveIndex];
      if (receive === undefined || receive.program === send.program) continue;
      nextIndex = receiveIndex + 1;
      arrows.push({ from: send, to: receive });
    }
    return arrows;
  });
}

/** The program with the most arrows is the reference; each other program is aligned with one that is already placed. */
function placePrograms(programs: readonly ProgramTrace[], arrows: readonly ProgramArrow[]): Placement[] {
  const arrowsOfPair = (a: number, b: number): ProgramArrow[] =>
    arrows.filter(
      ({ from, to }) => (from.program === a && to.program === b) || (from.program === b && to.program === a),
    );
  const arrowCounts = programs.map(
    (_, i) => arrows.filter(({ from, to }) => from.program === i || to.program === i).length,
  );
  const referenceIndex = arrowCounts.indexOf(Math.max(...arrowCounts));
  const placementByIndex = new Map<number, Placement>([
    [referenceIndex, { label: programs[referenceIndex]!.label, offset: { ms: 0, plusMinusMs: 0, consistentCount: 0 } }],
  ]);
  for (let hasGrown = true; hasGrown; ) {
    hasGrown = false;
    for (const [i, { label }] of programs.entries()) {
      if (placementByIndex.has(i)) continue;
      const placedIndex = [...placementByIndex.keys()].find(
        (placedProgram) => arrowsOfPair(i, placedProgram).length > 0,
      );
      if (placedIndex === undefined) continue;
      const shift = placementByIndex.get(placedIndex)!.offset.ms;
      const time = (end: ProgramArrow['from']): number =>
        startOf(programs[end.program]!) +
        programs[end.program]!.records[end.end.index]!.t +
        (end.program === placedIndex ? shift : 0);
      const crossings = arrowsOfPair(i, placedIndex).map(
        ({ from, to }): MessageCrossing => ({
          isOutgoing: from.program === i,
          sentAt: time(from),
          receivedAt: time(to),
        }),
      );
      placementByIndex.set(i, { label, against: programs[placedIndex]!.label, offset: clockOffset(crossings) });
      hasGrown = true;
    }
  }
  const wallClockOffset: ClockOffset = { ms: 0, plusMinusMs: Number.POSITIVE_INFINITY, consistentCount: 0 };
  return programs.map(({ label }, i) => placementByIndex.get(i) ?? { label, offset: wallClockOffset });
}

function interleave(
  programs: readonly ProgramTrace[],
  arrows: readonly ProgramArrow[],
  wallTimeOf: (program: number, t: number) => number,
  placements: readonly Placement[],
): Pick<MergedTrace, 'header' | 'records'> {
  const startTime = Math.min(...programs.map((_, i) => wallTimeOf(i, 0)));
  const machines = new Machines(programs);
  const incomingArrows = new Map<string, ProgramArrow[]>();
  for (const arrow of arrows) {
    const receiveKey = `${arrow.to.program} ${arrow.to.end.index}`;
    incomingArrows.set(receiveKey, [...(incomingArrows.get(receiveKey) ?? []), arrow]);
  }
  const seqByRecord = programs.map(() => new Map<number, number>());
  const records: TraceRecord[] = [];
  const push = (record: TraceRecord): void => void records.push({ ...record, seq: records.length + 1 });
  for (const [i, { label }] of programs.entries()) {
    push({
      kind: 'log',
      seq: 0,
      t: 0,
      actor: label,
      level: 'info',
      component: 'clock',
      text: describePlacement(placements[i]!),
    });
  }
  for (const { program, index, at } of recordsInOrder(programs, wallTimeOf, incomingArrows)) {
    const { label, records: ownEnds } = programs[program]!;
    for (const { from, to } of incomingArrows.get(`${program} ${index}`) ?? []) {
      const sender = programs[from.program]!;
      const cause = seqByRecord[from.program]!.get(sender.records[from.end.index]!.seq);
      push({
        kind: 'event',
        seq: 0,
        t: roundTime(at - startTime),
        from: `${sender.label}:${from.end.actor}`,
        to: `${label}:${to.end.actor}`,
        event: { type: from.end.text, key: from.end.key },
        ...(cause !== undefined && { cause }),
      });
    }
    const record = ownEnds[index]!;
    push(renameActors(record, label, at - startTime, seqByRecord[program]!, machines.nameOf(program)));
    seqByRecord[program]!.set(record.seq, records.length);
  }
  const actors = programs.flatMap(({ label, header }, program) =>
    (header.actors ?? []).map((actor) =>
      movedActor(actor, label, (t) => wallTimeOf(program, t) - startTime, machines.nameOf(program)),
    ),
  );
  return {
    header: {
      kind: 'header',
      version: traceVersion,
      program: programs.map(({ label }) => label).join(' + '),
      pid: 0,
      startedAt: new Date(startTime).toISOString(),
      programs: programs.map(({ label, header: { program, pid, foreign } }) => ({
        ...{ label, program, pid },
        ...(foreign === true && { foreign }),
      })),
      level: programs.every(({ header }) => header.level === 'full') ? 'full' : 'standard',
      machines: machines.allDefinitions,
      ...(actors.length > 0 && { actors }),
    },
    records,
  };
}

/** At equal times the sender precedes the receiver. */
function* recordsInOrder(
  programs: readonly ProgramTrace[],
  wallTimeOf: (program: number, t: number) => number,
  incomingArrows: ReadonlyMap<string, unknown>,
): Generator<{ program: number; index: number; at: number }> {
  const nextIndexes = programs.map(() => 0);
  for (;;) {
    let earliestRecord: { program: number; index: number; at: number; receives: boolean } | undefined;
    for (const [program, { records }] of programs.entries()) {
      const index = nextIndexes[program]!;
      const record = records[index];
      if (record === undefined) continue;
      const candidateRecord = {
        program,
        index,
        at: wallTimeOf(program, record.t),
        receives: incomingArrows.has(`${program} ${index}`),
      };
      if (
        earliestRecord === undefined ||
        candidateRecord.at < earliestRecord.at ||
        (candidateRecord.at === earliestRecord.at && earliestRecord.receives && !candidateRecord.receives)
      )
        earliestRecord = candidateRecord;
    }
    if (earliestRecord === undefined) return;
    nextIndexes[earliestRecord.program] = earliestRecord.index + 1;
    yield earliestRecord;
  }
}

function renameActors(
  record: TraceRecord,
  label: string,
  t: number,
  seqByRecord: ReadonlyMap<number, number>,
  machine: (id: string) => string,
): TraceRecord {
  const name = (actor: string): string => (actor === 'outside' ? actor : `${label}:${actor}`);
  const copy: Record<string, unknown> = { ...record, t: roundTime(t) };
  for (const field of ['cause', 'during']) {
    if (typeof copy[field] !== 'number') continue;
    const number = seqByRecord.get(copy[field]);
    if (number === undefined) delete copy[field];
    else copy[field] = number;
  }
  // In a transition, `from` and `to` are states.
  const actorFields = record.kind === 'event' ? ['from', 'to'] : ['actor', 'parent'];
  for (const field of actorFields) if (typeof copy[field] === 'string') copy[field] = name(copy[field]);
  if (record.kind === 'spawn' && record.machine !== undefined) copy.machine = machine(record.machine);
  return copy as unknown as TraceRecord;
}

function movedActor(
  actor: ActorSnapshot,
  label: string,
  move: (t: number) => number,
  machine: (id: string) => string,
): ActorSnapshot {
  const { parent, timers, spawnedAt } = actor;
  return {
    ...actor,
    actor: `${label}:${actor.actor}`,
    ...(parent !== undefined && { parent: `${label}:${parent}` }),
    ...(actor.machine !== undefined && { machine: machine(actor.machine) }),
    ...(timers !== undefined && { timers: timers.map((timer) => ({ ...timer, startedAt: move(timer.startedAt) })) }),
    spawned: 0,
    spawnedAt: move(spawnedAt),
  };
}

/** Two versions of a machine get two names. */
class Machines {
  readonly allDefinitions: Statechart[] = [];
  readonly #names: readonly ReadonlyMap<string, string>[];

  constructor(programs: readonly ProgramTrace[]) {
    const textById = new Map<string, string>();
    this.#names = programs.map(({ label, header }) => {
      const names = new Map<string, string>();
      for (const machine of header.machines) {
        const text = JSON.stringify(machine);
        const isDifferentDefinition = textById.has(machine.id) && textById.get(machine.id) !== text;
        const id = isDifferentDefinition ? `${label}:${machine.id}` : machine.id;
        names.set(machine.id, id);
        if (textById.get(id) === text) continue;
        textById.set(id, text);
        this.allDefinitions.push({ ...machine, id });
      }
      return names;
    });
  }

  nameOf(program: number): (id: string) => string {
    return (id) => this.#names[program]!.get(id) ?? id;
  }
}

/** Returns text such as `clock 12 ms behind that of pilot-discovery (± 340 ms, from 4 messages)`. */
export function describePlacement({ against, offset: { ms, plusMinusMs, consistentCount } }: Placement): string {
  if (against === undefined) {
    return plusMinusMs === 0 ? 'reference clock' : 'placed by its wall clock, for lack of messages';
  }
  const offsetText =
    Math.abs(ms) < 0.5 ? 'equal to' : `${Math.abs(Math.round(ms))} ms ${ms > 0 ? 'behind' : 'ahead of'}`;
  const uncertaintyText = Number.isFinite(plusMinusMs)
    ? `± ${Math.round(plusMinusMs)} ms`
    : 'messages in one direction only';
  return `clock ${offsetText} that of ${against} (${uncertaintyText}, from ${consistentCount} ${consistentCount === 1 ? 'message' : 'messages'})`;
}

/** A recorder has a resolution of 1 µs. */
function roundTime(t: number): number {
  return Math.round(t * 1_000) / 1_000;
}

function startOf({ header }: ProgramTrace): number {
  const start = Date.parse(header.startedAt);
  return Number.isNaN(start) ? 0 : start;
}
