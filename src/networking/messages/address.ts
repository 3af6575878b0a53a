import { isIP, isIPv6 } from 'node:net';
import { create } from '@bufbuild/protobuf';
import {
  type Address,
  AddressSchema,
  type CidrRange,
  CidrRangeSchema,
  SocketAddress_Protocol,
} from '../../gen/envoy/config/core/v3/address_pb.ts';
import type { ProxyIpFamily } from '../../model/proxy/proxy-shape.ts';

const unixPrefix = 'unix://';

export function isUnixSocket(address: string): boolean {
  return address.startsWith(unixPrefix);
}

/** Converts `unix:///run/app.sock` to `/run/app.sock`, and for abstract sockets `unix://@name` to `@name`. */
export function unixSocketPath(address: string): string {
  return address.slice(unixPrefix.length);
}

export function socketAddress(address: string, port: number): Address {
  if (isUnixSocket(address)) {
    return create(AddressSchema, { address: { case: 'pipe', value: { path: unixSocketPath(address) } } });
  }
  // An object literal is faster than `create`, and there is one address for each endpoint.
  return {
    $typeName: 'envoy.config.core.v3.Address',
    address: {
      case: 'socketAddress',
      value: {
        $typeName: 'envoy.config.core.v3.SocketAddress',
        protocol: SocketAddress_Protocol.TCP,
        address,
        portSpecifier: { case: 'portValue', value: port },
        resolverName: '',
        ipv4Compat: false,
      },
    },
  };
}

export function isCidr(text: string): boolean {
  const slash = text.indexOf('/');
  return slash > 0 && isIP(text.slice(0, slash)) !== 0;
}

export function cidrRange(text: string): CidrRange | undefined {
  const [address, length] = text.split('/', 2) as [string, string?];
  const family = isIP(address);
  if (family === 0) return undefined;
  return create(CidrRangeSchema, {
    addressPrefix: address,
    prefixLen: length === undefined ? (family === 4 ? 32 : 128) : Number(length),
  });
}

export function wildcardAddress(family: ProxyIpFamily): string {
  return family === 'v6' ? '::' : '0.0.0.0';
}

export function loopbackAddress(family: ProxyIpFamily): string {
  return family === 'v6' ? '::1' : '127.0.0.1';
}

/** Adds the brackets that IPv6 addresses require in URLs. */
export function bracketIpv6(address: string): string {
  return isIPv6(address) ? `[${address}]` : address;
}
