/** The input of each limit is the result of the previous one. */
import type { Config } from '../../../model/config/config.ts';
import type { Steps } from '../../../runtime/turns.ts';
import { DelegateBudget } from './delegate-budget.ts';
import { EndpointBudget } from './endpoint-budget.ts';
import { ExportBudget } from './export-budget.ts';
import { IngressBudget } from './ingress-budget.ts';
import type { BudgetSettings, LimitedObject, LimitedObjects, NamespaceBudget } from './limited-objects.ts';

type LimitedByKey = ReadonlyMap<string, LimitedObject>;

export interface NamespaceLimits {
  readonly maxExportedPerNamespace: number;
  readonly maxGatewayRoutesPerNamespace: number;
  /** See {@link EndpointBudget}. If absent, the registries apply this limit (`src/discovery/registry/service-objects.ts`). */
  readonly maxEndpointsPerNamespace?: number;
}

export class NamespaceBudgets implements NamespaceBudget {
  readonly #budgets: readonly NamespaceBudget[];
  readonly #partsOfResult = new WeakMap<LimitedByKey, readonly LimitedByKey[]>();
  /** Combined results, with the result of the last limit as key, so that equal results are reported once. */
  readonly #combinedLimits = new WeakMap<LimitedObject, LimitedObject>();

  constructor({ maxExportedPerNamespace, maxGatewayRoutesPerNamespace, maxEndpointsPerNamespace }: NamespaceLimits) {
    this.#budgets = [
      new DelegateBudget(),
      ...(maxEndpointsPerNamespace === undefined ? [] : [new EndpointBudget(maxEndpointsPerNamespace)]),
      new ExportBudget({ mesh: maxExportedPerNamespace, gateways: maxGatewayRoutesPerNamespace }),
      new IngressBudget(maxGatewayRoutesPerNamespace),
    ];
  }

  *limitInSteps(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    settings: BudgetSettings,
    previous: LimitedByKey,
  ): Steps<LimitedObjects> {
    const previousParts = this.#partsOfResult.get(previous);
    const touchedKeys = new Set(keys);
    const changedKeys = new Set<string>();
    const limitedObjects = new Map<string, LimitedObject>();
    const limitedParts: LimitedByKey[] = [];
    for (const [index, budget] of this.#budgets.entries()) {
      const limitedConfigOf = (key: string): Config | undefined => limitedObjects.get(key)?.config ?? objectOf(key);
      const budgetResult = yield* budget.limitInSteps(
        touchedKeys,
        limitedConfigOf,
        settings,
        previousParts?.[index] ?? previous,
      );
      for (const key of budgetResult.changedKeys) {
        touchedKeys.add(key);
        changedKeys.add(key);
      }
      for (const [key, limitedObject] of budgetResult.limitedByKey)
        limitedObjects.set(key, this.#combineLimits(limitedObjects.get(key), limitedObject));
      limitedParts.push(budgetResult.limitedByKey);
    }
    this.#partsOfResult.set(limitedObjects, limitedParts);
    return { limitedByKey: limitedObjects, changedKeys };
  }

  #combineLimits(reducedObject: LimitedObject | undefined, lastLimited: LimitedObject): LimitedObject {
    if (reducedObject === undefined) return lastLimited;
    const cachedLimit = this.#combinedLimits.get(lastLimited);
    if (cachedLimit?.original === reducedObject.original) return cachedLimit;
    const combinedObject = combinedLimit(reducedObject, lastLimited);
    this.#combinedLimits.set(lastLimited, combinedObject);
    return combinedObject;
  }
}

/** @param lastLimited result of the limit that applies after `reducedObject` */
export function combinedLimit(reducedObject: LimitedObject, lastLimited: LimitedObject): LimitedObject {
  const message = `${reducedObject.problem.message}; ${lastLimited.problem.message}`;
  return { ...lastLimited, original: reducedObject.original, problem: { ...reducedObject.problem, message } };
}
