/** The control plane's DNS server never forwards queries. */
import { buildResponse, clearRecursion, type DnsQuery, failure, readQuery } from '../../runtime/dns/dns-message.ts';
import { maxTcpBytes } from '../../runtime/dns/tcp-messages.ts';
import type { MeshNames } from './mesh-names.ts';

export type NameResult = 'answered' | 'nxdomain' | 'refused' | 'invalid' | 'failed';

export interface NameResponse {
  readonly result: NameResult;
  /** `undefined` if the message requires no response. */
  readonly response: Buffer | undefined;
}

/** First type of requests that are not for records of a name, such as zone transfers (RFC 6895 §3.1). */
const firstMetaType = 128;
const anyQueryType = 255;

/**
 * Responds with REFUSED for names outside the mesh, and NXDOMAIN for unknown names in `svc.DOMAIN`, so that resolvers continue with their search
 * domains.
 */
export async function respondToQuery(
  message: Buffer,
  names: Pick<MeshNames, 'visibleTo' | 'isInZone'>,
  namespace: string | undefined,
): Promise<NameResponse> {
  const parsedQuery = readQuery(message);
  if (parsedQuery.kind === 'drop') return { result: 'invalid', response: undefined };
  if (parsedQuery.kind === 'failed') return { result: 'invalid', response: clearRecursion(parsedQuery.response) };
  const { query } = parsedQuery;
  try {
    const { result, response } = responseTo(query, await names.visibleTo(namespace), (name) => names.isInZone(name));
    return { result, response: clearRecursion(response) };
  } catch {
    // SERVFAIL for an internal error allows the client to retry.
    return { result: 'failed', response: clearRecursion(failure(message, 'SERVFAIL', query.questionEnd)) };
  }
}

function responseTo(
  query: DnsQuery,
  names: Awaited<ReturnType<MeshNames['visibleTo']>>,
  isInZone: (name: string) => boolean,
): { readonly result: NameResult; readonly response: Buffer } {
  const { message, name, addressType, questionEnd, type, isInternet } = query;
  const fail = (result: NameResult, code: 'SERVFAIL' | 'REFUSED' | 'NXDOMAIN') => ({
    ...{ result, response: failure(message, code, questionEnd) },
  });
  if (names === undefined) return fail('failed', 'SERVFAIL');
  if (!isInternet || (type >= firstMetaType && type !== anyQueryType)) return fail('refused', 'REFUSED');
  const nameRecord = names.find(name);
  if (nameRecord === undefined) return isInZone(name) ? fail('nxdomain', 'NXDOMAIN') : fail('refused', 'REFUSED');
  // The name exists, but has no record of this type.
  if (addressType === undefined) return { result: 'answered', response: failure(message, 'NOERROR', questionEnd) };
  return { result: 'answered', response: buildResponse(query, nameRecord, maxTcpBytes) };
}
