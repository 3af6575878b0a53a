/** Connections reach only one of several services with the same address and port. */
import type { Config } from '../../../model/config/config.ts';
import { type ApplicationProtocol, isHttp, isTls } from '../../../model/fields/protocol.ts';
import { isHeadless } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Service } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { isUnspecified } from '../../../runtime/addresses/unspecified-address.ts';
import { type ConfigCheck, isWritten } from '../config-warning.ts';
import { objectOfService } from '../known-objects.ts';
import { haveSharedClients } from '../policies/shared-clients.ts';

export interface AddressConflict {
  readonly service: Service;
  readonly port: number;
  readonly protocol: ApplicationProtocol;
  readonly winner: Service;
  readonly address: string;
}

interface Placed {
  readonly service: Service;
  readonly protocol: ApplicationProtocol;
}

/** Services with assigned addresses never conflict. */
export function* addressConflicts(services: readonly Service[]): Generator<AddressConflict | undefined> {
  const first = new Map<string, Placed>();
  const http = new Map<string, Placed>();
  for (const service of services) {
    yield undefined;
    // Addresses of Kubernetes Services are unique, and addresses of headless ones belong to their pods.
    if (isAlias(service) || (isUnspecified(service.defaultAddress) && isHeadless(service))) continue;
    const addresses = service.addresses.length > 0 ? service.addresses : [service.defaultAddress];
    for (const address of new Set(addresses)) {
      const isShared = isUnspecified(address);
      for (const { number: port, protocol } of service.ports) {
        const key = `${address} ${port}`;
        const portUser = { service, protocol };
        if (protocol === 'UDP' || (isShared && (isHttp(protocol) || isTls(protocol) || protocol === 'unsupported')))
          continue;
        const olderOwner = first.get(key);
        if (isHttp(protocol)) {
          if (olderOwner !== undefined && meets(olderOwner, portUser))
            yield conflict(portUser, olderOwner, address, port);
          else if (!http.has(key)) http.set(key, portUser);
          continue;
        }
        if (olderOwner === undefined) {
          first.set(key, portUser);
          const requests = http.get(key);
          if (requests !== undefined && meets(requests, portUser)) yield conflict(requests, portUser, address, port);
        } else if (meets(olderOwner, portUser)) yield conflict(portUser, olderOwner, address, port);
      }
    }
  }
}

function conflict({ service, protocol }: Placed, { service: winner }: Placed, address: string, port: number) {
  return { service, port, protocol, winner, address };
}

function meets(a: Placed, b: Placed): boolean {
  const areBothAssigned = a.service.origin.kind === 'Service' && b.service.origin.kind === 'Service';
  const isShared = isUnspecified(a.service.defaultAddress);
  return (
    a.service.hostname !== b.service.hostname &&
    (isShared || !areBothAssigned) &&
    haveSharedClients(a.service, b.service)
  );
}

export const checkServiceAddresses: ConfigCheck = function* ({ context, configs }) {
  const routed = new Set<string>();
  for (const { namespace, spec } of configs.VirtualService) {
    yield undefined;
    if (spec.tls !== undefined) for (const host of spec.hosts) routed.add(context.hostNames.qualify(host, namespace));
  }
  for (const conflict of addressConflicts(context.services)) {
    if (conflict === undefined) {
      yield undefined;
      continue;
    }
    const config = objectOfService(conflict.service, configs);
    const other = objectOfService(conflict.winner, configs);
    // `tls` routes of a VirtualService distinguish connections by SNI.
    const isRouted = isTls(conflict.protocol) && routed.has(conflict.service.hostname);
    if (config === undefined || other === undefined || !isWritten(config) || isRouted) continue;
    yield {
      ...{ code: 'ADDRESS_CONFLICT', config, field: addressField(conflict, config) },
      message: conflictText(conflict, context),
      other: { config: other },
    };
  }
};

function addressField({ address, port, service }: AddressConflict, { kind, spec }: Config): string {
  if (kind === 'Service') return 'spec';
  const { addresses = [] } = spec as { addresses?: readonly string[] };
  const index = addresses.indexOf(address);
  if (index !== -1) return `spec.addresses[${index}]`;
  return `spec.ports[${service.ports.findIndex(({ number }) => number === port)}]`;
}

export function conflictText(conflict: AddressConflict, { features }: Pick<PushContext, 'features'>): string {
  const { service, winner, address, port, protocol } = conflict;
  if (!isUnspecified(address)) {
    return `connections to ${address}:${port} go to ${winner.hostname} and not to ${service.hostname} (${protocol}): set different addresses`;
  }
  const exceptionText = features.autoAllocate ? ', except at proxies with DNS capture (ISTIO_META_DNS_CAPTURE)' : '';
  return `connections to port ${port} go to ${winner.hostname} and not to ${service.hostname} (${protocol}), because both have no address${exceptionText}: set different addresses or ports`;
}
