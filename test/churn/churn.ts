/** `npm run test:churn`: ten minutes in which everything changes; see the usage. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { exitWith, print, wholeNumber } from '../bench/bench-run.ts';
import { cpuTimeMs } from '../bench/cpu-time.ts';
import { memoryOf } from '../bench/memory-usage.ts';
import { type Programs, runWithPrograms } from '../bench/programs.ts';
import { type PilotServer, startPilot, waitForPort } from '../bench/push/servers.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Inspector } from '../harness/inspector.ts';
import { busyNamespaces, type Change, Changes, ChurnMesh, changeKinds, namespaces, randomOf } from './churn-mesh.ts';
import { ChurnProxies } from './churn-proxies.ts';
import { growthProblems, growthRule, judgedFromMs, type MemorySample } from './verdict.ts';

const usage = `Usage: npm run test:churn -- [--minutes M] [--services N] [--proxies N] [--changes N] [--seed N] [--pilot FILE]

A real pilot-discovery over a directory in which endpoints, routes, destination rules and services change, with proxies that
leave, come back, stop reading and reject. In the end each proxy must have what a fresh one is given, proxies whose namespace
rested must have been sent nothing, and memory must not have grown (judged from ${judgedFromMs / 60_000} minutes on):
${growthRule}.

  --minutes M    default 10; 0.5 is half a minute
  --services N   default 1000, in ${namespaces.length} namespaces
  --proxies N    default 300
  --changes N    a second, default 20
  --seed N       of changes and troubles
  --pilot FILE   another pilot-discovery than the one in bin/

Exit code 1 when something was wrong: proxies and resources are named, and the trace is left.
`;

/** As people run it, but with an end to waiting: changes that never cease would be pushed every ten seconds only. */
const debounce = '100ms';
const longestDebounce = '500ms';
const troublesPerSecond = 3;
/** Beyond the debounce and the time in which events of files are put together. */
const singleEveryMs = 260;
const memoryEveryMs = 5_000;
const progressEveryMs = 30_000;
const quietMs = 1_500;
const timeoutMs = 30_000;
/** Of what is wrong: so many lines of each kind are printed. */
const linesShown = 10;

interface Settings {
  readonly minutes: number;
  readonly services: number;
  readonly proxies: number;
  readonly changes: number;
  readonly seed: number;
  readonly pilot: string | undefined;
}

function readSettings(): Settings | undefined {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      services: { type: 'string' },
      proxies: { type: 'string' },
      changes: { type: 'string' },
      seed: { type: 'string' },
      pilot: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Error(`--minutes: expected a number above 0, got ${values.minutes}`);
  return {
    minutes,
    services: wholeNumber('services', values.services, 1_000),
    proxies: wholeNumber('proxies', values.proxies, 300),
    changes: wholeNumber('changes', values.changes, 20),
    seed: wholeNumber('seed', values.seed, 1 + (Date.now() % 1_000_000)),
    pilot: values.pilot,
  };
}

async function churn(programs: Programs, settings: Settings): Promise<string[]> {
  const servicesEach = Math.ceil(settings.services / namespaces.length);
  const mesh = new ChurnMesh(programs.root, servicesEach);
  const [inspectorPort] = await freePorts(1);
  const server = await startPilot(programs, mesh, {
    debounce,
    executable: settings.pilot,
    env: { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}`, PILOT_DEBOUNCE_MAX: longestDebounce },
  });
  await waitForPort(server);
  const lastChange = new Map<string, number>();
  const proxies = new ChurnProxies(
    server.port,
    settings.proxies,
    (namespace) => lastChange.get(namespace) ?? Number.NEGATIVE_INFINITY,
  );
  programs.onEnd(async () => proxies.close());
  const settled = (what: string): Promise<unknown> =>
    eventually(what, () => proxies.isQuiet(quietMs), { deadlineMs: timeoutMs, hopeless: () => server.hopeless() });
  proxies.openAll();
  await settled('every proxy has everything');
  const inspector = await Inspector.attach(inspectorPort!);
  const run = new ChurnRun(settings, mesh, proxies, server, inspector, lastChange, servicesEach);
  await run.forMs(settings.minutes * 60_000);
  await settled('every proxy is back, and nothing comes any more');
  print('single changes …');
  const missed: string[] = [];
  for (const change of run.singleChanges()) {
    await change();
    await settled('nothing comes any more after single changes');
    for (const proxy of proxies.samples()) missed.push(...(await proxies.compareWithFresh(proxy, timeoutMs)));
  }
  print('comparing each proxy with a fresh one …');
  for (const proxy of proxies.all) missed.push(...(await proxies.compareWithFresh(proxy, timeoutMs)));
  const problems = run.problems(missed);
  if (problems.length > 0) await leaveTrace(programs, server, settings.seed);
  inspector.close();
  proxies.close();
  await server.stop();
  return problems;
}

/** The changes, the troubles and the looks at the server's memory. */
class ChurnRun {
  readonly #settings: Settings;
  readonly #mesh: ChurnMesh;
  readonly #proxies: ChurnProxies;
  readonly #server: PilotServer;
  readonly #inspector: Inspector;
  readonly #lastChange: Map<string, number>;
  readonly #changes: Changes;
  readonly #random: () => number;
  readonly #memory: MemorySample[] = [];
  #made = 0;
  #lastedMs = 0;
  #cpuMs = 0;

  constructor(
    settings: Settings,
    mesh: ChurnMesh,
    proxies: ChurnProxies,
    server: PilotServer,
    inspector: Inspector,
    lastChange: Map<string, number>,
    servicesEach: number,
  ) {
    this.#settings = settings;
    this.#mesh = mesh;
    this.#proxies = proxies;
    this.#server = server;
    this.#inspector = inspector;
    this.#lastChange = lastChange;
    this.#changes = new Changes(settings.seed, servicesEach);
    this.#random = randomOf(settings.seed + 1);
  }

  async forMs(ms: number): Promise<void> {
    const startedAt = performance.now();
    const cpuBefore = cpuTimeMs(this.#server.pid);
    const elapsed = (): number => performance.now() - startedAt;
    let nextTrouble = 0;
    let nextMemory = 0;
    let nextProgress = progressEveryMs;
    let nextChange = 0;
    while (elapsed() < ms) {
      const reason = this.#server.hopeless();
      if (reason !== undefined) throw new Error(reason);
      while (nextChange <= elapsed()) {
        this.#change(elapsed());
        // As independent events come: in bursts, and with pauses.
        nextChange += (-Math.log(1 - this.#random()) * 1_000) / this.#settings.changes;
      }
      if (elapsed() >= nextTrouble) {
        this.#trouble();
        nextTrouble += 1_000 / troublesPerSecond;
      }
      if (elapsed() >= nextMemory) {
        await this.#lookAtMemory(elapsed());
        nextMemory += memoryEveryMs;
      }
      if (elapsed() >= nextProgress) {
        print(`  ${Math.round(elapsed() / 1_000)} s: ${this.#figures()}`);
        nextProgress += progressEveryMs;
      }
      await sleep(5);
    }
    this.#lastedMs = elapsed();
    this.#cpuMs = cpuTimeMs(this.#server.pid) - cpuBefore;
  }

  /**
   * One change in each namespace, with a pause that makes it a push of its own: what it should have brought is brought by
   * nothing that comes after it. One step for each kind of change.
   */
  *singleChanges(): Generator<() => Promise<void>> {
    for (const kind of changeKinds) {
      yield async () => {
        for (const namespace of busyNamespaces) {
          const change = this.#changes.nextIn(namespace, kind);
          if (change !== undefined) this.#apply(change);
          await sleep(singleEveryMs);
        }
      };
    }
  }

  /** Everything that was wrong; prints the figures. */
  problems(missed: readonly string[]): string[] {
    const { lost, unconcerned, late } = this.#proxies.counts;
    print(`${this.#figures()}; ${((this.#cpuMs / this.#lastedMs) * 100).toFixed(0)} % of a core`);
    const few = (what: string, lines: readonly string[]): string[] =>
      lines.length === 0
        ? []
        : [`${lines.length} × ${what}:`, ...lines.slice(0, linesShown).map((line) => `  ${line}`)];
    return [
      ...few('an update was missed', missed),
      ...few('a proxy was sent what does not concern it', unconcerned),
      ...few('an update came late', late),
      ...few('a stream was lost', lost),
      ...growthProblems(this.#memory, this.#lastedMs),
      ...(this.#made > 0 && this.#proxies.counts.responses > this.#proxies.all.length * 4 ? [] : ['nothing happened']),
    ];
  }

  #change(elapsedMs: number): void {
    this.#apply(this.#changes.next(elapsedMs));
  }

  #apply(change: Change): void {
    this.#mesh.apply(change);
    this.#lastChange.set(change.namespace, performance.now());
    this.#made++;
  }

  #trouble(): void {
    const { all } = this.#proxies;
    const proxy = all[Math.floor(this.#random() * all.length)]!;
    if (proxy.trouble !== 'none' || !proxy.sidecar.isFull) return;
    const which = this.#random();
    const ms = 500 + this.#random() * 5_000;
    if (which < 0.4) this.#proxies.leave(proxy, ms);
    else if (which < 0.7) this.#proxies.stall(proxy, ms);
    else this.#proxies.reject(proxy);
  }

  async #lookAtMemory(atMs: number): Promise<void> {
    const { rssMib } = memoryOf(this.#server.pid);
    await this.#inspector.call('HeapProfiler.collectGarbage');
    const { usedSize } = (await this.#inspector.call('Runtime.getHeapUsage')) as { usedSize: number };
    this.#memory.push({ atMs, rssMib, heapMib: usedSize / 1024 ** 2 });
  }

  #figures(): string {
    const { responses, redundant, rejected, left, stalled } = this.#proxies.counts;
    const { rssMib = 0, heapMib = 0 } = this.#memory.at(-1) ?? {};
    return (
      `${this.#made} changes, ${responses} responses (${redundant} with nothing new), ${left} proxies left, ${stalled} stalled, ` +
      `${rejected} responses rejected; ${rssMib.toFixed(0)} MiB resident, ${heapMib.toFixed(1)} MiB alive`
    );
  }
}

/** What the server had recorded when something was found to be wrong. */
async function leaveTrace(programs: Programs, { httpPort }: PilotServer, seed: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${httpPort}/debug/trace?follow=false`);
  const file = join(programs.root, `churn-${seed}.trace.ndjson`);
  writeFileSync(file, await answer.text());
  print(`the trace: ${file}`);
}

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings === undefined) {
    process.stdout.write(usage);
    return 0;
  }
  const { minutes, services, proxies, changes, seed } = settings;
  print(`churn: ${minutes} min, ${services} services, ${proxies} proxies, ${changes} changes a second, seed ${seed}`);
  const wrong: string[] = [];
  const errors = await runWithPrograms(async (programs) => {
    wrong.push(...(await churn(programs, settings)));
    if (wrong.length > 0) throw new Error(`churn: FAILED, seed ${seed}`);
  });
  for (const line of [...wrong, ...errors]) print(line);
  if (errors.length > 0) return 1;
  print(`churn: ok, seed ${seed}`);
  return 0;
}

await exitWith(main);
