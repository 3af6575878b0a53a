/** What the fuzzer is made of: programs under attack, and the edges where foreign bytes come in. */
import type { Draw } from '../random-config/draw.ts';

export type ProgramName = 'pilot-discovery' | 'pilot-agent' | 'chartpilot';

/** One place where bytes of strangers come in. */
export interface Edge {
  /** `discovery-http`: what `--only` takes. */
  readonly name: string;
  readonly program: ProgramName;
  /**
   * One attack, drawn from one seed: the same seed throws the same bytes.
   *
   * @returns what was thrown, for a report
   * @throws Error when the edge itself answered as it must not: that is a finding
   */
  attack(draw: Draw): Promise<string> | string;
}

/** What is attacked: a running program, or functions in this process. */
export interface Subject {
  readonly edges: readonly Edge[];
  /** What is wrong with it after an attack, one line each; empty when somebody who behaves is served as ever. */
  judge(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Makes a subject; it is made anew after a finding. */
export interface SubjectMaker {
  readonly program: ProgramName;
  /** `discovery`, `agent`, `functions`: shown before its findings. */
  readonly name: string;
  /** Names of its edges, known before it runs. */
  readonly edges: readonly string[];
  readonly open: () => Promise<Subject>;
  /** Attacks between two judgements. */
  readonly batch: number;
}

/** Kept short: what was thrown may be megabytes. */
export function shown(bytes: Uint8Array | string, longest = 160): string {
  const text = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('latin1');
  const escaped = JSON.stringify(text.slice(0, longest));
  return text.length <= longest ? escaped : `${escaped}… (${text.length} in all)`;
}
