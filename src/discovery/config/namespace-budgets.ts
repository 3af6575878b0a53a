/** All limits that objects of one namespace share, as one: those of delegates and of selected endpoints, then those of what is exported. */
import type { Config } from '../../model/config/config.ts';
import { DelegateBudget } from './delegate-budget.ts';
import { ExportBudget, type ExportBudgetSettings, type LimitedObject, type LimitedObjects } from './export-budget.ts';

import { SelectionBudget } from './selection-budget.ts';

type Limited = ReadonlyMap<string, LimitedObject>;

interface Parts {
  readonly delegated: Limited;
  readonly selected: Limited;
  readonly exported: Limited;
}

export class NamespaceBudgets {
  readonly #delegates = new DelegateBudget();
  readonly #selections = new SelectionBudget();
  readonly #exports: ExportBudget;
  /** The results of both limits that a returned map combines. */
  readonly #parts = new WeakMap<Limited, Parts>();
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
    const parts = this.#parts.get(before) ?? { delegated: before, selected: before, exported: before };
    const touched = new Set(keys);
    const delegated = this.#delegates.limit(touched, objectOf, parts.delegated);
    const selected = this.#selections.limit(touched, objectOf, parts.selected);
    for (const key of [...delegated.changed, ...selected.changed]) touched.add(key);
    // The two limit objects of different kinds.
    const reduced = new Map([...delegated.limited, ...selected.limited]);
    const narrowed = (key: string): Config | undefined => reduced.get(key)?.config ?? objectOf(key);
    const exported = this.#exports.limit(touched, narrowed, settings, parts.exported);
    const limited = new Map(reduced);
    for (const [key, one] of exported.limited) limited.set(key, this.#combine(reduced.get(key), one));
    this.#parts.set(limited, { delegated: delegated.limited, selected: selected.limited, exported: exported.limited });
    return { limited, changed: new Set([...delegated.changed, ...selected.changed, ...exported.changed]) };
  }

  #combine(reduced: LimitedObject | undefined, exported: LimitedObject): LimitedObject {
    if (reduced === undefined) return exported;
    const known = this.#combined.get(exported);
    if (known?.original === reduced.original) return known;
    const message = `${reduced.problem.message}; ${exported.problem.message}`;
    const combined = { ...exported, original: reduced.original, problem: { ...reduced.problem, message } };
    this.#combined.set(exported, combined);
    return combined;
  }
}
