/** Which hosts' destination rules are others than they were: for whoever keeps what was made with them. */

/** Steps that are remembered; whoever is further behind looks at everything. */
const maxSteps = 64;
/** A step with more hosts than that is not worth remembering: nearly everything is looked at in any case. */
const maxHosts = 256;

interface Step {
  readonly number: number;
  /** Undefined: any. */
  readonly hosts: readonly string[] | undefined;
}

/** A state of all rules. Immutable; revisions that come from one another know what lies between them. */
export class RuleRevision {
  /** The same for all revisions that come from one. */
  private readonly lineage: object;
  private readonly number: number;
  private readonly steps: readonly Step[];

  private constructor(lineage: object, number: number, steps: readonly Step[]) {
    this.lineage = lineage;
    this.number = number;
    this.steps = steps;
  }

  static first(): RuleRevision {
    return new RuleRevision({}, 0, []);
  }

  /** @param hosts of the rules that came, went or changed, wildcards among them; of none: itself */
  next(hosts: Iterable<string>): RuleRevision {
    const distinct = [...new Set(hosts)];
    if (distinct.length === 0) return this;
    const number = this.number + 1;
    const step = { number, hosts: distinct.length > maxHosts ? undefined : distinct };
    return new RuleRevision(this.lineage, number, [...this.steps.slice(1 - maxSteps), step]);
  }

  /** Hosts of rules that are not what they were in an earlier revision; undefined when any may be. */
  changedSince(earlier: RuleRevision): ReadonlySet<string> | undefined {
    if (earlier === this) return new Set();
    const isKnown = earlier.lineage === this.lineage && earlier.number <= this.number;
    if (!isKnown || this.number - earlier.number > this.steps.length) return undefined;
    const between = this.steps.filter(({ number }) => number > earlier.number);
    if (between.some(({ hosts }) => hosts === undefined)) return undefined;
    return new Set(between.flatMap(({ hosts }) => hosts!));
  }
}
