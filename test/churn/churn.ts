/** `npm run test:churn`: ten minutes of continuous changes; see the usage. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { ProxyDescription } from '../../src/discovery/monitor/debug/proxy-description.ts';
import { defaultRemovalDelayMs } from '../../src/discovery/xds/ads-limits.ts';
import { maxListenerWarmingMs } from '../../src/discovery/xds/rollout/draining-listeners.ts';
import { exitWith, integerFlag, print } from '../bench/bench-run.ts';
import { type Programs, runWithPrograms } from '../bench/programs.ts';
import { eventually } from '../harness/eventually.ts';
import { Changes, type ChurnChange, ChurnMesh, randomOf } from './churn-mesh.ts';
import { busyNamespaces, type ChurnModel, changeKinds, namespaces, visibilityOf } from './churn-model.ts';
import { ChurnProxies, drainMs } from './churn-proxies.ts';
import { holdingsOf, mayKeep, proxyName } from './churn-proxy.ts';
import { limitedClusters } from './fetch-limits.ts';
import { growthOverLives, growthProblems, growthRule, hostDifferences, minCheckedMs } from './final-checks.ts';
import { lateMs, Oracle } from './oracle.ts';
import { scheduledTime } from './scheduled-time.ts';
import { ServerLives } from './server-lives.ts';

const usage = `Usage: npm run test:churn -- [--minutes M] [--services N] [--proxies N] [--changes N] [--seed N]
                            [--removal-delay MS] [--restart-every S] [--pilot FILE]

Runs pilot-discovery on a directory of ${namespaces.length} namespaces with changes of endpoints, routes, destination rules, services, their
exports, gateway routes and Sidecar objects, and proxies that disconnect, reconnect, stop reading and
reject. A change that affects the proxy must explain each response, the effect of each change must arrive at each affected
proxy, in the end each must have the resources of a new proxy and see exactly the visible services, and memory and open descriptors
must not have grown (checked from ${minCheckedMs / 60_000} minutes on, and over restarts): ${growthRule}.

With restarts, the first responses to returning proxies must contain only changes since shortly before their streams ended, and each proxy
must have the resources of a new proxy before and after each restart.

  --minutes M    default 10; 0.5 is half a minute
  --services N   default 1000, in ${namespaces.length} namespaces
  --proxies N    default 300
  --changes N    changes per second, default 20
  --seed N       seed of changes and disturbances
  --removal-delay MS
                 PILOT_XDS_CLUSTER_REMOVAL_DELAY, default 5000
  --restart-every S
                 stops pilot-discovery in order every S seconds and starts it again at the same ports; default: never
  --pilot FILE   replaces bin/pilot-discovery

Exit code 1 after a failure, with the proxies and resources; the trace is saved.
`;

/** The default debounce, but with a lower maximum: continuous changes would be pushed only every ten seconds. */
const debounce = '100ms';
const maxDebounce = '500ms';
/** Disturbances per second: each proxy has time for the removal of clusters, which a reconnect delays. */
const disturbancesOf = (proxies: number): number => Math.max(1, proxies / 100);
/** Added to the debounce and the batching of file events. */
const singleEveryMs = 260;
/** One namespace for each kind of Sidecar object. */
const singleNamespaces = busyNamespaces.filter(
  (namespace, index) =>
    index === busyNamespaces.findIndex((other) => visibilityOf(other).sees === visibilityOf(namespace).sees),
);
/** Garbage collections stop the server, so they are rare, and rarer if they take long. */
const maxMemoryEveryMs = 12_000;
const samplesOfLife = 6;
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
const pollEveryMs = 100;
/** Maximum printed lines of each kind of error. */
const maxPrintedLines = 10;

interface Settings {
  readonly minutes: number;
  readonly services: number;
  readonly proxies: number;
  readonly changes: number;
  readonly seed: number;
  readonly removalDelayMs: number;
  readonly restartEveryMs: number | undefined;
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
      'restart-every': { type: 'string' },
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
    restartEveryMs:
      values['restart-every'] === undefined
        ? undefined
        : integerFlag('restart-every', values['restart-every'], 0) * 1_000,
    pilot: values.pilot,
  };
}

async function churn(programs: Programs, settings: Settings): Promise<string[]> {
  const { removalDelayMs } = settings;
  const lagMs = removalLagMs(removalDelayMs);
  const servicesEach = Math.ceil(settings.services / namespaces.length);
  const mesh = new ChurnMesh(programs.root, servicesEach);
  const server = await ServerLives.start(programs, mesh, {
    debounce,
    // The trace of a failure is fetched without a token.
    args: ['--debugger', 'open'],
    executable: settings.pilot,
    env: { PILOT_DEBOUNCE_MAX: maxDebounce, PILOT_XDS_CLUSTER_REMOVAL_DELAY: `${removalDelayMs}ms` },
  });
  const oracle = new Oracle(lagMs);
  const now = scheduledTime(() => server.pid);
  const proxies = new ChurnProxies(server.port, settings.proxies, oracle, now);
  programs.onEnd(async () => proxies.close());
  const settled = (isSettled: () => boolean | Promise<boolean>): Promise<unknown> =>
    eventually('every proxy is back, and has the effects of all changes', isSettled, {
      ...{ deadlineMs: timeoutMs + lagMs, everyMs: pollEveryMs },
      hopeless: () => server.hopeless(),
    });
  const isQuiet = (): boolean => proxies.isQuiet(quietMs + lagMs);
  const isDone = (): boolean => (proxies.isQuiet(quietMs + 2 * removalDelayMs) && proxies.hasAllEffects()) || isQuiet();
  /** Checks the effects of all changes. Only if a proxy differs for longer, it waits for the longest possible removal. */
  const check = async (differences: () => Promise<string[]>): Promise<string[]> => {
    await settled(isDone);
    proxies.checkEffects(true);
    proxies.checkRoutes(true);
    let found: string[] = [];
    await settled(async () => {
      const wasQuiet = isQuiet();
      found = await differences();
      return found.length === 0 || wasQuiet;
    });
    return found;
  };
  proxies.openAll();
  await settled(() => proxies.isQuiet(quietMs));
  const run = new ChurnRun({ settings, mesh, proxies, server, oracle, servicesEach, now });
  const missed = await run.forMs(settings.minutes * 60_000, lateMs + lagMs);
  await settled(isDone);
  const compareSamples = (): Promise<string[]> => proxies.compareAll(proxies.samples(), timeoutMs);
  // Clusters that are not removed yet; none of them may be left in the end.
  const kept = new Set((await compareSamples()).filter((line) => line.endsWith(' should be removed')));
  print('single changes …');
  for (const change of run.singleChanges()) {
    await change();
    missed.push(...(await check(async () => (await compareSamples()).filter((line) => !kept.has(line)))));
  }
  print('comparing each proxy with a fresh one …');
  missed.push(
    ...(await check(async () => [
      ...(await wrongClusters(proxies, run.model, server)),
      ...(await proxies.compareAll(proxies.all, timeoutMs)),
    ])),
  );
  const problems = run.problems(missed);
  if (problems.length > 0) await saveTrace(programs, server, settings.seed);
  proxies.close();
  await server.stop();
  return problems;
}

interface ChurnWorld {
  readonly settings: Settings;
  readonly mesh: ChurnMesh;
  readonly proxies: ChurnProxies;
  readonly server: ServerLives;
  readonly oracle: Oracle;
  readonly now: () => number;
  readonly servicesEach: number;
}

/** Applies changes and disturbances, and samples the server's memory. */
class ChurnRun {
  readonly #settings: Settings;
  readonly #mesh: ChurnMesh;
  readonly #proxies: ChurnProxies;
  readonly #server: ServerLives;
  readonly #oracle: Oracle;
  readonly #now: () => number;
  readonly #changes: Changes;
  readonly #random: () => number;
  /** Differences between proxies and fresh ones around restarts. */
  readonly #missed: string[] = [];
  readonly #printed = new Set<string>();
  #isDisturbing = true;
  #changeCount = 0;
  #lastedMs = 0;
  #cpuMs = 0;

  constructor({ settings, mesh, proxies, server, oracle, now, servicesEach }: ChurnWorld) {
    this.#settings = settings;
    this.#mesh = mesh;
    this.#proxies = proxies;
    this.#server = server;
    this.#oracle = oracle;
    this.#now = now;
    this.#changes = new Changes(settings.seed, servicesEach);
    this.#random = randomOf(settings.seed + 1);
  }

  get model(): ChurnModel {
    return this.#changes.model;
  }

  /**
   * @param updateMs time in which each update must arrive
   * @returns differences between proxies and fresh ones around restarts
   */
  async forMs(ms: number, updateMs: number): Promise<string[]> {
    const { restartEveryMs = Number.POSITIVE_INFINITY } = this.#settings;
    const startedAt = performance.now();
    const cpuBefore = this.#server.cpuMs;
    const elapsed = (): number => performance.now() - startedAt;
    let nextTrouble = 0;
    let nextMemory = 0;
    let nextProgress = progressEveryMs;
    let nextChange = 0;
    let nextRestart = restartEveryMs;
    let restarting: Promise<void> | undefined;
    let failure: unknown;
    const memoryEveryMs = Math.min(maxMemoryEveryMs, restartEveryMs / samplesOfLife);
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
        nextTrouble += 1_000 / disturbancesOf(this.#settings.proxies);
      }
      if (elapsed() >= nextMemory) {
        const begun = elapsed();
        await this.#server.sample();
        nextMemory = elapsed() + Math.max(memoryEveryMs, (elapsed() - begun) / collectionShare);
      }
      if (elapsed() >= nextProgress) {
        print(`  ${Math.round(elapsed() / 1_000)} s: ${this.#figures()}`);
        this.#printErrors();
        nextProgress += progressEveryMs;
      }
      // The last process serves until the end.
      if (restarting === undefined && elapsed() >= nextRestart && elapsed() + restartEveryMs / 2 < ms) {
        restarting = this.#restart(elapsed(), updateMs)
          .catch((error: unknown) => {
            failure = error;
          })
          .finally(() => {
            restarting = undefined;
          });
        nextRestart += restartEveryMs;
      }
      if (failure !== undefined) throw failure;
      await sleep(5);
    }
    await restarting;
    if (failure !== undefined) throw failure;
    this.#lastedMs = elapsed();
    this.#cpuMs = this.#server.cpuMs - cpuBefore;
    return this.#missed;
  }

  /** Restarts the server, while changes continue. */
  async #restart(elapsedMs: number, updateMs: number): Promise<void> {
    const compare = async (): Promise<void> => {
      this.#isDisturbing = false;
      const missed = await this.#proxies.lastingDifferences(updateMs, timeoutMs);
      this.#missed.push(...missed);
      this.#isDisturbing = true;
    };
    await compare();
    let downMs = 0;
    const begunMs = performance.now();
    await this.#proxies.reconnectDuring(async (stopped) => {
      downMs = await this.#server.restart(stopped);
    }, timeoutMs);
    const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
    const backMs = performance.now() - begunMs - downMs;
    print(
      `  ${Math.round(elapsedMs / 1_000)} s: restart in ${seconds(downMs)}, all proxies back ${seconds(backMs)} later`,
    );
    await compare();
  }

  /**
   * Makes one change of each type in some namespaces, sequentially for each kind of Sidecar object. The pause makes each change a separate push, so
   * that no later change can produce its effect.
   */
  *singleChanges(): Generator<() => Promise<void>> {
    for (const kind of changeKinds) {
      yield async () => {
        for (const namespace of singleNamespaces) {
          const change = this.#changes.nextIn(namespace, kind);
          if (change !== undefined) this.#apply(change);
          await sleep(singleEveryMs);
        }
      };
    }
  }

  /** Returns all errors of the run; prints the figures. */
  problems(missed: readonly string[]): string[] {
    const { restartEveryMs } = this.#settings;
    const lives = this.#server.samples;
    const { lost, unexplained, late, missed: notSent, unordered, checkedCount, responses } = this.#proxies.counts;
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
      ...(restartEveryMs === undefined
        ? growthProblems(lives[0]!, this.#lastedMs)
        : growthOverLives(lives, restartEveryMs)),
      ...(this.#changeCount > 0 && checkedCount > 0 && responses > this.#proxies.all.length * 4
        ? []
        : ['nothing happened']),
    ];
  }

  #change(elapsedMs: number): void {
    this.#apply(this.#changes.next(elapsedMs));
  }

  #apply(change: ChurnChange): void {
    this.#mesh.apply(change);
    this.#oracle.recordChange(change.affected, this.#now());
    this.#changeCount++;
  }

  #disturb(): void {
    const { all } = this.#proxies;
    if (!this.#isDisturbing) return;
    const proxy = all[Math.floor(this.#random() * all.length)]!;
    if (proxy.disturbance !== 'none' || !proxy.sidecar.isFull) return;
    const which = this.#random();
    const ms = 500 + this.#random() * 5_000;
    if (which < 0.4) this.#proxies.leave(proxy, ms);
    else if (which < 0.7) this.#proxies.stall(proxy, ms);
    else this.#proxies.reject(proxy);
  }

  /** All errors so far, in no particular order. */
  get #errors(): string[] {
    const { lost, unexplained, late, missed, unordered } = this.#proxies.counts;
    return [lost, unexplained, late, missed, unordered, this.#missed].flat();
  }

  /** Prints errors that were not printed before, so that a long run need not end first. */
  #printErrors(): void {
    const added = this.#errors.filter((line) => !this.#printed.has(line)).slice(0, maxPrintedLines);
    for (const line of added) {
      this.#printed.add(line);
      print(`    ${line}`);
    }
  }

  #figures(): string {
    const { responses, redundant, rejected, departedCount, stalled, givenUp, checkedCount } = this.#proxies.counts;
    const { rssMib = 0, heapMib = 0, descriptors = 0 } = this.#server.samples.at(-1)?.at(-1) ?? {};
    return (
      `${this.#changeCount} changes, ${responses} responses (${redundant} with nothing new; ${checkedCount} looked for by themselves), ${departedCount} proxies left, ${stalled} stalled, ` +
      `${rejected} responses rejected, ${givenUp} clusters given up; ${rssMib.toFixed(0)} MiB resident, ${heapMib.toFixed(1)} MiB alive, ${descriptors} descriptors; ${this.#errors.length} errors`
    );
  }
}

/** Clusters with a fetch timeout that were not given up, and services that proxies see or lack contrary to their scope. */
async function wrongClusters(proxies: ChurnProxies, model: ChurnModel, server: ServerLives): Promise<string[]> {
  const givenUp = await givenUpClusters(server);
  return proxies.all.flatMap((proxy) => {
    const { name, sidecar, namespace } = proxy;
    const hosts = model.visibleHosts(namespace);
    const known = givenUp.get(proxyName(proxy));
    // A cluster that is no longer configured is kept unchanged.
    const isExpected = (cluster: string): boolean =>
      known?.has(cluster) === true || !hosts.includes(cluster.split('|')[3]!);
    const limited = limitedClusters(sidecar.resources('CDS')).filter((cluster) => !isExpected(cluster));
    const has = holdingsOf(sidecar).CDS!.keys();
    return [
      ...limited.map((cluster) => `${name}: CDS ${cluster} has a time limit, and is not given up`),
      ...hostDifferences(has, hosts, (cluster) => mayKeep(proxy, cluster)).map((line) => `${name}: ${line}`),
    ];
  });
}

/** Clusters that the server has given up, by proxy name. */
async function givenUpClusters({ httpPort }: ServerLives): Promise<Map<string, ReadonlySet<string>>> {
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
async function saveTrace(programs: Programs, { httpPort }: ServerLives, seed: number): Promise<void> {
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
