import type { MetadataMatcher } from '../../../gen/envoy/type/matcher/v3/metadata_pb.ts';
import type { InspectedConnection } from '../inspected.ts';
import type { Question } from '../question.ts';
import { matchesMetadata, type RoutedRequest } from '../route-match.ts';

export interface Subject {
  readonly question: Question;
  readonly inspected: InspectedConnection;
  /** Set if the proxy terminated TLS. `principal` is the SPIFFE ID of a verified client certificate. */
  readonly tls?: { readonly principal?: string };
  /** The client's address from trusted headers. Absent if it equals the address of the connection. */
  readonly remoteAddress?: string;
  readonly request?: RoutedRequest;
  readonly metadata: Record<string, unknown>;
}

export type RequestSubject = Subject & { readonly request: RoutedRequest };

export function hasMetadata(matcher: MetadataMatcher | undefined, { metadata }: Subject): boolean {
  return matcher !== undefined && matchesMetadata(matcher, metadata);
}
