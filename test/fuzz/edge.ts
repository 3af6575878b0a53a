/** Interfaces of the fuzzer: programs under attack, and the edges where they receive untrusted bytes. */
import type { Draw } from '../random-config/draw.ts';

export type ProgramName = 'pilot-discovery' | 'pilot-agent' | 'chartpilot';

/** An input of a program for untrusted bytes. */
export interface FuzzEdge {
  /** Name for `--only`, e.g. `discovery-http`. */
  readonly name: string;
  readonly program: ProgramName;
  /**
   * Runs one attack. Equal seeds send equal bytes.
   *
   * @returns description of the sent bytes
   * @throws Error if the response of the edge is a finding
   */
  attack(draw: Draw): Promise<string> | string;
}

/** A running program under attack, or functions in this process. */
export interface FuzzSubject {
  readonly edges: readonly FuzzEdge[];
  /** Problems after an attack, one line each; empty if a well-behaved client is served normally. */
  findProblems(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Starts a subject, and restarts it after a finding. */
export interface SubjectMaker {
  readonly program: ProgramName;
  /** Name in reports of findings: `discovery`, `agent` or `functions`. */
  readonly name: string;
  readonly edges: readonly string[];
  readonly open: () => Promise<FuzzSubject>;
  /** Number of attacks between two checks. */
  readonly batch: number;
}

/** Shortens bytes or text, because an attack may send megabytes. */
export function abbreviate(bytes: Uint8Array | string, maxLength = 160): string {
  const text = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('latin1');
  const escapedText = JSON.stringify(text.slice(0, maxLength));
  return text.length <= maxLength ? escapedText : `${escapedText}… (${text.length} in all)`;
}
