/** If a revision is older than this many steps, everything counts as changed. */
const maxSteps = 64;
/** The hosts of a larger step are not retained, because it affects nearly everything. */
const maxHosts = 256;

interface RevisionStep {
  readonly number: number;
  readonly hosts: readonly string[] | undefined;
}

/** Immutable revision of all rules. Two revisions with a common initial revision can be compared for changed hosts. */
export class RuleRevision {
  private readonly lineage: object;
  private readonly number: number;
  private readonly steps: readonly RevisionStep[];

  private constructor(lineage: object, number: number, steps: readonly RevisionStep[]) {
    this.lineage = lineage;
    this.number = number;
    this.steps = steps;
  }

  static initial(): RuleRevision {
    return new RuleRevision({}, 0, []);
  }

  /** @param hosts of added, removed or changed rules, including wildcards; if empty, returns itself */
  next(hosts: Iterable<string>): RuleRevision {
    const distinctHosts = [...new Set(hosts)];
    if (distinctHosts.length === 0) return this;
    const number = this.number + 1;
    const step = { number, hosts: distinctHosts.length > maxHosts ? undefined : distinctHosts };
    return new RuleRevision(this.lineage, number, [...this.steps.slice(1 - maxSteps), step]);
  }

  /** Returns `undefined` if rules of any host may differ. */
  changedSince(earlierRevision: RuleRevision): ReadonlySet<string> | undefined {
    if (earlierRevision === this) return new Set();
    const hasSameLineage = earlierRevision.lineage === this.lineage && earlierRevision.number <= this.number;
    if (!hasSameLineage || this.number - earlierRevision.number > this.steps.length) return undefined;
    const laterSteps = this.steps.filter(({ number }) => number > earlierRevision.number);
    if (laterSteps.some(({ hosts }) => hosts === undefined)) return undefined;
    return new Set(laterSteps.flatMap(({ hosts }) => hosts!));
  }
}
