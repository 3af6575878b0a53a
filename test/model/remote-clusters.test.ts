/** Which remote clusters are watched, and which kubeconfig of each is active (machines/discovery/remote/remote-clusters.machine.ts). */
import { afterEach, expect, it } from 'vitest';
import { type Actor, fromCallback, fromPromise } from 'xstate';
import { apiServerMachine, type PingResult } from '../../machines/discovery/kubernetes/api-server.machine.ts';
import type {
  ClusterSynced,
  ClustersListed,
  ResourceName,
} from '../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { remoteClustersMachine } from '../../machines/discovery/remote/remote-clusters.machine.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { sized } from '../harness/size-of-run.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

/** The chart with responding API servers, and its last publication: `cluster revision`, the active kubeconfig of each cluster. */
class RemoteWorld {
  static readonly instances: RemoteWorld[] = [];
  readonly records: TraceRecord[] = [];
  readonly publications: string[][] = [];
  failure: unknown;
  readonly actor: Actor<typeof remoteClustersMachine>;
  #report: (event: ClustersListed | ClusterSynced) => void = () => {};

  /** @param silently whether no trace is recorded, for many worlds */
  constructor(silently = false) {
    if (!silently) RemoteWorld.instances.push(this);
    const clock = new VirtualClock();
    const recorder = createRecorder({ program: 'pilot-discovery', now: clock.now });
    recorder.observe((record) => this.records.push(record));
    const apiServer = apiServerMachine.provide({
      actors: {
        ping: fromPromise<PingResult, { server: string }>(async () => ({ outcome: 'answered' })),
        watchDefinitions: fromCallback<{ type: never }, { resources: ResourceName[] }>(() => {}),
      },
    });
    const machine = remoteClustersMachine.provide({
      actors: {
        apiServer,
        listClusters: fromCallback<{ type: never }, undefined>(({ sendBack }) => {
          this.#report = sendBack;
        }),
      },
      actions: {
        publishClusters: (_, { clusters }) => {
          const firsts = [...Map.groupBy(clusters, ({ cluster }) => cluster).values()].map(([first]) => first!);
          this.publications.push(firsts.map(({ cluster, revision }) => `${cluster} ${revision}`));
        },
      },
    });
    this.actor = startRoot(machine, {
      ...{ id: 'remote-clusters', input: undefined, clock: clock as never },
      ...(!silently && { recorder }),
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  /** @param clusters cluster and revision, as `cluster revision` */
  list(...clusters: string[]): void {
    const listedClusters = clusters.map((text) => {
      const [cluster = '', revision = ''] = text.split(' ');
      return { cluster, revision, server: `${text} https://${cluster}`, resources: [] };
    });
    this.#report({ type: 'clusters.listed', clusters: listedClusters });
  }

  reportSynced(text: string): void {
    const [cluster = '', revision = ''] = text.split(' ');
    this.#report({ type: 'cluster.synced', cluster, revision });
  }

  get counts(): readonly string[] {
    return this.publications.at(-1) ?? [];
  }

  /** Running charts of API servers. */
  get runningServers(): string[] {
    const { children } = this.actor.getSnapshot() as { children: Record<string, unknown> };
    return Object.keys(children).filter((name) => name.startsWith('api-server-'));
  }
}

eachWorldFollowsTheDiagrams(['remote-clusters', 'api-server'], [], {
  instances: RemoteWorld.instances,
  machine: remoteClustersMachine,
});

let world: RemoteWorld;
afterEach(() => void world.actor.stop());

it('a cluster in a Secret has its own API server actor, which ends with it', () => {
  world = new RemoteWorld();
  world.list('a 1', 'b 2');
  expect(world.runningServers).toEqual(['api-server-1', 'api-server-2']);
  expect(world.counts).toEqual(['a 1', 'b 2']);
  world.reportSynced('a 1');
  world.list('b 2');
  expect(world.runningServers).toEqual(['api-server-2']);
  expect(world.counts).toEqual(['b 2']);
  world.list();
  expect([world.runningServers, world.counts]).toEqual([[], []]);
});

it('another kubeconfig applies after all objects are read with it, and the previous one is used until then', () => {
  world = new RemoteWorld();
  world.list('a 1');
  world.reportSynced('a 1');
  world.list('a 2');
  expect(world.runningServers).toEqual(['api-server-1', 'api-server-2']);
  expect(world.counts).toEqual(['a 1']);
  world.reportSynced('a 2');
  expect(world.runningServers).toEqual(['api-server-2']);
  expect(world.counts).toEqual(['a 2']);
});

it('a kubeconfig that was never active is replaced immediately, and an API server keeps running if its kubeconfig is restored', () => {
  world = new RemoteWorld();
  world.list('a 1');
  world.list('a 2');
  expect([world.runningServers, world.counts]).toEqual([['api-server-2'], ['a 2']]);
  world.reportSynced('a 2');
  world.list('a 3');
  world.list('a 2');
  expect([world.runningServers, world.counts]).toEqual([['api-server-2'], ['a 2']]);
  // A late report of a stopped API server is ignored.
  world.reportSynced('a 3');
  expect(world.counts).toEqual(['a 2']);
});

it('two replacements before a complete read keep the first and the last kubeconfig', () => {
  world = new RemoteWorld();
  world.list('a 1', 'b 9');
  world.reportSynced('a 1');
  world.list('a 2', 'b 9');
  world.list('a 3', 'b 9');
  expect(world.runningServers).toEqual(['api-server-1', 'api-server-2', 'api-server-4']);
  expect(world.counts).toEqual(['a 1', 'b 9']);
  world.reportSynced('a 3');
  expect(world.counts.toSorted()).toEqual(['a 3', 'b 9']);
});

it('a kubeconfig with a completed read is never dropped for a kubeconfig without one, whatever order Secrets change in', () => {
  const lists = [[], ['a 1'], ['a 2'], ['a 1', 'b 1'], ['a 2', 'b 1']];
  const clusterTexts = ['a 1', 'a 2', 'b 1'];
  const maxSteps = sized({ short: 3, full: 4 });
  const steps: readonly (readonly [string, (one: RemoteWorld) => void, readonly string[] | undefined])[] = [
    ...lists.map((list) => [`list ${list}`, (one: RemoteWorld) => one.list(...list), list] as const),
    ...clusterTexts.map(
      (clusterText) =>
        [`synced ${clusterText}`, (one: RemoteWorld) => one.reportSynced(clusterText), undefined] as const,
    ),
  ];
  const clusterOf = (text: string): string => text.split(' ')[0]!;
  const check = (path: readonly number[]): void => {
    world = new RemoteWorld(true);
    const read = new Set<string>();
    let listedTexts: readonly string[] = [];
    for (const index of path) {
      const [name, act, list] = steps[index]!;
      const countsBefore = world.counts;
      const runningCount = world.runningServers.length;
      act(world);
      const message = path.map((at) => steps[at]![0]).join(', ');
      if (list === undefined && countsBefore.includes(name.slice(7))) read.add(name.slice(7));
      if (list === undefined && world.counts.includes(name.slice(7))) read.add(name.slice(7));
      listedTexts = list ?? listedTexts;
      // Exactly one kubeconfig per listed cluster is active.
      expect(world.counts.map(clusterOf).sort(), message).toEqual(listedTexts.map(clusterOf).sort());
      for (const one of countsBefore) {
        const nextCount = world.counts.find((other) => clusterOf(other) === clusterOf(one));
        if (list !== undefined && read.has(one) && nextCount !== undefined) expect(nextCount, message).toBe(one);
      }
      for (const one of [...read]) if (!world.counts.includes(one)) read.delete(one);
      // Each cluster has one chart, plus another while its kubeconfig is being replaced.
      expect(world.runningServers.length, message).toBeLessThanOrEqual(2 * listedTexts.length);
      expect(world.runningServers.length, message).toBeGreaterThanOrEqual(listedTexts.length);
      if (list === undefined) expect(world.runningServers.length, message).toBeLessThanOrEqual(runningCount);
    }
    world.actor.stop();
  };
  const extend = (path: readonly number[]): void => {
    if (path.length === maxSteps) check(path);
    else for (const index of steps.keys()) extend([...path, index]);
  };
  extend([]);
});
