/** Connections reach only one of several services with the same address and port. */
import type { Config } from '../../../model/config/config.ts';
import { type ApplicationProtocol, isHttp, isTls } from '../../../model/fields/protocol.ts';
import { isHeadless } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Service } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { isUnspecified } from '../../../runtime/addresses/unspecified-address.ts';
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';
import { objectOfService } from '../known-objects.ts';
import { haveSharedClients } from '../policies/shared-clients.ts';

export interface AddressConflict {
  readonly service: Service;
  readonly port: number;
  readonly protocol: ApplicationProtocol;
  readonly winner: Service;
  readonly address: string;
}

interface PortUser {
  readonly service: Service;
  readonly protocol: ApplicationProtocol;
}

/** Services with assigned addresses never conflict. */
export function* addressConflicts(services: readonly Service[]): Generator<AddressConflict | undefined> {
  const firstByPlace = new Map<string, PortUser>();
  const http = new Map<string, PortUser>();
  for (const service of services) {
    yield undefined;
    // Addresses of Kubernetes Services are unique, and addresses of headless ones belong to their pods.
    if (isAlias(service) || (isUnspecified(service.defaultAddress) && isHeadless(service))) continue;
    const addresses = service.addresses.length > 0 ? service.addresses : [service.defaultAddress];
    for (const address of new Set(addresses)) {
      const isWildcardAddress = isUnspecified(address);
      for (const { number: port, protocol } of service.ports) {
        const key = `${address} ${port}`;
        const portUser = { service, protocol };
        if (
          protocol === 'UDP' ||
          (isWildcardAddress && (isHttp(protocol) || isTls(protocol) || protocol === 'unsupported'))
        )
          continue;
        const olderOwner = firstByPlace.get(key);
        if (isHttp(protocol)) {
          if (olderOwner !== undefined && conflictsWith(olderOwner, portUser))
            yield conflict(portUser, olderOwner, address, port);
          else if (!http.has(key)) http.set(key, portUser);
          continue;
        }
        if (olderOwner === undefined) {
          firstByPlace.set(key, portUser);
          const requests = http.get(key);
          if (requests !== undefined && conflictsWith(requests, portUser))
            yield conflict(requests, portUser, address, port);
        } else if (conflictsWith(olderOwner, portUser)) yield conflict(portUser, olderOwner, address, port);
      }
    }
  }
}

function conflict({ service, protocol }: PortUser, { service: winner }: PortUser, address: string, port: number) {
  return { service, port, protocol, winner, address };
}

function conflictsWith(a: PortUser, b: PortUser): boolean {
  const areBothAssigned = a.service.origin.kind === 'Service' && b.service.origin.kind === 'Service';
  const isWildcardAddress = isUnspecified(a.service.defaultAddress);
  return (
    a.service.hostname !== b.service.hostname &&
    (isWildcardAddress || !areBothAssigned) &&
    haveSharedClients(a.service, b.service)
  );
}

export const checkServiceAddresses: ConfigCheck = function* ({ context, configs }) {
  const routedHostnames = new Set<string>();
  for (const { namespace, spec } of configs.VirtualService) {
    yield undefined;
    if (spec.tls !== undefined)
      for (const host of spec.hosts) routedHostnames.add(context.hostNames.qualify(host, namespace));
  }
  for (const conflict of addressConflicts(context.services)) {
    if (conflict === undefined) {
      yield undefined;
      continue;
    }
    const config = objectOfService(conflict.service, configs);
    const winnerObject = objectOfService(conflict.winner, configs);
    // `tls` routes of a VirtualService distinguish connections by SNI.
    const isRouted = isTls(conflict.protocol) && routedHostnames.has(conflict.service.hostname);
    if (config === undefined || winnerObject === undefined || !isWrittenConfig(config) || isRouted) continue;
    yield {
      ...{ code: 'ADDRESS_CONFLICT', config, field: addressField(conflict, config) },
      message: conflictText(conflict, context),
      other: { config: winnerObject },
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
