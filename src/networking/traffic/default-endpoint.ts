import { ipFamilyOf, type ProxyIpFamily, type ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { isUnixSocket, loopbackAddress } from '../messages/address.ts';

export interface ForwardAddress {
  readonly address: string;
  readonly port: number;
}

/**
 * `0.0.0.0:80` and `[::]:80` mean the workload's own address, `127.0.0.1:80` and `[::1]:80` its loopback address. If the workload has no address of
 * this family, the other family is used.
 */
export function addressOfDefaultEndpoint(endpoint: string | undefined, shape: ProxyShape): ForwardAddress | undefined {
  if (!endpoint) return undefined;
  if (isUnixSocket(endpoint)) return { address: endpoint, port: 0 };
  const { host, port } = partsOf(endpoint);
  if (host === '') return { address: loopbackAddress(shape.ipFamily), port };
  const family = isOfForeignFamily(host, shape) ? shape.ipFamily : familyOf(host);
  if (isLoopback(host)) return { address: loopbackAddress(family), port };
  const ownAddress = shape.ownAddresses.find((address) => ipFamilyOf([address]) === family);
  return { address: ownAddress ?? loopbackAddress(family), port };
}

export function replacedDefaultEndpoints(
  shape: ProxyShape,
  push: Pick<PushContext, 'sidecarScopeFor'>,
): readonly { readonly written: string; readonly used: string }[] {
  return (push.sidecarScopeFor(shape).ingressListeners ?? []).flatMap(({ defaultEndpoint: endpointText = '' }) => {
    const host = endpointText === '' || isUnixSocket(endpointText) ? '' : partsOf(endpointText).host;
    const usedAddress = host !== '' && isOfForeignFamily(host, shape) && addressOfDefaultEndpoint(endpointText, shape);
    return usedAddress
      ? [
          {
            written: endpointText,
            used: usedAddress.address.includes(':')
              ? `[${usedAddress.address}]:${usedAddress.port}`
              : `${usedAddress.address}:${usedAddress.port}`,
          },
        ]
      : [];
  });
}

function partsOf(endpoint: string): { readonly host: string; readonly port: number } {
  const colon = endpoint.lastIndexOf(':');
  return { host: endpoint.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(endpoint.slice(colon + 1)) };
}

function familyOf(host: string): ProxyIpFamily {
  return host.includes(':') ? 'v6' : 'v4';
}

function isOfForeignFamily(host: string, { ipFamily }: Pick<ProxyShape, 'ipFamily'>): boolean {
  return ipFamily !== 'dual' && ipFamily !== familyOf(host);
}
