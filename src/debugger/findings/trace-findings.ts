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

export const rules: readonly FindingRule[] = [
  restartRule,
  lostServingRule,
  failedStartsRule,
  rejectionRule,
  pushRule,
  endingRule,
];

/** Further findings of a rule have the same cause. */
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
  const traceIndex = (ownIndex: number): number => indexes[ownIndex]!;
  return {
    ...finding,
    sentence: `${label}: ${sentence}`,
    index: traceIndex(index),
    range: [traceIndex(range[0]), traceIndex(range[1])],
    ...(root !== undefined && { root: traceIndex(root) }),
  };
}

interface ActiveRule {
  readonly name: string;
  readonly run: RuleRun;
  findingCount: number;
}

/** In a merged trace the rules are applied to each program separately. */
export class TraceFindings {
  readonly #run: Run;
  readonly #programs: Programs | undefined;
  readonly #rules: ActiveRule[];
  readonly #rulesByEvent = new Map<string, ActiveRule[]>();
  readonly #rulesByKind = new Map<TraceRecord['kind'], ActiveRule[]>();
  readonly #findings: Finding[] = [];
  readonly #brokenRules: BrokenRule[] = [];
  #readCount = 0;

  constructor(run: Run, usedRules: readonly FindingRule[] = rules) {
    this.#run = run;
    const { programs } = run.header;
    if (programs !== undefined) {
      const runs = new ProgramRuns(run.header, programs);
      const programFindings = runs.allRuns.map(
        (programRun) =>
          [programRun.label, { ...programRun, findings: new TraceFindings(programRun.run, usedRules) }] as const,
      );
      this.#programs = { runs, findings: new Map(programFindings) };
      this.#rules = [];
      return;
    }
    this.#rules = usedRules.map(({ name, begin }) => ({ name, run: begin(), findingCount: 0 }));
    for (const [ruleIndex, { reads }] of usedRules.entries()) {
      for (const type of new Set(reads.events)) listOf(this.#rulesByEvent, type).push(this.#rules[ruleIndex]!);
      for (const kind of new Set(reads.kinds)) listOf(this.#rulesByKind, kind).push(this.#rules[ruleIndex]!);
    }
  }

  /** In the order of their records. */
  get findings(): readonly Finding[] {
    return this.#findings;
  }

  get brokenRules(): readonly BrokenRule[] {
    return [...this.#brokenRules, ...this.#programFindings().flatMap(({ findings }) => findings.brokenRules)];
  }

  /** Processes the records that were added since the last call. */
  addNewRecords(): void {
    while (this.#readCount < this.#run.length) this.addRecord(this.#run.recordAt(this.#readCount)!);
  }

  /** The record must already be in the run. */
  addRecord(record: TraceRecord): void {
    const index = this.#readCount++;
    if (this.#programs !== undefined) {
      this.#takeProgramRecord(this.#programs, record, index);
      return;
    }
    const activeRules =
      record.kind === 'event' ? this.#rulesByEvent.get(record.event.type) : this.#rulesByKind.get(record.kind);
    if (activeRules !== undefined)
      this.#findings.push(...this.#applyRules(activeRules, (rule) => rule.onRecord(record, index, this.#run)));
  }

  /** Additional findings if the trace ends here. */
  finish(): readonly Finding[] {
    if (this.#programs !== undefined) {
      return this.#programFindings().flatMap((program) =>
        program.findings.finish().map((finding) => inMergedTrace(finding, program)),
      );
    }
    return this.#applyRules(this.#rules, (rule) => rule.end?.(this.#run));
  }

  #programFindings(): readonly ProgramFindings[] {
    return [...(this.#programs?.findings.values() ?? [])];
  }

  #takeProgramRecord({ runs, findings }: Programs, record: TraceRecord, index: number): void {
    const labelledRecord = runs.add(record, index);
    if (labelledRecord === undefined) return;
    const program = findings.get(labelledRecord.label)!;
    const previousCount = program.findings.findings.length;
    program.findings.addRecord(labelledRecord.record);
    this.#findings.push(
      ...program.findings.findings.slice(previousCount).map((finding) => inMergedTrace(finding, program)),
    );
  }

  #applyRules(
    activeRules: readonly ActiveRule[],
    apply: (rule: RuleRun) => readonly Finding[] | undefined,
  ): readonly Finding[] {
    const endFindings: Finding[] = [];
    for (const rule of [...activeRules]) {
      // Further findings are dropped, so the rule need not follow the trace unless it reports at the end.
      if (rule.findingCount >= maxPerRule && rule.run.end === undefined) continue;
      try {
        const newFindings = apply(rule.run) ?? [];
        rule.findingCount += newFindings.length;
        if (rule.findingCount <= maxPerRule) endFindings.push(...newFindings);
      } catch (error) {
        for (const rules of [this.#rules, ...this.#rulesByEvent.values(), ...this.#rulesByKind.values()]) {
          const ruleIndex = rules.indexOf(rule);
          if (ruleIndex >= 0) rules.splice(ruleIndex, 1);
        }
        this.#brokenRules.push({ rule: rule.name, reason: messageOf(error) });
      }
    }
    return endFindings;
  }
}

function listOf<Key>(rulesByKey: Map<Key, ActiveRule[]>, key: Key): ActiveRule[] {
  const rules = rulesByKey.get(key) ?? [];
  rulesByKey.set(key, rules);
  return rules;
}
