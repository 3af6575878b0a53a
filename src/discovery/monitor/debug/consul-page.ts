/** The page of Consul's datacenters, and the order to apply a response that is held back (docs/consul.md). */
import { type DebugPage, ok, text } from './debug-page.ts';

export const consulPages: readonly DebugPage[] = [
  {
    path: 'consulz',
    description:
      'datacenters of Consul: condition, watch, what is left out; POST ?accept=REGISTRY (such as Consul/local) applies a response that is held back',
    changes: (query) => query.has('accept'),
    answer: ({ consul }, { query, caller }) => {
      if (consul === undefined) return text('Consul is no registry of this control plane, see docs/consul.md', 404);
      const accepted = query.get('accept');
      if (accepted === null) return ok(consul.datacenters());
      if (caller !== 'operator')
        return text('forbidden: a response can be accepted only from this host, with the token of the debugger', 403);
      const found = consul.datacenters().find(({ registry }) => registry === accepted);
      if (found === undefined) {
        const known = consul.datacenters().map(({ registry }) => registry);
        return text(`accept must be one of ${known.join(', ')}, got ${JSON.stringify(accepted.slice(0, 100))}`, 400);
      }
      if (found.condition !== 'held') return text(`rejected: ${accepted} has no response that is held back`, 409);
      consul.accept(found.datacenter);
      return text('accepted: GET this page for the progress', 202);
    },
  },
];
