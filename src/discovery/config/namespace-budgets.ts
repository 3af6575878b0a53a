/** All limits that objects of one namespace share, as one: those of delegates, then those of what is exported. */
import type { Config } from '../../model/config/config.ts';
import { DelegateBudget } from './delegate-budget.ts';
import { ExportBudget, type ExportBudgetSettings, type LimitedObject, type LimitedObjects } from './export-budget.ts';

type Limited = ReadonlyMap<string, LimitedObject>;

export class NamespaceBudgets {
  readonly #delegates = new DelegateBudget();
  readonly #exports: ExportBudget;
  /** The results of both limits that a returned map combines. */
  readonly #parts = new WeakMap<Limited, { readonly delegated: Limited; readonly exported: Limited }>();
  /** Objects beyond both limits, by their result of the export limit: the same result is reported once. */
  readonly #combined = new WeakMap<LimitedObject, LimitedObject>();

  /** @param maxExported as for {@link ExportBudget} */
  constructor(maxExported: number) {
    this.#exports = new ExportBudget(maxExported);
  }

  /** As {@link ExportBudget.limit}. */
  limit(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    settings: ExportBudgetSettings,
    before: Limited,
  ): LimitedObjects {
    const parts = this.#parts.get(before) ?? { delegated: before, exported: before };
    const touched = new Set(keys);
    const delegated = this.#delegates.limit(touched, objectOf, parts.delegated);
    for (const key of delegated.changed) touched.add(key);
    const narrowed = (key: string): Config | undefined => delegated.limited.get(key)?.config ?? objectOf(key);
    const exported = this.#exports.limit(touched, narrowed, settings, parts.exported);
    const limited = new Map(delegated.limited);
    for (const [key, one] of exported.limited) limited.set(key, this.#combine(delegated.limited.get(key), one));
    this.#parts.set(limited, { delegated: delegated.limited, exported: exported.limited });
    return { limited, changed: new Set([...delegated.changed, ...exported.changed]) };
  }

  #combine(delegated: LimitedObject | undefined, exported: LimitedObject): LimitedObject {
    if (delegated === undefined) return exported;
    const known = this.#combined.get(exported);
    if (known?.original === delegated.original) return known;
    const message = `${delegated.problem.message}; ${exported.problem.message}`;
    const combined = { ...exported, original: delegated.original, problem: { ...delegated.problem, message } };
    this.#combined.set(exported, combined);
    return combined;
  }
}
