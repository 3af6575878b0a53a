/** The page also accepts a request to apply a held-back response (docs/consul.md). */
import { type DebugPage, okReply, textReply } from './debug-page.ts';

export const consulPages: readonly DebugPage[] = [
  {
    path: 'consulz',
    description:
      'datacenters of Consul: condition, watch, what is left out; POST ?accept=REGISTRY (such as Consul/local) applies a response that is held back',
    changes: (query) => query.has('accept'),
    respond: ({ consul }, { query, caller }) => {
      if (consul === undefined)
        return textReply('Consul is no registry of this control plane, see docs/consul.md', 404);
      const acceptedId = query.get('accept');
      if (acceptedId === null) return okReply(consul.datacenters());
      if (caller !== 'operator')
        return textReply(
          'forbidden: a response can be accepted only from this host, with the token of the debugger',
          403,
        );
      const datacenter = consul.datacenters().find(({ registry }) => registry === acceptedId);
      if (datacenter === undefined) {
        const registryNames = consul.datacenters().map(({ registry }) => registry);
        return textReply(
          `accept must be one of ${registryNames.join(', ')}, got ${JSON.stringify(acceptedId.slice(0, 100))}`,
          400,
        );
      }
      if (datacenter.condition !== 'held')
        return textReply(`rejected: ${acceptedId} has no response that is held back`, 409);
      consul.accept(datacenter.datacenter);
      return textReply('accepted: GET this page for the progress', 202);
    },
  },
];
