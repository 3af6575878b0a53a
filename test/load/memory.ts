/**
 * `node test/load/memory.ts [--rounds N] [--seconds N]`: runs all attacks repeatedly on one control plane, and measures its memory after a garbage
 * collection in each round. Exit code 1 if memory after the last round exceeds that after the second round by more than all bounded caches may take.
 * HEAP_SNAPSHOTS=FOLDER writes a heap snapshot each time.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { freePorts } from '../harness/free-ports.ts';
import type { Program } from '../harness/program.ts';
import { makeRoot, startAttackedServer } from './attacked-server.ts';
import { type AttackName, attacks } from './attacks.ts';
import { HostileProcess } from './hostile-process.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '6' }, seconds: { type: 'string', default: '2' } },
});
/** Time until all started work has ended: streams, delays, log lines. */
const restMs = 5_000;
/**
 * Maximum growth after the second round, in MiB. Bounded caches fill up: trace records, joined bodies, lists of names, known nodes. More rounds
 * detect a smaller leak.
 */
const maxGrowthMib = 16;

interface RemainingMemory {
  readonly heap: number;
  readonly external: number;
  readonly resident: number;
}

async function measure(server: Program): Promise<RemainingMemory> {
  const fromLine = server.lines.length;
  server.signal('SIGUSR2');
  const line = await server.line(/^memory: /, { fromLine, deadlineMs: 60_000 });
  const [heap = 0, external = 0, , resident = 0] = [...line.matchAll(/[\d.]+/g)].map(Number);
  console.log(line);
  return { heap, external, resident };
}

const meter = pathToFileURL(join(import.meta.dirname, 'heap-meter.mjs')).href;
const root = makeRoot();
const [port, http] = (await freePorts(2)) as [number, number];
const env = { NODE_OPTIONS: `--import=${meter}` };
const server = await startAttackedServer(root, { port, http }, env);
const measurements = [await measure(server)];
try {
  for (let round = 1; round <= Number(values.rounds); round++) {
    const hostileProcess = await HostileProcess.start();
    for (const name of Object.keys(attacks) as AttackName[]) {
      if (name === 'elsewhere') continue;
      await hostileProcess.begin(name, port);
      await sleep(Number(values.seconds) * 1_000);
      console.log(`  ${name}: ${await hostileProcess.end()}`);
    }
    hostileProcess.stop();
    await sleep(restMs);
    console.log(`after round ${round}:`);
    measurements.push(await measure(server));
  }
} finally {
  await server.stop({ deadlineMs: 8_000 });
  rmSync(root, { recursive: true, force: true });
}
const [, , first, ...laterRounds] = measurements;
const last = laterRounds.at(-1);
if (first !== undefined && last !== undefined) {
  const growthMib = last.heap + last.external - first.heap - first.external;
  console.log(`memory: grown by ${growthMib.toFixed(1)} MiB after the second round, ${maxGrowthMib} at the most`);
  process.exitCode = growthMib > maxGrowthMib ? 1 : 0;
}
