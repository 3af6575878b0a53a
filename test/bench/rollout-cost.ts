/** `node test/bench/rollout-cost.ts`: what make before break costs; see the usage. */
import { parseArgs } from 'node:util';
import { exitWith, print, wholeNumber } from './bench-run.ts';
import { runWithPrograms } from './programs.ts';
import { measureRolloutCost, type RolloutCost } from './push/rollout-cost.ts';
import { medianOf } from './statistics.ts';

const usage = `Usage: node test/bench/rollout-cost.ts [--services N] [--streams N] [--rounds N] [--changes N]

Starts bin/pilot-discovery with make before break and without it, in turns, with sidecars that test/sidecars simulates, and prints for
each protocol what a connection holds after changes (heap and buffers, collected) and the processor time of a change.

  --services N   default 200, with 10 endpoints each
  --streams N    sidecars, default 200
  --rounds N     of each, with new processes, default 1; figures are medians
  --changes N    of each kind in a round, default 3
`;

const { values } = parseArgs({
  options: {
    services: { type: 'string' },
    streams: { type: 'string' },
    rounds: { type: 'string' },
    changes: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});

const medians = (costs: readonly RolloutCost[]): RolloutCost => ({
  connectionBytes: medianOf(costs.map(({ connectionBytes }) => connectionBytes)),
  cpuMs: {
    endpoint: medianOf(costs.map(({ cpuMs }) => cpuMs.endpoint)),
    route: medianOf(costs.map(({ cpuMs }) => cpuMs.route)),
    newCluster: medianOf(costs.map(({ cpuMs }) => cpuMs.newCluster)),
  },
});

const told = ({ connectionBytes, cpuMs }: RolloutCost): string =>
  [
    `${Math.round(connectionBytes)} bytes a connection`,
    ...Object.entries(cpuMs).map(([change, ms]) => `${change} ${ms.toFixed(1)} ms`),
  ].join(', ');

if (values.help) print(usage);
else {
  const plan = {
    services: wholeNumber('services', values.services, 200),
    sidecars: wholeNumber('streams', values.streams, 200),
    changes: wholeNumber('changes', values.changes, 3),
  };
  const rounds = wholeNumber('rounds', values.rounds, 1);
  await exitWith(async () => {
    const errors = await runWithPrograms(async (programs) => {
      for (const protocol of ['delta', 'sotw'] as const) {
        const costs = { with: [] as RolloutCost[], without: [] as RolloutCost[] };
        for (let round = 0; round < rounds; round++) {
          costs.with.push(await measureRolloutCost(programs, { ...plan, protocol, isEnabled: true }));
          costs.without.push(await measureRolloutCost(programs, { ...plan, protocol, isEnabled: false }));
        }
        for (const [variant, all] of Object.entries(costs))
          print(`${protocol} ${variant.padEnd(8)} ${told(medians(all))}`);
      }
    });
    for (const error of errors) print(error);
    return errors.length === 0 ? 0 : 1;
  });
}
