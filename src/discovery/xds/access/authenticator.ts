/** Who is at the other end of a stream (spec/discovery.md §7.2 #3, §7.7). Only the secure port asks. */
import { messageOf } from '../../../runtime/errors.ts';

/** What a client shows of itself. */
export interface Peer {
  /** Where it calls from: an IP address without brackets. */
  readonly host: string;
  /** For people, and to tell connections apart: with the port, where it is known. */
  readonly address: string;
  /** The stream's request headers: names in lower case, a header's values in order. */
  readonly metadata: (name: string) => readonly string[];
  /** The client's certificate, if it showed one that is good. */
  readonly certificate: PeerCertificate | undefined;
}

export interface PeerCertificate {
  /** DER. Its names are read from here: Node's text of them has more than one reading. */
  readonly raw: Buffer;
  /** Serial number in hexadecimal. */
  readonly serialNumber?: string | undefined;
  /** `Nov 23 02:05:07 2026 GMT`. */
  readonly valid_to?: string | undefined;
}

export type Authentication =
  /** The client is all of these; ids of the mesh are SPIFFE ids. */
  | { readonly identities: readonly string[] }
  /**
   * Why it is nobody that this authenticator knows.
   *
   * isUnavailable: it could not be asked; another time the answer may be another
   */
  | { readonly failure: string; readonly isUnavailable?: boolean };

/** One way to tell who a client is: its certificate, a token, a header. */
export interface Authenticator {
  /** Name of the way, for logs. */
  readonly name: string;
  /** A rejection is a failure. */
  authenticate(peer: Peer): Authentication | Promise<Authentication>;
}

/**
 * Asks in order; the first that knows the client counts. Nobody to ask: the client has no identity, and is accepted.
 */
export async function authenticate(authenticators: readonly Authenticator[], peer: Peer): Promise<Authentication> {
  if (authenticators.length === 0) return { identities: [] };
  const failures: string[] = [];
  let isUnavailable = false;
  for (const authenticator of authenticators) {
    const answer = await outcomeOf(authenticator, peer);
    if ('identities' in answer) return answer;
    failures.push(`${authenticator.name}: ${answer.failure}`);
    isUnavailable ||= answer.isUnavailable === true;
  }
  return { failure: failures.join('; '), ...(isUnavailable && { isUnavailable }) };
}

async function outcomeOf(authenticator: Authenticator, peer: Peer): Promise<Authentication> {
  try {
    return await authenticator.authenticate(peer);
  } catch (error) {
    return { failure: messageOf(error) };
  }
}
