/** Attacks subjects for some time and records failures. */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/runtime/errors.ts';
import { Draw } from '../random-config/draw.ts';
import type { FuzzEdge, FuzzSubject, SubjectMaker } from './edge.ts';

export interface FuzzFinding {
  readonly edge: string;
  /** Seed of the first attack of the batch. */
  readonly seed: number;
  readonly attacks: number;
  readonly wrong: readonly string[];
  /** Sent bytes, oldest first. */
  readonly thrown: readonly string[];
}

export interface CampaignOptions {
  readonly seed: number;
  readonly forMs: number;
  /** Whether to continue beyond the time limit until each edge was attacked. */
  readonly reachesAll?: boolean;
  /** Names of edges; default all. */
  readonly only?: readonly string[];
  /** Maximum number of attacks in total. */
  readonly attacks?: number;
  readonly maxFindings?: number;
  readonly report?: (finding: FuzzFinding) => void;
}

export interface CampaignResult {
  readonly attacks: ReadonlyMap<string, number>;
  readonly findings: readonly FuzzFinding[];
}

/** An attack that does not finish within this time is a finding. */
const attackLimitMs = 60_000;

/** Attacks the edges of one subject in turn until the time is over. The seed determines the sent bytes. */
export async function runCampaign(maker: SubjectMaker, options: CampaignOptions): Promise<CampaignResult> {
  const campaign = new Campaign(maker, options);
  await campaign.run();
  return campaign;
}

class Campaign implements CampaignResult {
  readonly attacks = new Map<string, number>();
  readonly findings: FuzzFinding[] = [];
  readonly #maker: SubjectMaker;
  readonly #options: CampaignOptions;
  #subject: FuzzSubject | undefined;

  constructor(maker: SubjectMaker, options: CampaignOptions) {
    this.#maker = maker;
    this.#options = options;
  }

  async run(): Promise<void> {
    const { forMs, seed, attacks = Number.POSITIVE_INFINITY, maxFindings = 20, reachesAll = false } = this.#options;
    const deadline = performance.now() + forMs;
    const isOver = (): boolean =>
      performance.now() >= deadline && !(reachesAll && this.#maker.edges.some((name) => !this.attacks.has(name)));
    try {
      for (let attackCount = 0; attackCount < attacks && !isOver() && this.findings.length < maxFindings; ) {
        this.#subject ??= await this.#maker.open();
        const subject = this.#subject;
        const edges = subject.edges.filter(({ name }) => this.#options.only?.includes(name) ?? true);
        const edge = edges[Math.floor(attackCount / this.#maker.batch) % edges.length]!;
        const batch = Math.min(this.#maker.batch, attacks - attackCount);
        await this.#attack(subject, edge, seed + attackCount, batch);
        attackCount += batch;
      }
    } finally {
      await this.#subject?.close();
    }
  }

  async #attack(subject: FuzzSubject, edge: FuzzEdge, seed: number, attacks: number): Promise<void> {
    const thrown: string[] = [];
    const problems: string[] = [];
    for (let i = 0; i < attacks && problems.length === 0; i++) {
      try {
        thrown.push(await runLimited(edge, new Draw(seed + i)));
      } catch (error) {
        problems.push(
          `attack ${seed + i}: ${error instanceof Error ? (error.stack ?? error.message) : messageOf(error)}`,
        );
      }
    }
    this.attacks.set(edge.name, (this.attacks.get(edge.name) ?? 0) + thrown.length);
    problems.push(...(await subject.findProblems()));
    if (problems.length === 0) return;
    const finding = { edge: edge.name, seed, attacks, wrong: problems, thrown };
    this.findings.push(finding);
    this.#options.report?.(finding);
    // The state of this subject is not meaningful for the next attack.
    this.#subject = undefined;
    await subject.close();
  }
}

async function runLimited(edge: FuzzEdge, draw: Draw): Promise<string> {
  const stopController = new AbortController();
  const limit = sleep(attackLimitMs, undefined, { signal: stopController.signal }).then(
    () => Promise.reject(new Error(`no end of the attack within ${attackLimitMs} ms`)),
    () => '',
  );
  try {
    return await Promise.race([Promise.resolve(edge.attack(draw)), limit]);
  } finally {
    stopController.abort();
  }
}

/** Human-readable finding with the command that reproduces it. */
export function findingText({ edge, seed, attacks, wrong, thrown }: FuzzFinding): string {
  return [
    `${edge}: ${wrong[0]}`,
    ...wrong.slice(1),
    `  repeat: npm run test:fuzz -- --only ${edge} --seed ${seed} --attacks ${attacks}`,
    ...thrown.slice(-10).map((text) => `  thrown: ${text}`),
  ].join('\n');
}
