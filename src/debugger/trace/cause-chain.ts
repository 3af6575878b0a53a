/** Finds the causes of a record in a trace; `docs/trace-format.md` specifies which records have a cause. */
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { RecordList } from './record-list.ts';

/** `how` is the relation to the previous link, or for the first link to the requested record. */
export interface CauseLink {
  readonly index: number;
  readonly record: TraceRecord;
  readonly how: CauseKind;
}

export type CauseKind =
  /** A chart reacted to this event, timer or spawn. */
  | 'cause'
  | 'timer-started'
  /** An effect acted asynchronously; this is the last event that it had received. */
  | 'received'
  /** An effect acted asynchronously and had received no event since this spawn. */
  | 'spawned'
  /** An effect acted asynchronously; this transition of its owner is later than its spawn and its last received event. */
  | 'owner-state'
  /** An effect acted asynchronously; this is a later event that its owner received from another actor. */
  | 'owner-received'
  /** An actor ended; this is the transition to its final state, or the transition in which its parent stopped it. */
  | 'ended-by';

/**
 * The end of a chain. `outside`: an event from outside the actor system. `start`: a root actor. `lost`: the next record
 * is not in the trace. `long`: the limit of links was reached.
 */
export type CauseOrigin = 'outside' | 'start' | 'lost' | 'long';

export interface CauseChain {
  /** Nearest first. */
  readonly links: readonly CauseLink[];
  readonly origin: CauseOrigin;
}

/** An agent that retried for a day has as many links, with 20 links per attempt. */
const maxLinks = 5_000;

/** @param isLast ends the chain with the first link for which it returns true */
export function causeChain(recordList: RecordList, index: number, isLast?: (link: CauseLink) => boolean): CauseChain {
  const links: CauseLink[] = [];
  let currentIndex = index;
  while (links.length < maxLinks) {
    const nextLink = causeOf(recordList, currentIndex);
    if (typeof nextLink === 'string') return { links, origin: nextLink };
    links.push(nextLink);
    if (isLast?.(nextLink) === true) return { links, origin: 'lost' };
    currentIndex = nextLink.index;
  }
  return { links, origin: 'long' };
}

/** For an effect, the spawn shows the owner. */
export function spawnOf(recordList: RecordList, actor: string, index: number): CauseLink | undefined {
  const spawnIndex = recordList.lastIndexAbout(actor, ['spawn'], index + 1);
  return spawnIndex === undefined
    ? undefined
    : { index: spawnIndex, record: recordList.recordAt(spawnIndex)!, how: 'spawned' };
}

function causeOf(recordList: RecordList, index: number): CauseLink | CauseOrigin {
  const record = recordList.recordAt(index);
  if (record === undefined) return 'lost';
  if ('cause' in record && record.cause !== undefined) {
    // In a trace of a faulty program a cause may be later than its record, and the chain must still end.
    return linkAt(recordList, record.cause < record.seq ? recordList.indexOf(record.cause) : undefined, 'cause');
  }
  switch (record.kind) {
    case 'timer':
      return linkAt(recordList, startOfTimer(recordList, record, index), 'timer-started');
    case 'event':
      return record.from === 'outside' ? 'outside' : causeOfEffectAction(recordList, record.from, index);
    case 'spawn':
      return record.parent === undefined ? 'start' : 'lost';
    case 'stop':
      return causeOfEnd(recordList, record, index);
    case 'log':
      return causeOfEffectAction(recordList, record.actor, index);
    default:
      return 'lost';
  }
}

function startOfTimer(
  recordList: RecordList,
  { actor, timer }: TraceRecord & { kind: 'timer' },
  index: number,
): number | undefined {
  return findLast(recordList, actor, 'timer-started', index, (record) => record.timer === timer);
}

/**
 * No record names the cause of an effect's action. The most likely one is the latest of the last event that the effect received, its spawn, the
 * transition in which its owner entered the current state, and events that its owner received from other actors.
 */
function causeOfEffectAction(recordList: RecordList, effect: string, index: number): CauseLink | CauseOrigin {
  const owner = ownerOf(effect);
  const reachedIndex = recordList.lastIndexAbout(effect, reachingKinds, index);
  const isEntered = ({ from }: TraceRecord & { kind: 'transition' }): boolean => from !== '';
  const searchStart = (reachedIndex ?? -1) + 1;
  const isFromOtherActor = ({ from }: TraceRecord & { kind: 'event' }): boolean => !from.startsWith(`${owner}/`);
  const orderIndex =
    owner === undefined ? undefined : findLast(recordList, owner, 'event', index, isFromOtherActor, searchStart);
  const entryIndex =
    owner === undefined ? undefined : findLast(recordList, owner, 'transition', index, isEntered, searchStart);
  if (orderIndex !== undefined && orderIndex > (entryIndex ?? -1))
    return linkAt(recordList, orderIndex, 'owner-received');
  if (entryIndex === undefined) return linkAt(recordList, reachedIndex, 'received');
  // An event that the owner sent to the effect during that transition is more specific than the state.
  if (
    reachedIndex !== undefined &&
    causeSeqOf(recordList.recordAt(reachedIndex)!) === causeSeqOf(recordList.recordAt(entryIndex)!)
  ) {
    return linkAt(recordList, reachedIndex, 'received');
  }
  return linkAt(recordList, entryIndex, 'owner-state');
}

/** Kinds of records in which an effect receives an event or is spawned. */
const reachingKinds = ['event', 'spawn'] as const;

function causeSeqOf(record: TraceRecord): number | undefined {
  return 'cause' in record ? record.cause : undefined;
}

/** The name of an effect is `OWNER/NAME`; `undefined` for other actors. */
function ownerOf(effect: string): string | undefined {
  const end = effect.lastIndexOf('/');
  return end < 0 ? undefined : effect.slice(0, end);
}

function causeOfEnd(
  recordList: RecordList,
  { actor, status }: TraceRecord & { kind: 'stop' },
  index: number,
): CauseLink | CauseOrigin {
  const spawn = spawnOf(recordList, actor, index)?.record as (TraceRecord & { kind: 'spawn' }) | undefined;
  const endingActor = status === 'stopped' ? spawn?.parent : actor;
  if (status !== 'stopped' && spawn !== undefined && spawn.machine === undefined)
    return causeOfEffectAction(recordList, actor, index);
  const step =
    endingActor === undefined ? undefined : recordList.lastIndexAbout(endingActor, ['transition', 'step'], index);
  return linkAt(recordList, step, 'ended-by');
}

/** @param causeKind `received` becomes `spawned` if the record is a spawn */
function linkAt(recordList: RecordList, index: number | undefined, causeKind: CauseKind): CauseLink | CauseOrigin {
  if (index === undefined) return 'lost';
  const record = recordList.recordAt(index)!;
  return { index, record, how: causeKind === 'received' && record.kind === 'spawn' ? 'spawned' : causeKind };
}

function findLast<Kind extends TraceRecord['kind']>(
  recordList: RecordList,
  actor: string,
  kind: Kind,
  endIndex: number,
  isMatch: (record: TraceRecord & { kind: Kind }) => boolean,
  from = 0,
): number | undefined {
  let recordIndex = recordList.lastIndexAbout(actor, [kind], endIndex, from);
  while (recordIndex !== undefined && !isMatch(recordList.recordAt(recordIndex) as TraceRecord & { kind: Kind })) {
    recordIndex = recordList.lastIndexAbout(actor, [kind], recordIndex, from);
  }
  return recordIndex;
}
