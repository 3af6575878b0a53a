/**
 * `npm run test:soak`: random fault schedules for a long time, on several threads. Exit code 1 if a schedule broke an
 * invariant; its shortest form is printed with the command that repeats it.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { traceFile } from '../../src/runtime/trace/trace-file.ts';
import {
  type Finding,
  formatFinding,
  type SearchFigures,
  searchSchedules,
  writeRandomTrace,
} from '../simulation/random-search.ts';
import { SearchThread } from './search-thread.ts';

interface SoakOptions {
  schedules: number;
  minutes: number;
  workers: number;
  seed: number;
  path?: string;
}

/** Schedules of one seed. The next batch uses the next seed. */
const batchSize = 1_000;
const progressMs = 60_000;

const options = new Command('soak')
  .description('Random fault schedules against the real statecharts of pilot-agent, under virtual time.')
  .option('--schedules <n>', 'end after so many', count, 1_000_000)
  .option('--minutes <n>', 'or after so long', count, 60)
  .option('--workers <n>', 'threads', count, 2)
  .option('--seed <n>', 'of the first schedule', integer, Date.now() % 1_000_000_000)
  .option('--path <path>', 'run only the one schedule that a failing run has named')
  .parse()
  .opts<SoakOptions>();

process.exitCode = options.path === undefined ? await soak(options) : repeat(options.seed, options.path);

function repeat(seed: number, path: string): number {
  const { finding } = searchSchedules({ seed, path, runs: batchSize });
  if (finding === undefined) {
    console.log(`seed ${seed}, path ${path}: no violation`);
    return 0;
  }
  printFinding(finding);
  return 1;
}

async function soak({ schedules, minutes, workers, seed }: SoakOptions): Promise<number> {
  console.log(`soak: up to ${schedules} schedules or ${minutes} minutes, ${workers} workers, seed ${seed}`);
  const startedAt = performance.now();
  const total = { schedules: 0, checkedCount: 0, spawnCount: 0, virtualMs: 0 };
  const batches = Math.ceil(schedules / batchSize);
  let next = 0;
  let finding: Finding | undefined;
  const isOver = (): boolean =>
    finding !== undefined || next >= batches || performance.now() - startedAt >= minutes * 60_000;
  const progress = setInterval(() => console.log(formatFigures(total, performance.now() - startedAt)), progressMs);
  const serve = async (): Promise<void> => {
    const thread = new SearchThread();
    try {
      while (!isOver()) {
        const runs = Math.min(batchSize, schedules - next * batchSize);
        const result = await thread.search({ seed: seed + next++, runs });
        for (const name of ['schedules', 'checkedCount', 'spawnCount', 'virtualMs'] as const)
          total[name] += result.figures[name];
        finding ??= result.finding;
      }
    } finally {
      await thread.end();
    }
  };
  await Promise.all(Array.from({ length: workers }, serve));
  clearInterval(progress);
  if (finding !== undefined) printFinding(finding);
  const outcomeText = finding === undefined ? 'no violation' : 'VIOLATION';
  console.log(`soak: ${outcomeText}, seed ${seed}: ${formatFigures(total, performance.now() - startedAt)}`);
  return finding === undefined ? 0 : 1;
}

function printFinding(finding: Finding): void {
  const path = join(mkdtempSync(join(tmpdir(), 'chartpilot-soak-')), 'run.trace');
  writeRandomTrace(finding.schedule, traceFile(path));
  console.log(formatFinding(finding, path));
}

function formatFigures({ schedules, checkedCount, spawnCount, virtualMs }: SearchFigures, ms: number): string {
  const days = (virtualMs / 86_400_000).toFixed(1);
  return `${schedules} schedules, ${checkedCount} of them against the diagrams, ${spawnCount} Envoys, ${days} days of virtual time, ${(ms / 60_000).toFixed(1)} min`;
}

function integer(text: string): number {
  if (!/^-?\d+$/.test(text)) throw new InvalidArgumentError('an integer is needed.');
  return Number(text);
}

function count(text: string): number {
  const number = integer(text);
  if (number < 1) throw new InvalidArgumentError('at least 1 is needed.');
  return number;
}
