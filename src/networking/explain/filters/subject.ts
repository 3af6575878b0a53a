/** The properties of a connection or request that filters match. */
import type { MetadataMatcher } from '../../../gen/envoy/type/matcher/v3/metadata_pb.ts';
import type { Inspected } from '../inspected.ts';
import type { Question } from '../question.ts';
import { matchesMetadata, type RoutedRequest } from '../route-match.ts';

export interface Subject {
  readonly question: Question;
  readonly inspected: Inspected;
  /** The proxy terminated TLS. `principal` is the verified SPIFFE ID, if a client certificate was required. */
  readonly tls?: { readonly principal?: string };
  /** Address of the client from trusted headers, that of the connection if absent. */
  readonly remoteAddress?: string;
  /** Absent for network filters. */
  readonly request?: RoutedRequest;
  /** What filters have stored so far, by filter name. */
  readonly metadata: Record<string, unknown>;
}

export type RequestSubject = Subject & { readonly request: RoutedRequest };

export function hasMetadata(matcher: MetadataMatcher | undefined, { metadata }: Subject): boolean {
  return matcher !== undefined && matchesMetadata(matcher, metadata);
}
