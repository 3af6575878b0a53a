/**
 * `node test/bench/connection-memory.ts`: memory of a control plane by number of connections, with and without TLS; see
 * the usage.
 */
import { parseArgs } from 'node:util';
import { exitWith, print } from './bench-run.ts';
import { runWithPrograms } from './programs.ts';
import { measureConnectionMemory } from './push/connection-memory.ts';
import { replicaCost } from './scaling/scaling-model.ts';

const usage = `Usage: node test/bench/connection-memory.ts [--services LIST] [--streams LIST] [--protocol delta|sotw]

Starts bin/pilot-discovery for each number of services and streams, in plaintext and with TLS, and prints what it has resident while it serves
them, after changes, and 30 s after all of them have disconnected, beside the formula of docs/scaling.md. No collection is forced before these
figures; the last two follow one.

  --services LIST   default 50,200
  --streams LIST    default 500,2000,5000
  --protocol P      default delta
  --pilot FILE      replaces bin/pilot-discovery
  --only WHICH      plaintext or tls; default both

Exit code 1 if a figure differs from the formula by more than 15 %.
`;

const maxDifference = 0.15;

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '50,200' },
    streams: { type: 'string', default: '500,2000,5000' },
    protocol: { type: 'string', default: 'delta' },
    only: { type: 'string' },
    pilot: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});

const numbers = (flag: string, text: string): number[] =>
  text.split(',').map((each) => {
    const number = Number(each);
    if (!Number.isInteger(number) || number < 1) throw new Error(`--${flag}: must be integers >= 1, got ${each}`);
    return number;
  });

function choice<Choice extends string>(flag: string, text: string, choices: readonly Choice[]): Choice {
  const chosen = choices.find((name) => name === text);
  if (chosen === undefined) throw new Error(`--${flag}: must be ${choices.join(' or ')}, got ${text}`);
  return chosen;
}

if (values.help) print(usage);
else {
  await exitWith(async () => {
    const protocol = choice('protocol', values.protocol, ['delta', 'sotw']);
    const only = values.only === undefined ? undefined : choice('only', values.only, ['plaintext', 'tls']);
    const misses: string[] = [];
    const errors = await runWithPrograms(async (programs) => {
      print(
        '| services | streams | TLS | served | formula | peak | heap | buffers | disconnected | after a collection | heap alive then |',
      );
      print('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |');
      for (const services of numbers('services', values.services)) {
        for (const streams of numbers('streams', values.streams)) {
          for (const hasTls of [false, true]) {
            if (only !== undefined && only !== (hasTls ? 'tls' : 'plaintext')) continue;
            const memory = await measureConnectionMemory(programs, {
              services,
              streams,
              hasTls,
              protocol,
              pilot: values.pilot,
            });
            const mesh = {
              proxies: streams,
              services,
              seen: services,
              namespaces: 1,
              endpointChanges: 0,
              routeChanges: 0,
            };
            const { residentMib } = replicaCost({ ...mesh, hasTls }, streams);
            const { servedMib, peakMib, heapMib, buffersMib, disconnectedMib, restMib, restHeapMib } = memory;
            const figures = [
              servedMib,
              residentMib,
              peakMib,
              heapMib,
              buffersMib,
              disconnectedMib,
              restMib,
              restHeapMib,
            ];
            const mib = figures.map((value) => `${Math.round(value)} MiB`);
            const row = [services, streams, hasTls ? 'yes' : 'no', ...mib].join(' | ');
            print(`| ${row} |`);
            if (Math.abs(servedMib / residentMib - 1) > maxDifference)
              misses.push(`not within 15 % of the formula: ${row}`);
          }
        }
      }
    });
    for (const line of [...misses, ...errors]) print(line);
    return misses.length + errors.length === 0 ? 0 : 1;
  });
}
