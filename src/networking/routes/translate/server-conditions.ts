/** By which servers of a gateway's port matches of virtual services tell requests apart: by their Gateway object, and by their port. */
import { onceFor } from '../../../model/collections/once-for.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { GatewayServer } from '../../gateway/merge-gateways.ts';
import { gatewayName } from '../../gateway/placed-server.ts';

interface ServerConditions {
  readonly gateways: ReadonlySet<string>;
  readonly ports: ReadonlySet<number>;
}

const conditionsOf = onceFor(({ config }: ResolvedVirtualService): ServerConditions => {
  const matches = (config.spec.http ?? []).flatMap(({ match = [] }) => match);
  return {
    gateways: new Set(matches.flatMap(({ gateways = [] }) => gateways)),
    ports: new Set(matches.flatMap(({ port }) => port ?? [])),
  };
});

/** Servers of the same text have the same routes of the virtual service. */
export function serverText(service: ResolvedVirtualService, { gateway, server }: GatewayServer): string {
  const { gateways, ports } = conditionsOf(service);
  const name = gatewayName(gateway);
  const { number } = server.port;
  return `${gateways.has(name) ? name : ''} ${ports.has(number) ? number : ''}`;
}

/** Ports of servers by which any of the virtual services tells requests apart. */
export const portsThatCount = onceFor(
  (services: readonly ResolvedVirtualService[]): ReadonlySet<number> =>
    new Set(services.flatMap((service) => [...conditionsOf(service).ports])),
);
