/** Reads client address and scheme from headers of trusted proxies (Envoy's docs: x-forwarded-for). */
import { isIP } from 'node:net';
import type { HttpConnectionManager } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { ownValue } from '../../runtime/json-object.ts';
import type { HttpQuestion } from './question.ts';

type Settings = Pick<HttpConnectionManager, 'useRemoteAddress' | 'xffNumTrustedHops'>;

export function clientOf(
  { headers }: HttpQuestion,
  { useRemoteAddress, xffNumTrustedHops }: Settings,
  directAddress: string | undefined,
): string | undefined {
  const forwardedAddresses = (ownValue(headers, 'x-forwarded-for') ?? '').split(',').map((text) => text.trim());
  // With `use_remote_address`, the connection's peer is one hop, which the header does not contain.
  const hops = useRemoteAddress === true ? xffNumTrustedHops - 1 : xffNumTrustedHops;
  const forwardedAddress = hops < 0 ? undefined : forwardedAddresses.at(-1 - hops);
  return forwardedAddress !== undefined && isIP(forwardedAddress) !== 0 ? forwardedAddress : directAddress;
}

export function schemeOf({ headers }: HttpQuestion, settings: Settings, terminatesTls: boolean): 'http' | 'https' {
  const forwardedProto = ownValue(headers, 'x-forwarded-proto')?.toLowerCase();
  const trustsForwardedScheme = settings.useRemoteAddress !== true || settings.xffNumTrustedHops > 0;
  if (trustsForwardedScheme && (forwardedProto === 'http' || forwardedProto === 'https')) return forwardedProto;
  return terminatesTls ? 'https' : 'http';
}
