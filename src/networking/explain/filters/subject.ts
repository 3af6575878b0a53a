/** The facts about a connection, and a request on it, that filters match. */
import type { MetadataMatcher } from '../../../gen/envoy/type/matcher/v3/metadata_pb.ts';
import type { Inspected } from '../inspected.ts';
import type { Question } from '../question.ts';
import { matchesMetadata, type RoutedRequest } from '../route-match.ts';

export interface Subject {
  readonly question: Question;
  readonly inspected: Inspected;
  /** The proxy ended TLS; `principal` is the SPIFFE ID that it verified, if the client had to present a certificate. */
  readonly tls?: { readonly principal?: string };
  /** The client by the headers that the proxy trusts; absent: the same as the connection's. */
  readonly remoteAddress?: string;
  /** Absent: filters of the connection, before any request. */
  readonly request?: RoutedRequest;
  /** What filters have stored so far, by the name of the filter. */
  readonly metadata: Record<string, unknown>;
}

/** Of a request. */
export type RequestSubject = Subject & { readonly request: RoutedRequest };

export function hasMetadata(matcher: MetadataMatcher | undefined, { metadata }: Subject): boolean {
  return matcher !== undefined && matchesMetadata(matcher, metadata);
}
