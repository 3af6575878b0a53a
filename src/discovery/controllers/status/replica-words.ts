/**
 * What replicas say that Envoy rejects: a condition `Rejected` is the word of the replica whose name its message ends with. Followed from the
 * status of the objects, as informers see it: tells of objects of which another replica says something else than before.
 */
import { isObject } from '../../../runtime/json-object.ts';
import { scalarNumber } from '../../../runtime/scalar-text.ts';
import {
  pendingReason,
  reconciledCondition,
  rejectedCondition,
  unreportedReason,
} from '../../distribution/object-findings.ts';
import { presenceLeaseOf } from '../../election/replica-presence.ts';
import type { ObjectChange } from '../../kubernetes/store/object-store.ts';

export interface ReplicaWord {
  /** Identity of the replica. */
  readonly identity: string;
  readonly generation: number;
  readonly message: string;
}

/** `told`: of versions before 2026-12. A name of a pod and a part by chance. Envoy's own text cannot have it at its end: ours is behind it. */
const signature = /^(.*) \((?:reported|told) by ([A-Za-z0-9][A-Za-z0-9._-]{0,300})\)$/s;

/** A message that says whose word it is. */
export function signed(message: string, identity: string): string {
  return `${message} (reported by ${identity})`;
}

/** The word in conditions as they were read; undefined: nobody says anything, or nobody of ours, or one that did not say who it is. */
export function wordIn(conditions: unknown): ReplicaWord | undefined {
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
  const condition = list.find((one) => isObject(one) && one.type === rejectedCondition);
  if (!isObject(condition) || typeof condition.message !== 'string') return undefined;
  const identity = signature.exec(condition.message)?.[2];
  const generation = scalarNumber(condition.observedGeneration);
  if (identity === undefined || presenceLeaseOf(identity) === undefined || !Number.isFinite(generation))
    return undefined;
  return { identity, generation, message: condition.message };
}

/** Objects of which it is known. */
const mostKnown = 4_096;

export class ReplicaWords {
  readonly #words = new Map<string, ReplicaWord>();
  /** Words of replicas that are no more. A word that is said anew is of one that lives, whatever was seen of its Lease. */
  readonly #ended = new WeakSet<ReplicaWord>();
  /** Identity of this replica. */
  readonly identity: string;
  #changed: (key: string, before: ReplicaWord | undefined) => void = () => {};
  #countNeeded: (key: string) => void = () => {};

  constructor(identity: string) {
    this.identity = identity;
  }

  /** @param changed the word on an object is of another replica or generation than before, is no more, or its replica is */
  onChanged(changed: (key: string, before: ReplicaWord | undefined) => void): void {
    this.#changed = changed;
  }

  /** @param needed by its status, an object does not have the current counts of all replicas, or not all proxies have it */
  onCountNeeded(needed: (key: string) => void): void {
    this.#countNeeded = needed;
  }

  /** What became of objects of a kind. */
  read(kind: string, changes: readonly ObjectChange[]): void {
    for (const change of changes) {
      const status = change.event === 'delete' ? undefined : change.object.status;
      const key = `${kind}/${change.key}`;
      this.#note(key, isObject(status) ? wordIn(status.conditions) : undefined);
      if (isObject(status) && isCountNeeded(status.conditions)) this.#countNeeded(key);
    }
  }

  /** The word in an object as it is known, which may be older than the server's. */
  wordOn(key: string): ReplicaWord | undefined {
    return this.#words.get(key);
  }

  isOwn({ identity }: ReplicaWord): boolean {
    return identity === this.identity;
  }

  /** Whether the replica of a word is no more, and has not said it anew. */
  isEnded(key: string, word: ReplicaWord): boolean {
    const known = this.#words.get(key);
    return known !== undefined && isSame(known, word) && known.message === word.message && this.#ended.has(known);
  }

  /** Leases of the presence of other replicas whose word stands. */
  get leases(): ReadonlySet<string> {
    const others = [...this.#words.values()].filter((word) => !this.isOwn(word) && !this.#ended.has(word));
    return new Set(others.map(({ identity }) => presenceLeaseOf(identity)!));
  }

  /** The replica of a Lease is no more. */
  ended(lease: string): void {
    for (const [key, word] of this.#words) {
      if (this.isOwn(word) || this.#ended.has(word) || presenceLeaseOf(word.identity) !== lease) continue;
      this.#ended.add(word);
      this.#changed(key, word);
    }
  }

  #note(key: string, word: ReplicaWord | undefined): void {
    const before = this.#words.get(key);
    if (before === undefined ? word === undefined : word !== undefined && isSame(before, word)) {
      // Another number of proxies is nothing for others to act on; that it is said is.
      if (word !== undefined && before?.message !== word.message) this.#words.set(key, word);
      return;
    }
    if (word === undefined) this.#words.delete(key);
    else if (before !== undefined || this.#words.size < mostKnown) this.#words.set(key, word);
    this.#changed(key, before);
  }
}

const reasonsToCount: readonly unknown[] = [pendingReason, unreportedReason];

function isCountNeeded(conditions: unknown): boolean {
  if (!Array.isArray(conditions)) return false;
  return conditions.some(
    (one: unknown) => isObject(one) && one.type === reconciledCondition && reasonsToCount.includes(one.reason),
  );
}

function isSame(one: ReplicaWord, other: ReplicaWord): boolean {
  return one.identity === other.identity && one.generation === other.generation;
}
