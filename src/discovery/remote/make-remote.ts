import { RemoteClusters, type RemoteClustersOptions } from './remote-clusters.effects.ts';

export function makeRemote(options: RemoteClustersOptions) {
  const clusters = new RemoteClusters(options);
  return { clusters, actors: () => ({ remoteClusters: clusters.machine() }) };
}
