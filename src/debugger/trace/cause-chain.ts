/** Why something happened, as far as a trace tells: `docs/trace-format.md` says which records have a cause. Runs in a browser. */
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { RecordList } from './record-list.ts';

/** One step back. `how` says what the record is to the one that was reached before it (first: the one that was asked about). */
export interface CauseLink {
  /** Its place in the list. */
  readonly index: number;
  readonly record: TraceRecord;
  readonly how: CauseKind;
}

export type CauseKind =
  /** It was the answer of a chart to this event, timer or spawn. */
  | 'cause'
  /** It is the timer that this record started. */
  | 'timer-started'
  /** An effect did it in its own time; this is the last that the effect had been told. */
  | 'told'
  /** An effect did it in its own time, and was told nothing since it was spawned: by this. */
  | 'spawned'
  /** An effect did it in its own time; since it was spawned or told anything, its owner came into the state it was in: so. */
  | 'owner-state'
  /** An effect did it in its own time; this is the last that somebody else had told its owner, since any of the above. */
  | 'owner-told'
  /** An actor ended; this is the step in which it came to its end, or in which its parent stopped it. */
  | 'ended-by';

/**
 * Where a chain ends. `outside`: with an event that no actor sent. `start`: with a root actor. `lost`: its next record is
 * not in the trace. `long`: it has more links than anybody reads.
 */
export type CauseOrigin = 'outside' | 'start' | 'lost' | 'long';

export interface CauseChain {
  /** Nearest first: each is earlier than the one before it. */
  readonly links: readonly CauseLink[];
  readonly origin: CauseOrigin;
}

/** An agent that tried for a day, 20 links each try. */
const maxLinks = 5_000;

/**
 * The chain of causes of the record at a place. Costs one look at each earlier record at the most.
 *
 * @param isLast ends the chain with the first link for which it says so; it is as if nothing more were in the trace
 */
export function causeChain(list: RecordList, index: number, isLast?: (link: CauseLink) => boolean): CauseChain {
  const links: CauseLink[] = [];
  let at = index;
  while (links.length < maxLinks) {
    const next = causeOf(list, at);
    if (typeof next === 'string') return { links, origin: next };
    links.push(next);
    if (isLast?.(next) === true) return { links, origin: 'lost' };
    at = next.index;
  }
  return { links, origin: 'long' };
}

/** The spawn of the actor that lives under a name at a place: for an effect, who it works for. */
export function spawnOf(list: RecordList, actor: string, index: number): CauseLink | undefined {
  const found = list.lastAbout(actor, ['spawn'], index + 1);
  return found === undefined ? undefined : { index: found, record: list.recordAt(found)!, how: 'spawned' };
}

/** One step back. */
function causeOf(list: RecordList, index: number): CauseLink | CauseOrigin {
  const record = list.recordAt(index);
  if (record === undefined) return 'lost';
  if ('cause' in record && record.cause !== undefined) {
    // Written by a broken program, a cause may be later; the chain must end all the same.
    return at(list, record.cause < record.seq ? list.indexOf(record.cause) : undefined, 'cause');
  }
  switch (record.kind) {
    case 'timer':
      return at(list, startOfTimer(list, record, index), 'timer-started');
    case 'event':
      return record.from === 'outside' ? 'outside' : ownDoing(list, record.from, index);
    case 'spawn':
      return record.parent === undefined ? 'start' : 'lost';
    case 'stop':
      return endOf(list, record, index);
    case 'log':
      return ownDoing(list, record.actor, index);
    default:
      return 'lost';
  }
}

function startOfTimer(
  list: RecordList,
  { actor, timer }: TraceRecord & { kind: 'timer' },
  index: number,
): number | undefined {
  return lastSuch(list, actor, 'timer-started', index, (record) => record.timer === timer);
}

/**
 * What an effect does has no cause in the trace. The nearest to one is the last of these: what it was told, its spawn, and
 * the change that brought its owner into the state in which the owner waits for it, or what others told its owner. A process
 * that ends while its epoch drains ends because of what made the epoch drain, not of its start; a response is sent for the push
 * that its stream was told of, not for the acknowledgement before it.
 */
function ownDoing(list: RecordList, effect: string, index: number): CauseLink | CauseOrigin {
  const owner = ownerOf(effect);
  const reached = list.lastAbout(effect, reaching, index);
  const isEntered = ({ from }: TraceRecord & { kind: 'transition' }): boolean => from !== '';
  const since = (reached ?? -1) + 1;
  const isOfOthers = ({ from }: TraceRecord & { kind: 'event' }): boolean => !from.startsWith(`${owner}/`);
  const ordered = owner === undefined ? undefined : lastSuch(list, owner, 'event', index, isOfOthers, since);
  const entered = owner === undefined ? undefined : lastSuch(list, owner, 'transition', index, isEntered, since);
  if (ordered !== undefined && ordered > (entered ?? -1)) return at(list, ordered, 'owner-told');
  if (entered === undefined) return at(list, reached, 'told');
  // What the owner told it on its way into that state says more than the state.
  if (reached !== undefined && causeIn(list.recordAt(reached)!) === causeIn(list.recordAt(entered)!)) {
    return at(list, reached, 'told');
  }
  return at(list, entered, 'owner-state');
}

/** An effect is told something by these, or spawned. */
const reaching = ['event', 'spawn'] as const;

function causeIn(record: TraceRecord): number | undefined {
  return 'cause' in record ? record.cause : undefined;
}

/** An effect is named by its owner and its own name; undefined for what is no effect. */
function ownerOf(effect: string): string | undefined {
  const end = effect.lastIndexOf('/');
  return end < 0 ? undefined : effect.slice(0, end);
}

function endOf(
  list: RecordList,
  { actor, status }: TraceRecord & { kind: 'stop' },
  index: number,
): CauseLink | CauseOrigin {
  const spawn = spawnOf(list, actor, index)?.record as (TraceRecord & { kind: 'spawn' }) | undefined;
  const ender = status === 'stopped' ? spawn?.parent : actor;
  if (status !== 'stopped' && spawn !== undefined && spawn.machine === undefined) return ownDoing(list, actor, index);
  const step = ender === undefined ? undefined : list.lastAbout(ender, ['transition', 'step'], index);
  return at(list, step, 'ended-by');
}

/** @param how `told` stands for `spawned` where the record is a spawn */
function at(list: RecordList, index: number | undefined, how: CauseKind): CauseLink | CauseOrigin {
  if (index === undefined) return 'lost';
  const record = list.recordAt(index)!;
  return { index, record, how: how === 'told' && record.kind === 'spawn' ? 'spawned' : how };
}

/** The last record of a kind before a place that is about an actor and as it is wanted. */
function lastSuch<Kind extends TraceRecord['kind']>(
  list: RecordList,
  actor: string,
  kind: Kind,
  before: number,
  wanted: (record: TraceRecord & { kind: Kind }) => boolean,
  from = 0,
): number | undefined {
  let place = list.lastAbout(actor, [kind], before, from);
  while (place !== undefined && !wanted(list.recordAt(place) as TraceRecord & { kind: Kind })) {
    place = list.lastAbout(actor, [kind], place, from);
  }
  return place;
}
