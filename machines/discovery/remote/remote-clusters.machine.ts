import { enqueueActions, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../../effect.ts';
import { apiServerMachine } from '../kubernetes/api-server.machine.ts';
import type { ClusterSynced, ClustersListed, ListedCluster } from '../kubernetes/kubernetes-protocol.ts';
import { remoteClustersTimeline } from '../timeline.ts';

/** A cluster with one kubeconfig. While a kubeconfig is replaced, there are two with the same ID. */
export interface KnownRemote {
  cluster: string;
  revision: string;
  /** N of the cluster's `api-server-N`. */
  number: number;
  synced: boolean;
}

interface RemoteClustersContext {
  /** For two entries with the same ID, the older one first. */
  clusters: KnownRemote[];
  started: number;
  /** Why the list of clusters no longer changes; empty while it does. */
  trouble: string;
}

/** Range of informer numbers of each server; the local cluster has far fewer. */
const informersOfServer = 1_000;

/** Remote clusters, as defined by Secrets. A new kubeconfig applies when all objects were read with it; until then the previous one is used. */
export const remoteClustersMachine = setup({
  types: {
    context: {} as RemoteClustersContext,
    events: {} as ClustersListed | ClusterSynced,
    children: {} as { secrets: 'listClusters' } & Record<`api-server-${number}`, 'apiServer'>,
  },
  actors: {
    listClusters: callbackEffect<{ type: never }, undefined>('listClusters'),
    apiServer: apiServerMachine,
  },
  actions: {
    /** Also stops the actors of kubeconfigs that were replaced before they were used. */
    reconcileClusters: enqueueActions(({ context, enqueue }, { clusters: listedClusters }: ClustersListed) => {
      let { started } = context;
      const isListed = ({ cluster, revision, synced }: KnownRemote): boolean =>
        listedClusters.some((one) => one.cluster === cluster && (one.revision === revision || synced));
      const keptClusters = context.clusters.filter(isListed);
      const isKnownCluster = (one: ListedCluster): boolean =>
        keptClusters.some(({ cluster, revision }) => cluster === one.cluster && revision === one.revision);
      const clusters = [...keptClusters];
      for (const { cluster, revision, server, resources } of listedClusters.filter((one) => !isKnownCluster(one))) {
        const number = ++started;
        const input = { server, resources, firstInformer: number * informersOfServer };
        enqueue.spawnChild('apiServer', { id: `api-server-${number}`, input });
        clusters.push({ cluster, revision, number, synced: false });
      }
      for (const { number } of context.clusters.filter((one) => !keptClusters.includes(one)))
        enqueue.stopChild(`api-server-${number}`);
      enqueue.assign({ clusters, started });
    }),
    /** The new kubeconfig applies: stops earlier ones of the cluster. */
    recordSynced: enqueueActions(({ context, enqueue }, { cluster, revision }: ClusterSynced) => {
      const knownRemote = context.clusters.find((one) => one.cluster === cluster && one.revision === revision);
      if (knownRemote === undefined) return;
      const isSuperseded = (one: KnownRemote): boolean => one.cluster === cluster && one.number < knownRemote.number;
      for (const { number } of context.clusters.filter(isSuperseded)) enqueue.stopChild(`api-server-${number}`);
      enqueue.assign({
        clusters: context.clusters
          .filter((one) => !isSuperseded(one))
          .map((one) => (one === knownRemote ? { ...one, synced: true } : one)),
      });
    }),
    publishClusters: (_, _params: { clusters: KnownRemote[] }) => {},
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
