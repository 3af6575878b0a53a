/**
 * `npm run test:nightly -- [--only PART,…] [--short]`: runs the long forms of tests that `npm test` runs briefly, one
 * part after another. `--short` checks that each part works. Exit code 1 if a part failed. The table at the end has the
 * result of each part (test/README.md has the last one).
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
  /** Arguments for a run of about a minute, which checks that the part works. */
  readonly short: string;
  /** Pattern of result lines, of which the last one counts. */
  readonly resultPattern: RegExp;
}

const closingLine = /^\d+ passed, \d+ failed/;

const calibration = 'CHARTPILOT_TESTS=full vitest run --project e2e test/e2e/calibration.test.ts';
const explore = 'node src/cli/chartpilot.ts explore';

const parts: readonly Part[] = [
  { name: 'tests', command: 'npm test', short: 'npm run test:quick', resultPattern: closingLine },
  { name: 'calibration', command: calibration, short: calibration, resultPattern: closingLine },
  { name: 'calibration-again', command: calibration, short: calibration, resultPattern: closingLine },
  {
    name: 'explore',
    command: 'npm run explore',
    short: `${explore} --triggers 1 --faults 0 --stop`,
    resultPattern: /\d+ states/,
  },
  {
    name: 'explore-discovery',
    command: `${explore} --world discovery --changes 2 --faults 1`,
    short: `${explore} --world discovery --changes 1 --faults 1`,
    resultPattern: /\d+ states/,
  },
  {
    name: 'soak',
    command: 'npm run test:soak -- --schedules 300000 --minutes 30',
    short: 'npm run test:soak -- --schedules 300 --minutes 1',
    resultPattern: /schedules/,
  },
  {
    name: 'random-config',
    command: 'npm run test:random-config',
    short: 'npm run test:random-config -- --configurations 3',
    resultPattern: /random objects|taken by every proxy/,
  },
  {
    name: 'random-bootstrap',
    command: 'npm run test:random-bootstrap',
    short: 'npm run test:random-bootstrap -- --inputs 100 --envoy 3',
    resultPattern: /^seed \d+: \d+ inputs/,
  },
  {
    name: 'bootstrap-leaves',
    command: 'npm run test:bootstrap-leaves',
    short: 'npm run test:bootstrap-leaves',
    resultPattern: /^\d+ bootstraps/,
  },
  {
    name: 'fuzz',
    command: 'npm run test:fuzz -- --minutes 10',
    short: 'npm run test:fuzz -- --minutes 0.05',
    resultPattern: /^\d+ findings/,
  },
  {
    name: 'memory',
    command: 'node test/load/memory.ts --rounds 10',
    short: 'node test/load/memory.ts --rounds 3 --seconds 1',
    resultPattern: /^memory: grown/,
  },
  {
    name: 'churn',
    command: 'npm run test:churn',
    short: 'npm run test:churn -- --minutes 0.2 --services 60 --proxies 20 --removal-delay 200',
    resultPattern: /^churn: /,
  },
  {
    name: 'churn-restarts',
    command: 'npm run test:churn -- --minutes 60 --services 200 --proxies 50 --changes 1 --restart-every 300',
    short:
      'npm run test:churn -- --minutes 1 --services 60 --proxies 20 --changes 1 --restart-every 20 --removal-delay 200',
    resultPattern: /^churn: /,
  },
  {
    name: 'mutation',
    command: 'npm run test:mutation',
    short: 'npm run test:mutation -- --mutate machines/agent/envoy/start-limiter.machine.ts',
    resultPattern: /^All files/,
  },
  {
    name: 'demo-consul',
    command: 'npm run demo:consul -- --check',
    short: 'npm run demo:consul -- --check',
    resultPattern: /results are/,
  },
  {
    name: 'demo-cluster',
    command: 'npm run demo:cluster -- --check',
    short: 'npm run demo:cluster -- --check',
    resultPattern: /results are/,
  },
  {
    name: 'tasks',
    command: 'npm run test:tasks',
    short: 'npm run test:tasks -- --only mirroring,jwt',
    resultPattern: /^tasks: /,
  },
  {
    name: 'node-memory',
    command: 'node test/node/mesh/measure-memory.ts',
    short: 'node test/node/mesh/measure-memory.ts --pods 2',
    resultPattern: /^memory of /,
  },
  {
    name: 'connection-memory',
    command: 'node test/bench/connection-memory.ts',
    short: 'node test/bench/connection-memory.ts --services 50 --streams 500',
    resultPattern: /^\| \d+ \| \d+ \| yes/,
  },
  {
    name: 'reconnects',
    command: 'node test/bench/reconnect.ts --streams 1000 --goals 20',
    short: 'node test/bench/reconnect.ts --streams 100',
    resultPattern: /^half /,
  },
  {
    name: 'reconnects-tls',
    command: 'node test/bench/reconnect.ts --streams 1000 --tls --goals 60',
    short: 'node test/bench/reconnect.ts --streams 100 --tls',
    resultPattern: /^half /,
  },
  {
    name: 'restarts',
    command: 'npm run bench:restarts',
    short: 'npm run bench:restarts -- --restarts 2',
    resultPattern: /restarts/,
  },
];

interface Outcome {
  readonly name: string;
  readonly command: string;
  readonly code: number | null;
  readonly minutes: number;
  readonly gave: string;
}

const usage = `usage: npm run test:nightly -- [--only PART,…] [--short]\nparts: ${parts.map(({ name }) => name).join(', ')}`;
const logs = join(packageRoot(), 'coverage', 'nightly');

async function run({ name, resultPattern: pattern, ...part }: Part, isShort: boolean): Promise<Outcome> {
  const command = isShort ? part.short : part.command;
  console.log(`\n== ${name}: ${command}`);
  const begun = performance.now();
  const log = createWriteStream(join(logs, `${name}.log`));
  const child = spawn(`${command} 2>&1`, {
    cwd: packageRoot(),
    shell: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, CHARTPILOT_TESTS: isShort ? 'quick' : 'full', NO_COLOR: '1' },
  });
  const ended = once(child, 'close');
  let gave = '';
  for await (const line of createInterface({ input: child.stdout })) {
    log.write(`${line}\n`);
    if (pattern.test(line.trim())) gave = line.trim();
  }
  const [code] = (await ended) as [number | null];
  log.end();
  await finished(log);
  const outcome = { name, command, code, minutes: (performance.now() - begun) / 60_000, gave };
  console.log(row(outcome));
  return outcome;
}

const row = ({ name, command, code, minutes, gave }: Outcome): string =>
  `| ${name} | \`${command}\` | ${code === 0 ? 'passed' : `FAILED (${code})`} | ${minutes.toFixed(1)} min | ${gave.replaceAll('|', '/')} |`;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const only = values.only?.split(',');
const unknown = only?.filter((name) => !parts.some((part) => part.name === name)) ?? [];
if (values.help || unknown.length > 0) {
  console.error(unknown.length > 0 ? `no such part: ${unknown.join(', ')}\n${usage}` : usage);
  process.exit(values.help ? 0 : 2);
}
mkdirSync(logs, { recursive: true });
const outcomes: Outcome[] = [];
for (const part of parts) if (only?.includes(part.name) ?? true) outcomes.push(await run(part, values.short));
console.log(`\n| part | command | | took | gave |\n|---|---|---|---|---|\n${outcomes.map(row).join('\n')}`);
console.log(`the whole of each: ${logs}`);
process.exit(outcomes.every(({ code }) => code === 0) ? 0 : 1);
