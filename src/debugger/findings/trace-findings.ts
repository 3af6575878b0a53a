import { messageOf } from '../../runtime/errors.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { type ProgramRun, ProgramRuns } from '../trace/program-runs.ts';
import { failedStartsRule } from './failed-starts.ts';
import type { BrokenRule, Finding, FindingRule, RuleRun, Run } from './finding.ts';
import { lostServingRule } from './lost-serving.ts';
import { endingRule } from './program-end.ts';
import { pushRule } from './push.ts';
import { rejectionRule } from './rejections.ts';
import { restartRule } from './restart.ts';

/** All rules. A new rule needs a file and an entry here. */
export const rules: readonly FindingRule[] = [
  restartRule,
  lostServingRule,
  failedStartsRule,
  rejectionRule,
  pushRule,
  endingRule,
];

/** Limit per rule; more findings of one rule have a common cause. */
const maxPerRule = 1_000;

interface ProgramFindings extends ProgramRun {
  readonly findings: TraceFindings;
}

interface Programs {
  readonly runs: ProgramRuns;
  /** By label of the program. */
  readonly findings: ReadonlyMap<string, ProgramFindings>;
}

function inMergedTrace({ sentence, index, range, root, ...finding }: Finding, { label, indexes }: ProgramRun): Finding {
  const at = (ownIndex: number): number => indexes[ownIndex]!;
  return {
    ...finding,
    sentence: `${label}: ${sentence}`,
    index: at(index),
    range: [at(range[0]), at(range[1])],
    ...(root !== undefined && { root: at(root) }),
  };
}

/** A rule with its state for this trace. */
interface ActiveRule {
  readonly name: string;
  readonly run: RuleRun;
  found: number;
}

/** The findings for a growing trace. In a merged trace the rules are applied to each program separately. */
export class TraceFindings {
  readonly #run: Run;
  readonly #programs: Programs | undefined;
  readonly #rules: ActiveRule[];
  /** Rules by the event types and by the kinds of other records that they need. */
  readonly #byEvent = new Map<string, ActiveRule[]>();
  readonly #byKind = new Map<TraceRecord['kind'], ActiveRule[]>();
  readonly #found: Finding[] = [];
  readonly #broken: BrokenRule[] = [];
  #read = 0;

  constructor(run: Run, use: readonly FindingRule[] = rules) {
    this.#run = run;
    const { programs } = run.header;
    if (programs !== undefined) {
      const runs = new ProgramRuns(run.header, programs);
      const programFindings = runs.all.map(
        (one) => [one.label, { ...one, findings: new TraceFindings(one.run, use) }] as const,
      );
      this.#programs = { runs, findings: new Map(programFindings) };
      this.#rules = [];
      return;
    }
    this.#rules = use.map(({ name, begin }) => ({ name, run: begin(), found: 0 }));
    for (const [at, { reads }] of use.entries()) {
      for (const type of new Set(reads.events)) listOf(this.#byEvent, type).push(this.#rules[at]!);
      for (const kind of new Set(reads.kinds)) listOf(this.#byKind, kind).push(this.#rules[at]!);
    }
  }

  /** In the order of their records. */
  get found(): readonly Finding[] {
    return this.#found;
  }

  get broken(): readonly BrokenRule[] {
    return [...this.#broken, ...this.#programFindings().flatMap(({ findings }) => findings.broken)];
  }

  /** Processes the records that were added since the last call. */
  grow(): void {
    while (this.#read < this.#run.length) this.take(this.#run.recordAt(this.#read)!);
  }

  /** Processes the next record, which must already be in the run. */
  take(record: TraceRecord): void {
    const index = this.#read++;
    if (this.#programs !== undefined) {
      this.#takeProgramRecord(this.#programs, record, index);
      return;
    }
    const activeRules = record.kind === 'event' ? this.#byEvent.get(record.event.type) : this.#byKind.get(record.kind);
    if (activeRules !== undefined)
      this.#found.push(...this.#applyRules(activeRules, (rule) => rule.take(record, index, this.#run)));
  }

  /** Additional findings if the trace ends here. */
  atEnd(): readonly Finding[] {
    if (this.#programs !== undefined) {
      return this.#programFindings().flatMap((program) =>
        program.findings.atEnd().map((finding) => inMergedTrace(finding, program)),
      );
    }
    return this.#applyRules(this.#rules, (rule) => rule.end?.(this.#run));
  }

  #programFindings(): readonly ProgramFindings[] {
    return [...(this.#programs?.findings.values() ?? [])];
  }

  #takeProgramRecord({ runs, findings }: Programs, record: TraceRecord, index: number): void {
    const found = runs.add(record, index);
    if (found === undefined) return;
    const program = findings.get(found.label)!;
    const previousCount = program.findings.found.length;
    program.findings.take(found.record);
    this.#found.push(...program.findings.found.slice(previousCount).map((finding) => inMergedTrace(finding, program)));
  }

  #applyRules(
    activeRules: readonly ActiveRule[],
    question: (rule: RuleRun) => readonly Finding[] | undefined,
  ): readonly Finding[] {
    const all: Finding[] = [];
    for (const rule of [...activeRules]) {
      // Further findings are dropped, so the rule need not follow the trace unless it reports at the end.
      if (rule.found >= maxPerRule && rule.run.end === undefined) continue;
      try {
        const found = question(rule.run) ?? [];
        rule.found += found.length;
        if (rule.found <= maxPerRule) all.push(...found);
      } catch (error) {
        for (const list of [this.#rules, ...this.#byEvent.values(), ...this.#byKind.values()]) {
          const at = list.indexOf(rule);
          if (at >= 0) list.splice(at, 1);
        }
        this.#broken.push({ rule: rule.name, reason: messageOf(error) });
      }
    }
    return all;
  }
}

function listOf<Key>(lists: Map<Key, ActiveRule[]>, key: Key): ActiveRule[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
