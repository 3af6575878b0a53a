/** What the duty that writes status is to write of an object of Istio's kinds: the conditions that are ours, and nothing else of its status. */
import { configKeyText, parseConfigKey } from '../../../model/config/config.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import type { ObjectDistribution } from '../../distribution/distribution.ts';
import { conditionsOf, ownConditions } from '../../distribution/object-verdict.ts';
import { resourceOf } from '../../kubernetes/api-resource.ts';
import type { ApiServer } from '../../kubernetes/api-server.ts';
import type { InformerEffects } from '../../kubernetes/informer-effects.ts';
import { withConditions } from './status-conditions.ts';
import { StatusDuty, type StatusFields, type StatusRef, type StatusSource, type WantedStatus } from './status-duty.ts';

/** As Istio calls the one of those who write the same; of all revisions one, for their proxies may have the same objects. */
const statusLease = 'istio-status-leader';

type Known = Pick<ObjectDistribution, 'verdictOf' | 'unfinished' | 'lookAtAll'>;

export class DistributionStatus implements StatusSource {
  readonly #distribution: Known;

  constructor(distribution: Known) {
    this.#distribution = distribution;
  }

  wanted(of: StatusRef): WantedStatus | undefined {
    const verdict = this.#distribution.verdictOf(configKeyText(of));
    const conditions = conditionsOf(verdict);
    const generation = verdict.mistake?.generation ?? verdict.distribution?.generation;
    if (generation === undefined) return undefined;
    const types = conditions.map(({ type }) => type);
    const gone = ownConditions.filter((type) => !types.includes(type));
    return {
      generation,
      next: (present, time): StatusFields => {
        // Of an object that is refused, one may be of the version before, which is in force.
        const after = [...Map.groupBy(conditions, ({ observedGeneration }) => observedGeneration)].reduce<unknown>(
          (before, [observed, own]) => withConditions(before, own, { generation: observed, time }),
          withConditions(present.conditions, [], { generation, time }, gone),
        );
        return { ...present, conditions: after };
      },
    };
  }

  /** What the leader before has told nobody knows: all of it is looked at. */
  all(): Iterable<StatusRef> {
    this.#distribution.lookAtAll();
    return [...this.#distribution.unfinished].map(parseConfigKey);
  }
}

export interface StatusDutySources {
  readonly distribution: ObjectDistribution;
  /** Of which the server says in which version it has a kind. */
  readonly informers: Pick<InformerEffects, 'served'>;
  readonly server: Pick<ApiServer, 'request'>;
  readonly warn: (message: string) => void;
}

/** Of one object, between what nobody waits for. */
const restMs = 10_000;

/** The duty that writes it. */
export function statusDutyOf({ distribution, informers, server, warn }: StatusDutySources): StatusDuty {
  const duty = new StatusDuty({
    ...{ lease: statusLease, source: new DistributionStatus(distribution), server, restMs, warn },
    resourceOf: (kind) => informers.served(resourceOf(kind as KindName)),
  });
  distribution.onDue((keys, urgent) => duty.due(keys.map(parseConfigKey), { urgent }));
  return duty;
}
