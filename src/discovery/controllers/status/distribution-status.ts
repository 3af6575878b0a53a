/**
 * What of the status of an object of Istio's kinds is to be written: the conditions that are ours, and nothing else of it. Who leads writes
 * all of them; each other replica says what its own proxies reject, under the Lease of its presence. The rule by which no two of them take away each
 * other's word is in machines/discovery/sequences/distribution.mmd.
 */

import { configKeyText, parseConfigKey } from '../../../model/config/config.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { ObjectDistribution } from '../../distribution/distribution.ts';
import {
  conditionsOf,
  decidedConditions,
  type ObjectCondition,
  type ObjectFindings,
  rejectedCondition,
  rejectedConditionOf,
} from '../../distribution/object-findings.ts';
import { reportAnnotation } from '../../distribution/replica-report.ts';
import { resourceOf } from '../../kubernetes/api-resource.ts';
import type { InformerEffects } from '../../kubernetes/api-server.effects.ts';
import type { ApiServer } from '../../kubernetes/api-server.ts';
import { type ReplicaWord, type ReplicaWords, signed, wordIn } from './replica-words.ts';
import { withConditions } from './status-conditions.ts';
import {
  type StatusFields,
  type StatusRef,
  type StatusSource,
  StatusWriter,
  type WantedStatus,
} from './status-writer.ts';

/** The Lease, as Istio calls the one for the same duty; all revisions share it, for their proxies may have the same objects. */
export const statusLease = 'istio-status-leader';

type Known = Pick<ObjectDistribution, 'findingsOf' | 'unfinished' | 'compareAllStatuses'>;

abstract class WordStatus implements StatusSource {
  protected readonly distribution: Known;
  protected readonly words: ReplicaWords;

  constructor(distribution: Known, words: ReplicaWords) {
    this.distribution = distribution;
    this.words = words;
  }

  abstract wanted(of: StatusRef): WantedStatus | undefined;

  all(): Iterable<StatusRef> {
    return [...this.distribution.unfinished].map(parseConfigKey);
  }

  /** Whose word it is counts: that of another replica that lives stands, as long as it is of the version that is in force, or a newer one. */
  protected stands(key: string, word: ReplicaWord | undefined, { distribution }: ObjectFindings): boolean {
    if (word === undefined || this.words.isOwn(word) || this.words.isEnded(key, word)) return false;
    return distribution === undefined || word.generation >= distribution.generation;
  }

  protected signed(condition: ObjectCondition): ObjectCondition {
    const { type, message } = condition;
    return type === rejectedCondition ? { ...condition, message: signed(message, this.words.identity) } : condition;
  }
}

/** What the replica that leads writes. */
export class DistributionStatus extends WordStatus {
  /** What the leader before has told nobody knows: all of it is looked at. */
  override all(): Iterable<StatusRef> {
    this.distribution.compareAllStatuses();
    return super.all();
  }

  wanted(of: StatusRef): WantedStatus | undefined {
    const key = configKeyText(of);
    const verdict = withoutOwnCounts(this.distribution.findingsOf(key));
    const generation = verdict.error?.generation ?? verdict.distribution?.generation ?? verdict.generation;
    const decided = decidedConditions(verdict);
    if (generation === undefined || decided.length === 0) return undefined;
    return {
      generation,
      next: (present, time): StatusFields => {
        const isElsewhere = this.stands(key, wordIn(present.conditions), verdict);
        const conditions = conditionsOf(verdict, isElsewhere).map((condition) => this.signed(condition));
        const types = [...conditions.map(({ type }) => type), ...(isElsewhere ? [rejectedCondition] : [])];
        const gone = decided.filter((type) => !types.includes(type));
        // Of an object that is refused, one may be of the version before, which is in force.
        const after = [...Map.groupBy(conditions, ({ observedGeneration }) => observedGeneration)].reduce<unknown>(
          (before, [observed, own]) => withConditions(before, own, { generation: observed, time }),
          withConditions(present.conditions, [], { generation, time }, gone),
        );
        return { ...present, conditions: after };
      },
    };
  }
}

/** Counts from before this replica led lack the proxies of other replicas: a new leader counts again before it reports them. */
function withoutOwnCounts({ distribution, ...verdict }: ObjectFindings): ObjectFindings {
  return distribution === undefined || distribution.isOwnOnly ? verdict : { ...verdict, distribution };
}

/** What a replica that does not lead writes: what its own proxies reject, and nothing else. */
export class RejectionStatus extends WordStatus {
  wanted(of: StatusRef): WantedStatus | undefined {
    const key = configKeyText(of);
    const verdict = this.distribution.findingsOf(key);
    const rejected = rejectedConditionOf(verdict.distribution);
    const generation = verdict.error?.generation ?? verdict.distribution?.generation;
    const known = this.words.wordOn(key);
    // The object is not read for nothing: when a word of ours is seen that was not yet, this is asked again.
    const mayWrite = rejected !== undefined || (known !== undefined && this.#isToGo(key, known));
    if (generation === undefined || !mayWrite) return undefined;
    return {
      generation,
      next: (present, time): StatusFields | undefined => {
        const word = wordIn(present.conditions);
        if (this.stands(key, word, verdict)) return undefined;
        const isToGo = rejected === undefined && word !== undefined && this.#isToGo(key, word);
        if (rejected === undefined && !isToGo) return undefined;
        const moment = { generation: rejected?.observedGeneration ?? generation, time };
        const own = rejected === undefined ? [] : [this.signed(rejected)];
        const conditions = withConditions(present.conditions, own, moment, isToGo ? [rejectedCondition] : []);
        return { ...present, conditions };
      },
    };
  }

  #isToGo(key: string, word: ReplicaWord): boolean {
    return this.words.isOwn(word) || this.words.isEnded(key, word);
  }
}

export interface StatusWriterSources {
  readonly distribution: ObjectDistribution;
  /** What replicas say that is rejected, of this one as of others. */
  readonly words: ReplicaWords;
  /** Informers: they know in which version the server has a kind. */
  readonly informers: Pick<InformerEffects, 'servedResource'>;
  readonly server: Pick<ApiServer, 'request'>;
  readonly log: Pick<Logger, 'warn'>;
  /** Lease of this replica's presence. */
  readonly presence: string;
  /** Whether this replica may write for a duty now. */
  readonly leads: (lease: string) => boolean;
}

/** Rest of one object between writes that nobody waits for. */
const restMs = 10_000;

/** The duties that write it: of the one that leads, and of this replica as long as it does not lead. */
export function statusDutiesOf(sources: StatusWriterSources): readonly [leading: StatusWriter, own: StatusWriter] {
  const { distribution, words, informers, server, log, presence, leads } = sources;
  const resource = (kind: string) => informers.servedResource(resourceOf(kind as KindName));
  const written = { server, restMs, log, resourceOf: resource };
  const leading = new StatusWriter({
    ...written,
    lease: statusLease,
    source: new DistributionStatus(distribution, words),
  });
  const own = new StatusWriter({
    ...{ ...written, lease: presence, source: new RejectionStatus(distribution, words) },
    isHeld: () => leads(statusLease),
    leaseAnnotations: () => ({ [reportAnnotation]: distribution.report() }),
  });
  distribution.onDue((keys, urgent) => {
    const refs = keys.map(parseConfigKey);
    for (const duty of [leading, own]) duty.due(refs, { urgent });
  });
  words.onChanged((key, before) => {
    if (isToAct(words, key, before, distribution.findingsOf(key))) distribution.reconsider(key);
  });
  words.onCountNeeded((key) => {
    if (!leads(statusLease)) distribution.recount(key);
  });
  return [leading, own];
}

/** What we said ourselves, and mean, is nothing to act on. */
function isToAct(words: ReplicaWords, key: string, before: ReplicaWord | undefined, verdict: ObjectFindings): boolean {
  const word = words.wordOn(key);
  const isOfOther = [before, word].some((one) => one !== undefined && !words.isOwn(one));
  return isOfOther || (word !== undefined) !== (verdict.distribution?.rejection !== undefined);
}
