/** Prometheus's own parser and query engine, for metrics pages that a test has scraped. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { findOrBuild, promql } from '../cluster/go-program.ts';

export interface Scrape {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** Labels of the target: `job`, `instance`. */
  readonly labels: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface QueryResult {
  /** Why the query cannot be evaluated. */
  readonly error?: string;
  readonly elements: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: string }[] | null;
}

export interface Evaluation {
  readonly results: readonly QueryResult[];
  readonly ruleErrors: readonly string[];
}

/** @throws Error if a page is not in Prometheus's format, or has a duplicate series */
export async function evaluate(order: {
  readonly scrapes: readonly Scrape[];
  readonly queries: readonly string[];
  readonly atMs: number;
  /** Content of a file of alert rules. */
  readonly rules?: string;
}): Promise<Evaluation> {
  const binary = await findOrBuild(promql, (line) => console.error(line));
  const child = spawn(binary, { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(JSON.stringify(order));
  const [output, problem] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (child.exitCode !== 0) throw new Error(`promql: ${problem}`);
  return JSON.parse(output) as Evaluation;
}
