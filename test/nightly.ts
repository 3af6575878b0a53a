/**
 * `npm run test:nightly -- [--only PART,…]`: everything that `npm test` does in short, at length, one part after the
 * other. Exit code 1 when a part failed; the table at the end says what each gave (test/README.md has the last one).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { packageRoot } from '../src/runtime/package-root.ts';

interface Part {
  readonly name: string;
  readonly command: string;
  /** The last line that matches says what it gave. */
  readonly gave: RegExp;
}

const closingLine = /^\d+ passed, \d+ failed/;

const parts: readonly Part[] = [
  { name: 'tests', command: 'npm test', gave: closingLine },
  { name: 'calibration', command: 'vitest run --project e2e test/e2e/calibration.test.ts', gave: closingLine },
  {
    name: 'calibration-again',
    command: 'vitest run --project e2e test/e2e/calibration.test.ts',
    gave: closingLine,
  },
  { name: 'explore', command: 'npm run explore', gave: /\d+ states/ },
  {
    name: 'explore-discovery',
    command: 'node src/cli/chartpilot.ts explore --world discovery --changes 2 --faults 1',
    gave: /\d+ states/,
  },
  { name: 'soak', command: 'npm run test:soak -- --schedules 300000 --minutes 30', gave: /schedules/ },
  { name: 'random-config', command: 'npm run test:random-config', gave: /random objects|taken by every proxy/ },
  { name: 'fuzz', command: 'npm run test:fuzz -- --minutes 10', gave: /^\d+ findings/ },
  { name: 'memory', command: 'node test/load/memory.ts --rounds 10', gave: /^memory: grown/ },
  { name: 'churn', command: 'npm run test:churn', gave: /^churn: / },
  { name: 'mutation', command: 'npm run test:mutation', gave: /^All files/ },
  { name: 'restarts', command: 'npm run bench:restarts', gave: /restarts/ },
];

interface Outcome {
  readonly part: Part;
  readonly code: number | null;
  readonly minutes: number;
  readonly gave: string;
}

const usage = `usage: npm run test:nightly -- [--only PART,…]\nparts: ${parts.map(({ name }) => name).join(', ')}`;
const logs = join(packageRoot(), 'coverage', 'nightly');

async function run(part: Part): Promise<Outcome> {
  console.log(`\n== ${part.name}: ${part.command}`);
  const begun = performance.now();
  const log = createWriteStream(join(logs, `${part.name}.log`));
  const child = spawn(`${part.command} 2>&1`, {
    cwd: packageRoot(),
    shell: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, CHARTPILOT_TESTS: 'full', NO_COLOR: '1' },
  });
  const ended = once(child, 'close');
  let gave = '';
  for await (const line of createInterface({ input: child.stdout })) {
    log.write(`${line}\n`);
    if (part.gave.test(line.trim())) gave = line.trim();
  }
  const [code] = (await ended) as [number | null];
  log.end();
  await finished(log);
  const outcome = { part, code, minutes: (performance.now() - begun) / 60_000, gave };
  console.log(row(outcome));
  return outcome;
}

const row = ({ part, code, minutes, gave }: Outcome): string =>
  `| ${part.name} | \`${part.command}\` | ${code === 0 ? 'passed' : `FAILED (${code})`} | ${minutes.toFixed(1)} min | ${gave.replaceAll('|', '/')} |`;

const { values } = parseArgs({ options: { only: { type: 'string' }, help: { type: 'boolean', default: false } } });
const only = values.only?.split(',');
const unknown = only?.filter((name) => !parts.some((part) => part.name === name)) ?? [];
if (values.help || unknown.length > 0) {
  console.error(unknown.length > 0 ? `no such part: ${unknown.join(', ')}\n${usage}` : usage);
  process.exit(values.help ? 0 : 2);
}
mkdirSync(logs, { recursive: true });
const outcomes: Outcome[] = [];
for (const part of parts) if (only?.includes(part.name) ?? true) outcomes.push(await run(part));
console.log(`\n| part | command | | took | gave |\n|---|---|---|---|---|\n${outcomes.map(row).join('\n')}`);
console.log(`the whole of each: ${logs}`);
process.exit(outcomes.every(({ code }) => code === 0) ? 0 : 1);
