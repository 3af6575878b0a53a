/** Follows a trace with all rules. Runs in a browser. */
import { messageOf } from '../../runtime/errors.ts';
import { endingRule } from './ending.ts';
import { failedTriesRule } from './failed-tries.ts';
import { lostServingRule } from './lost-serving.ts';
import { pushRule } from './push.ts';
import { refusedRule } from './refused.ts';
import { restartRule } from './restart.ts';
import type { BrokenRule, RuleRun, Run, Verdict, VerdictRule } from './verdict.ts';

/** All rules. A new one is a file, and a line here. */
export const rules: readonly VerdictRule[] = [
  restartRule,
  lostServingRule,
  failedTriesRule,
  refusedRule,
  pushRule,
  endingRule,
];

/** Of a rule; a trace in which one finds more has another problem. */
const mostOfARule = 1_000;

/** What is said of a trace that grows. */
export class Verdicts {
  readonly #run: Run;
  readonly #rules: { readonly name: string; readonly run: RuleRun; found: number }[];
  readonly #found: Verdict[] = [];
  readonly #broken: BrokenRule[] = [];
  #read = 0;

  constructor(run: Run, use: readonly VerdictRule[] = rules) {
    this.#run = run;
    this.#rules = use.map(({ name, begin }) => ({ name, run: begin(), found: 0 }));
  }

  /** In the order of their records. */
  get found(): readonly Verdict[] {
    return this.#found;
  }

  /** Rules that threw, and say nothing more. */
  get broken(): readonly BrokenRule[] {
    return this.#broken;
  }

  /** Takes in the records that came since. */
  grow(): void {
    const { records } = this.#run;
    for (; this.#read < records.length; this.#read++) {
      const index = this.#read;
      this.#found.push(...this.#ask((rule) => rule.take(records[index]!, index, this.#run)));
    }
  }

  /** What is to be said beside that if no record comes any more. */
  atEnd(): readonly Verdict[] {
    return this.#ask((rule) => rule.end?.(this.#run));
  }

  #ask(question: (rule: RuleRun) => readonly Verdict[] | undefined): readonly Verdict[] {
    const all: Verdict[] = [];
    for (const rule of [...this.#rules]) {
      try {
        const found = question(rule.run) ?? [];
        rule.found += found.length;
        if (rule.found <= mostOfARule) all.push(...found);
      } catch (error) {
        this.#rules.splice(this.#rules.indexOf(rule), 1);
        this.#broken.push({ rule: rule.name, reason: messageOf(error) });
      }
    }
    return all;
  }
}
