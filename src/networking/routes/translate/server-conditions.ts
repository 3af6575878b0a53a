/** Determines whether matches of VirtualServices distinguish the servers of a gateway port, by Gateway object or port. */
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { GatewayServer } from '../../gateway/merge-gateways.ts';
import { gatewayName } from '../../gateway/placed-server.ts';

interface ServerConditions {
  readonly gateways: ReadonlySet<string>;
  readonly ports: ReadonlySet<number>;
}

const conditionsOf = memoizeByObject(({ config }: ResolvedVirtualService): ServerConditions => {
  const matches = (config.spec.http ?? []).flatMap(({ match = [] }) => match);
  return {
    gateways: new Set(matches.flatMap(({ gateways = [] }) => gateways)),
    ports: new Set(matches.flatMap(({ port }) => port ?? [])),
  };
});

/** Returns equal texts for servers with equal routes of the VirtualService. */
export function serverText(virtualService: ResolvedVirtualService, { gateway, server }: GatewayServer): string {
  const { gateways, ports } = conditionsOf(virtualService);
  const name = gatewayName(gateway);
  const { number } = server.port;
  return `${gateways.has(name) ? name : ''} ${ports.has(number) ? number : ''}`;
}

export const matchedPorts = memoizeByObject(
  (virtualServices: readonly ResolvedVirtualService[]): ReadonlySet<number> =>
    new Set(virtualServices.flatMap((virtualService) => [...conditionsOf(virtualService).ports])),
);
