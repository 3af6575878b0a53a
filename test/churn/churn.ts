/** `npm run test:churn`: ten minutes of continuous changes; see the usage. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { ProxyDescription } from '../../src/discovery/monitor/debug/proxy-description.ts';
import { defaultRemovalDelayMs } from '../../src/discovery/xds/ads-limits.ts';
import { maxListenerWarmingMs } from '../../src/discovery/xds/rollout/draining-listeners.ts';
import { exitWith, integerFlag, print } from '../bench/bench-run.ts';
import { cpuTimeMs } from '../bench/cpu-time.ts';
import { memoryOf } from '../bench/memory-usage.ts';
import { type Programs, runWithPrograms } from '../bench/programs.ts';
import { collectedMemory } from '../bench/push/collected-memory.ts';
import { type PilotServer, startPilot, waitForPort } from '../bench/push/servers.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Inspector } from '../harness/inspector.ts';
import { Changes, type ChurnChange, ChurnMesh, randomOf } from './churn-mesh.ts';
import { busyNamespaces, type ChurnModel, changeKinds, namespaces } from './churn-model.ts';
import { ChurnProxies, drainMs, holdingsOf, mayKeep, proxyName } from './churn-proxies.ts';
import { limitedClusters } from './fetch-limits.ts';
import { growthProblems, growthRule, hostDifferences, type MemorySample, minCheckedMs } from './final-checks.ts';
import { Oracle } from './oracle.ts';
import { scheduledTime } from './scheduled-time.ts';

const usage = `Usage: npm run test:churn -- [--minutes M] [--services N] [--proxies N] [--changes N] [--seed N]
                            [--removal-delay MS] [--pilot FILE]

Runs pilot-discovery on a directory of ${namespaces.length} namespaces with changes of endpoints, routes, destination rules, services, their
exports, gateway routes and Sidecar objects, and proxies that disconnect, reconnect, stop reading and
reject. A change that affects the proxy must explain each response, the effect of each change must arrive at each affected
proxy, in the end each must have the resources of a new proxy and see exactly the visible services, and memory
must not have grown (checked from ${minCheckedMs / 60_000} minutes on): ${growthRule}.

  --minutes M    default 10; 0.5 is half a minute
  --services N   default 1000, in ${namespaces.length} namespaces
  --proxies N    default 300
  --changes N    changes per second, default 20
  --seed N       seed of changes and disturbances
  --removal-delay MS
                 PILOT_XDS_CLUSTER_REMOVAL_DELAY, default 5000
  --pilot FILE   replaces bin/pilot-discovery

Exit code 1 after a failure, with the proxies and resources; the trace is saved.
`;

/** The default debounce, but with a lower maximum: continuous changes would be pushed only every ten seconds. */
const debounce = '100ms';
const maxDebounce = '500ms';
const disturbancesPerSecond = 3;
/** Added to the debounce and the batching of file events. */
const singleEveryMs = 260;
/** Number of namespaces that contains each kind of Sidecar object. */
const singleNamespaces = 7;
/** Garbage collections stop the server, so they are rare, and rarer if they take long. */
const memoryEveryMs = 12_000;
const collectionShare = 0.05;
const progressEveryMs = 30_000;
/**
 * Maximum delay of the removal of an unrouted cluster after its change: steps of the removal delay while the new
 * listener may warm and the old one drains, plus one each for a step in progress, for requests in flight, for another
 * response, and for a busy machine.
 */
const removalLagMs = (removalDelayMs: number): number =>
  (Math.ceil((drainMs + maxListenerWarmingMs) / removalDelayMs) + 4) * removalDelayMs;
/** Time without a response after which a proxy is idle, in addition to the lag of removals. */
const quietMs = 1_500;
const timeoutMs = 60_000;
/** Maximum printed lines of each kind of error. */
const maxPrintedLines = 10;

interface Settings {
  readonly minutes: number;
  readonly services: number;
  readonly proxies: number;
  readonly changes: number;
  readonly seed: number;
  readonly removalDelayMs: number;
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
      'removal-delay': { type: 'string' },
      pilot: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Error(`--minutes: expected a number above 0, got ${values.minutes}`);
  return {
    minutes,
    services: integerFlag('services', values.services, 1_000),
    proxies: integerFlag('proxies', values.proxies, 300),
    changes: integerFlag('changes', values.changes, 20),
    seed: integerFlag('seed', values.seed, 1 + (Date.now() % 1_000_000)),
    removalDelayMs: integerFlag('removal-delay', values['removal-delay'], defaultRemovalDelayMs),
    pilot: values.pilot,
  };
}

async function churn(programs: Programs, settings: Settings): Promise<string[]> {
  const { removalDelayMs } = settings;
  const lagMs = removalLagMs(removalDelayMs);
  const servicesEach = Math.ceil(settings.services / namespaces.length);
  const mesh = new ChurnMesh(programs.root, servicesEach);
  const [inspectorPort] = await freePorts(1);
  const server = await startPilot(programs, mesh, {
    debounce,
    // The trace of a failure is fetched without a token.
    args: ['--debugger', 'open'],
    executable: settings.pilot,
    env: {
      NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}`,
      PILOT_DEBOUNCE_MAX: maxDebounce,
      PILOT_XDS_CLUSTER_REMOVAL_DELAY: `${removalDelayMs}ms`,
    },
  });
  await waitForPort(server);
  const oracle = new Oracle(lagMs);
  const now = scheduledTime(server.pid);
  const proxies = new ChurnProxies(server.port, settings.proxies, oracle, now);
  programs.onEnd(async () => proxies.close());
  const settled = (step: string): Promise<unknown> =>
    eventually(step, () => proxies.isQuiet(quietMs + lagMs), {
      deadlineMs: timeoutMs + lagMs,
      hopeless: () => server.hopeless(),
    });
  proxies.openAll();
  await settled('every proxy has everything');
  const inspector = await Inspector.attach(inspectorPort!);
  const run = new ChurnRun({ settings, mesh, proxies, server, inspector, oracle, now, servicesEach });
  await run.forMs(settings.minutes * 60_000);
  await settled('every proxy is back, and nothing comes any more');
  proxies.checkEffects(true);
  proxies.checkRoutes(true);
  print('single changes …');
  const missed: string[] = [];
  for (const change of run.singleChanges()) {
    await change();
    await settled('nothing comes any more after single changes');
    proxies.checkEffects(true);
    proxies.checkRoutes(true);
    for (const proxy of proxies.samples()) missed.push(...(await proxies.compareWithFresh(proxy, timeoutMs)));
  }
  print('comparing each proxy with a fresh one …');
  const givenUp = await givenUpClusters(server);
  for (const proxy of proxies.all) {
    const hosts = run.model.hostsSeen(proxy.namespace);
    const known = givenUp.get(proxyName(proxy));
    // A cluster that is no longer configured is kept unchanged.
    const isExpected = (cluster: string): boolean =>
      known?.has(cluster) === true || !hosts.includes(cluster.split('|')[3]!);
    const limited = limitedClusters(proxy.sidecar.resources('CDS')).filter((cluster) => !isExpected(cluster));
    missed.push(...limited.map((cluster) => `${proxy.name}: CDS ${cluster} has a time limit, and is not given up`));
    missed.push(...(await proxies.compareWithFresh(proxy, timeoutMs)));
    const { name, sidecar } = proxy;
    const has = holdingsOf(sidecar).CDS!.keys();
    const differing = hostDifferences(has, hosts, (cluster) => mayKeep(proxy, cluster));
    missed.push(...differing.map((line) => `${name}: ${line}`));
  }
  const problems = run.problems(missed);
  if (problems.length > 0) await saveTrace(programs, server, settings.seed);
  inspector.close();
  proxies.close();
  await server.stop();
  return problems;
}

interface ChurnWorld {
  readonly settings: Settings;
  readonly mesh: ChurnMesh;
  readonly proxies: ChurnProxies;
  readonly server: PilotServer;
  readonly inspector: Inspector;
  readonly oracle: Oracle;
  readonly now: () => number;
  readonly servicesEach: number;
}

/** Applies changes and disturbances, and samples the server's memory. */
class ChurnRun {
  readonly #settings: Settings;
  readonly #mesh: ChurnMesh;
  readonly #proxies: ChurnProxies;
  readonly #server: PilotServer;
  readonly #inspector: Inspector;
  readonly #oracle: Oracle;
  readonly #now: () => number;
  readonly #changes: Changes;
  readonly #random: () => number;
  readonly #memory: MemorySample[] = [];
  #changeCount = 0;
  #lastedMs = 0;
  #cpuMs = 0;

  constructor({ settings, mesh, proxies, server, inspector, oracle, now, servicesEach }: ChurnWorld) {
    this.#settings = settings;
    this.#mesh = mesh;
    this.#proxies = proxies;
    this.#server = server;
    this.#inspector = inspector;
    this.#oracle = oracle;
    this.#now = now;
    this.#changes = new Changes(settings.seed, servicesEach);
    this.#random = randomOf(settings.seed + 1);
  }

  get model(): ChurnModel {
    return this.#changes.model;
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
        // Exponentially distributed intervals, like those of independent events.
        nextChange += (-Math.log(1 - this.#random()) * 1_000) / this.#settings.changes;
      }
      if (elapsed() >= nextTrouble) {
        this.#disturb();
        this.#proxies.checkEffects();
        this.#proxies.checkRoutes();
        nextTrouble += 1_000 / disturbancesPerSecond;
      }
      if (elapsed() >= nextMemory) {
        const begun = elapsed();
        await this.#sampleMemory(begun);
        nextMemory = elapsed() + Math.max(memoryEveryMs, (elapsed() - begun) / collectionShare);
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
   * Makes one change of each type in some namespaces, sequentially for each kind of Sidecar object. The pause makes each change a separate push, so
   * that no later change can produce its effect.
   */
  *singleChanges(): Generator<() => Promise<void>> {
    for (const kind of changeKinds) {
      yield async () => {
        for (const namespace of busyNamespaces.slice(0, singleNamespaces)) {
          const change = this.#changes.nextIn(namespace, kind);
          if (change !== undefined) this.#apply(change);
          await sleep(singleEveryMs);
        }
      };
    }
  }

  /** Returns all errors of the run; prints the figures. */
  problems(missed: readonly string[]): string[] {
    const { lost, unexplained, late, missed: notSent, unordered, judged, responses } = this.#proxies.counts;
    print(`${this.#figures()}; ${((this.#cpuMs / this.#lastedMs) * 100).toFixed(0)} % of a core`);
    const firstLines = (label: string, lines: readonly string[]): string[] =>
      lines.length === 0
        ? []
        : [`${lines.length} × ${label}:`, ...lines.slice(0, maxPrintedLines).map((line) => `  ${line}`)];
    return [
      ...firstLines('an update was missed', missed),
      ...firstLines('a change did not come to a proxy that it concerns', notSent),
      ...firstLines('a proxy was sent what does not concern it', unexplained),
      ...firstLines('an update came late', late),
      ...firstLines('clusters and routes came in the wrong order', unordered),
      ...firstLines('a stream was lost', lost),
      ...growthProblems(this.#memory, this.#lastedMs),
      ...(this.#changeCount > 0 && judged > 0 && responses > this.#proxies.all.length * 4 ? [] : ['nothing happened']),
    ];
  }

  #change(elapsedMs: number): void {
    this.#apply(this.#changes.next(elapsedMs));
  }

  #apply(change: ChurnChange): void {
    this.#mesh.apply(change);
    this.#oracle.changed(change.affected, this.#now());
    this.#changeCount++;
  }

  #disturb(): void {
    const { all } = this.#proxies;
    const proxy = all[Math.floor(this.#random() * all.length)]!;
    if (proxy.disturbance !== 'none' || !proxy.sidecar.isFull) return;
    const which = this.#random();
    const ms = 500 + this.#random() * 5_000;
    if (which < 0.4) this.#proxies.leave(proxy, ms);
    else if (which < 0.7) this.#proxies.stall(proxy, ms);
    else this.#proxies.reject(proxy);
  }

  async #sampleMemory(atMs: number): Promise<void> {
    const { rssMib } = memoryOf(this.#server.pid);
    const { heapMib } = await collectedMemory(this.#server.pid, this.#inspector);
    this.#memory.push({ atMs, rssMib, heapMib });
  }

  #figures(): string {
    const { responses, redundant, rejected, left, stalled, givenUp, judged } = this.#proxies.counts;
    const { rssMib = 0, heapMib = 0 } = this.#memory.at(-1) ?? {};
    return (
      `${this.#changeCount} changes, ${responses} responses (${redundant} with nothing new; ${judged} looked for by themselves), ${left} proxies left, ${stalled} stalled, ` +
      `${rejected} responses rejected, ${givenUp} clusters given up; ${rssMib.toFixed(0)} MiB resident, ${heapMib.toFixed(1)} MiB alive`
    );
  }
}

/** Clusters that the server has given up, by proxy name. */
async function givenUpClusters({ httpPort }: PilotServer): Promise<Map<string, ReadonlySet<string>>> {
  const response = await fetch(`http://127.0.0.1:${httpPort}/debug/proxyz`);
  const proxies = (await response.json()) as ProxyDescription[];
  // An ID contains the name: TYPE~ADDRESS~NAME~DOMAIN.
  return new Map(
    proxies.map(({ connectionId, types }) => [
      connectionId.split('~')[2]!,
      new Set(types.flatMap(({ givenUp = [] }) => givenUp)),
    ]),
  );
}

/** Saves the server's records at the time of the failure. */
async function saveTrace(programs: Programs, { httpPort }: PilotServer, seed: number): Promise<void> {
  const traceResponse = await fetch(`http://127.0.0.1:${httpPort}/debug/trace?follow=false`);
  const file = join(programs.root, `churn-${seed}.trace.ndjson`);
  writeFileSync(file, await traceResponse.text());
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
