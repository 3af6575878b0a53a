/** Limits the Ingress paths of a namespace. Paths of the youngest Ingresses respond with 503, so that their requests do not match a wider path. */
import type { Config } from '../../../model/config/config.ts';
import { itemsBeyondLimit, type LimitShare } from '../../../model/config/oldest-first.ts';
import type { Ingress } from '../../../model/kinds/kubernetes/ingress.ts';
import type { Steps } from '../../../runtime/turns.ts';
import {
  type BudgetSettings,
  type LimitExcess,
  type LimitedObject,
  type LimitedObjects,
  type NamespaceBudget,
  recomputeLimited,
} from './limited-objects.ts';

export class IngressBudget implements NamespaceBudget {
  readonly #maxPaths: number;
  readonly #namespaces = new Map<string, Map<string, LimitShare>>();

  /** @param maxPaths PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE; the same number of further paths can respond with 503 */
  constructor(maxPaths: number) {
    this.#maxPaths = maxPaths;
  }

  *limitInSteps(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    { rootNamespace }: BudgetSettings,
    previous: ReadonlyMap<string, LimitedObject>,
  ): Steps<LimitedObjects> {
    const touchedKeys = new Set<string>();
    for (const key of keys) {
      yield;
      const [kind, name = ''] = key.split('/', 2);
      if (kind !== 'Ingress') continue;
      touchedKeys.add(name);
      const shares = this.#namespaces.get(name) ?? new Map<string, LimitShare>();
      const config = objectOf(key);
      if (config === undefined) shares.delete(key);
      else shares.set(key, { config, cost: sizeOf(config as Config<Ingress>) });
      if (shares.size > 0) this.#namespaces.set(name, shares);
      else this.#namespaces.delete(name);
    }
    return yield* recomputeLimited(touchedKeys, previous, (name) =>
      name === rootNamespace ? [] : this.#excessOf(name),
    );
  }

  *#excessOf(name: string): Generator<LimitExcess> {
    const shares = [...(this.#namespaces.get(name)?.values() ?? [])];
    const excessShares = itemsBeyondLimit(shares, this.#maxPaths);
    const removedShares = new Set(itemsBeyondLimit(excessShares, this.#maxPaths));
    const totalCost = shares.reduce((sum, { cost }) => sum + cost, 0);
    for (const share of excessShares)
      yield this.#buildLimitExcess(share.config as Config<Ingress>, removedShares.has(share), totalCost);
  }

  #buildLimitExcess(originalConfig: Config<Ingress>, isRemoved: boolean, totalCost: number): LimitExcess {
    const { namespace, spec } = originalConfig;
    return {
      original: originalConfig,
      variant: isRemoved ? 'removed' : 'closed',
      limit: () => ({
        config: isRemoved ? { spec: { ...spec, spec: { ...spec.spec, rules: [], tls: [] } } } : { isClosed: true },
        field: 'spec.rules',
        message:
          `${isRemoved ? 'it is ignored' : 'its paths respond with 503'}: Ingresses of namespace ${namespace} have ${totalCost} paths and hosts ` +
          `of TLS, the limit is ${this.#maxPaths} (LIMIT_EXCEEDED): reduce them, or raise PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE`,
      }),
    };
  }
}

function sizeOf({ spec: { spec } }: Config<Ingress>): number {
  const paths = spec.rules.reduce((sum, { http }) => sum + (http?.paths.length ?? 0), 0);
  return paths + spec.tls.reduce((sum, { hosts }) => sum + Math.max(hosts.length, 1), 0);
}
