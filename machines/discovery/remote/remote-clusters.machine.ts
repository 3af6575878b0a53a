import { enqueueActions, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../../effect.ts';
import { apiServerMachine } from '../kubernetes/api-server.machine.ts';
import type { ClusterSynced, ClustersListed, ListedCluster } from '../kubernetes/kubernetes-protocol.ts';
import { remoteClustersTimeline } from '../timeline.ts';

/** A cluster that is followed with one kubeconfig; for a while there may be two of the same id. */
export interface FollowedRemote {
  cluster: string;
  revision: string;
  /** N of its `api-server-N`. */
  number: number;
  /** All that it has was handed over. */
  synced: boolean;
}

interface RemoteClustersContext {
  /** Of one id the older one first. */
  clusters: FollowedRemote[];
  /** How many actors there were, for the name of the next. */
  started: number;
  /** Why nobody says any more which clusters there are; empty: somebody does. */
  trouble: string;
}

/** Names of informers: those of the own cluster's are far fewer. */
const informersOfServer = 1_000;

/**
 * Other clusters than the own one, as Secrets name them (spec/discovery.md §5.7). A kubeconfig that took the place of another serves
 * nobody until all that the cluster has was handed over through it: until then the one before goes on. Whatever a cluster handed over
 * stays in force while its API server is away; it goes with its Secret.
 */
export const remoteClustersMachine = setup({
  types: {
    context: {} as RemoteClustersContext,
    events: {} as ClustersListed | ClusterSynced,
    children: {} as { secrets: 'listClusters' } & Record<`api-server-${number}`, 'apiServer'>,
  },
  actors: {
    /** Says which clusters Secrets have, once all of them are known and whenever they are others; and which are synced. */
    listClusters: callbackEffect<{ type: never }, undefined>('listClusters'),
    apiServer: apiServerMachine,
  },
  actions: {
    /** Clusters that came get an API server's chart each. Those that went lose theirs, and a kubeconfig that never served its own. */
    reconcileClusters: enqueueActions(({ context, enqueue }, { clusters: listed }: ClustersListed) => {
      let { started } = context;
      const isWanted = ({ cluster, revision, synced }: FollowedRemote): boolean =>
        listed.some((one) => one.cluster === cluster && (one.revision === revision || synced));
      const kept = context.clusters.filter(isWanted);
      const isKnown = (one: ListedCluster): boolean =>
        kept.some(({ cluster, revision }) => cluster === one.cluster && revision === one.revision);
      const clusters = [...kept];
      for (const { cluster, revision, server, resources } of listed.filter((one) => !isKnown(one))) {
        const number = ++started;
        const input = { server, resources, firstInformer: number * informersOfServer };
        enqueue.spawnChild('apiServer', { id: `api-server-${number}`, input });
        clusters.push({ cluster, revision, number, synced: false });
      }
      for (const { number } of context.clusters.filter((one) => !kept.includes(one)))
        enqueue.stopChild(`api-server-${number}`);
      enqueue.assign({ clusters, started });
    }),
    /** It is what counts of its cluster from now on: what was before it ends. */
    recordSynced: enqueueActions(({ context, enqueue }, { cluster, revision }: ClusterSynced) => {
      const now = context.clusters.find((one) => one.cluster === cluster && one.revision === revision);
      if (now === undefined) return;
      const isOver = (one: FollowedRemote): boolean => one.cluster === cluster && one.number < now.number;
      for (const { number } of context.clusters.filter(isOver)) enqueue.stopChild(`api-server-${number}`);
      enqueue.assign({
        clusters: context.clusters
          .filter((one) => !isOver(one))
          .map((one) => (one === now ? { ...one, synced: true } : one)),
      });
    }),
    /** Effect: of each cluster the first one is offered as a registry; of any other that is not here nothing is left. */
    publishClusters: (_, _params: { clusters: FollowedRemote[] }) => {},
    recordFailure: enqueueActions(({ enqueue }, { error }: { error: unknown }) => {
      enqueue.assign({ trouble: reasonOf(error) });
    }),
  },
}).createMachine({
  id: 'remote-clusters',
  description: 'Remote clusters, as defined by Secrets.',
  meta: { timeline: remoteClustersTimeline },
  context: { clusters: [], started: 0, trouble: '' },
  invoke: {
    id: 'secrets',
    src: 'listClusters',
    onError: {
      description: 'An internal error. The known clusters are kept.',
      actions: { type: 'recordFailure', params: ({ event }) => ({ error: event.error }) },
    },
  },
  initial: 'watching',
  states: {
    watching: {
      description: 'Each cluster has an `api-server` actor.',
      meta: { waitsFor: 'a change of the list of clusters: normal operation' },
      on: {
        'clusters.listed': {
          actions: [
            { type: 'reconcileClusters', params: ({ event }) => event },
            { type: 'publishClusters', params: ({ context }) => ({ clusters: context.clusters }) },
          ],
        },
        'cluster.synced': {
          actions: [
            { type: 'recordSynced', params: ({ event }) => event },
            { type: 'publishClusters', params: ({ context }) => ({ clusters: context.clusters }) },
          ],
        },
      },
    },
  },
});
