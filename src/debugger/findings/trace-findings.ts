import { messageOf } from '../../runtime/errors.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { type ProgramRun, ProgramRuns } from '../trace/program-runs.ts';
import { failedTriesRule } from './failed-starts.ts';
import type { BrokenRule, RuleRun, Run, Verdict, VerdictRule } from './finding.ts';
import { lostServingRule } from './lost-serving.ts';
import { endingRule } from './program-end.ts';
import { pushRule } from './push.ts';
import { refusedRule } from './rejections.ts';
import { restartRule } from './restart.ts';

/** All rules. A new rule needs a file and an entry here. */
export const rules: readonly VerdictRule[] = [
  restartRule,
  lostServingRule,
  failedTriesRule,
  refusedRule,
  pushRule,
  endingRule,
];

/** Limit per rule; more findings of one rule have a common cause. */
const mostOfARule = 1_000;

interface OwnVerdicts extends ProgramRun {
  readonly verdicts: Verdicts;
}

interface Programs {
  readonly runs: ProgramRuns;
  /** By label of the program. */
  readonly verdicts: ReadonlyMap<string, OwnVerdicts>;
}

function amongAll({ sentence, index, range, root, ...verdict }: Verdict, { label, places }: ProgramRun): Verdict {
  const at = (own: number): number => places[own]!;
  return {
    ...verdict,
    sentence: `${label}: ${sentence}`,
    index: at(index),
    range: [at(range[0]), at(range[1])],
    ...(root !== undefined && { root: at(root) }),
  };
}

/** A rule with its state for this trace. */
interface Asked {
  readonly name: string;
  readonly run: RuleRun;
  found: number;
}

/** The findings for a growing trace. In a merged trace the rules are applied to each program separately. */
export class Verdicts {
  readonly #run: Run;
  readonly #programs: Programs | undefined;
  readonly #rules: Asked[];
  /** Rules by the event types and by the kinds of other records that they need. */
  readonly #byEvent = new Map<string, Asked[]>();
  readonly #byKind = new Map<TraceRecord['kind'], Asked[]>();
  readonly #found: Verdict[] = [];
  readonly #broken: BrokenRule[] = [];
  #read = 0;

  constructor(run: Run, use: readonly VerdictRule[] = rules) {
    this.#run = run;
    const { programs } = run.header;
    if (programs !== undefined) {
      const runs = new ProgramRuns(run.header, programs);
      const own = runs.all.map((one) => [one.label, { ...one, verdicts: new Verdicts(one.run, use) }] as const);
      this.#programs = { runs, verdicts: new Map(own) };
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
  get found(): readonly Verdict[] {
    return this.#found;
  }

  get broken(): readonly BrokenRule[] {
    return [...this.#broken, ...this.#own().flatMap(({ verdicts }) => verdicts.broken)];
  }

  /** Processes the records that were added since the last call. */
  grow(): void {
    while (this.#read < this.#run.length) this.take(this.#run.recordAt(this.#read)!);
  }

  /** Processes the next record, which must already be in the run. */
  take(record: TraceRecord): void {
    const index = this.#read++;
    if (this.#programs !== undefined) {
      this.#takeOwn(this.#programs, record, index);
      return;
    }
    const asked = record.kind === 'event' ? this.#byEvent.get(record.event.type) : this.#byKind.get(record.kind);
    if (asked !== undefined) this.#found.push(...this.#ask(asked, (rule) => rule.take(record, index, this.#run)));
  }

  /** Additional findings if the trace ends here. */
  atEnd(): readonly Verdict[] {
    if (this.#programs !== undefined) {
      return this.#own().flatMap((own) => own.verdicts.atEnd().map((verdict) => amongAll(verdict, own)));
    }
    return this.#ask(this.#rules, (rule) => rule.end?.(this.#run));
  }

  #own(): readonly OwnVerdicts[] {
    return [...(this.#programs?.verdicts.values() ?? [])];
  }

  #takeOwn({ runs, verdicts }: Programs, record: TraceRecord, index: number): void {
    const found = runs.add(record, index);
    if (found === undefined) return;
    const own = verdicts.get(found.label)!;
    const before = own.verdicts.found.length;
    own.verdicts.take(found.record);
    this.#found.push(...own.verdicts.found.slice(before).map((verdict) => amongAll(verdict, own)));
  }

  #ask(asked: readonly Asked[], question: (rule: RuleRun) => readonly Verdict[] | undefined): readonly Verdict[] {
    const all: Verdict[] = [];
    for (const rule of [...asked]) {
      // Further findings are dropped, so the rule need not follow the trace unless it reports at the end.
      if (rule.found >= mostOfARule && rule.run.end === undefined) continue;
      try {
        const found = question(rule.run) ?? [];
        rule.found += found.length;
        if (rule.found <= mostOfARule) all.push(...found);
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

function listOf<Key>(lists: Map<Key, Asked[]>, key: Key): Asked[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
