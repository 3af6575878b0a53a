/** Authentication of the client of a stream (spec/discovery.md §7.2 #3, §7.7). Only the secure port requires it. */
import { messageOf } from '../../../runtime/errors.ts';

/** Identifying data of a client. */
export interface CallPeer {
  /** IP address without brackets. */
  readonly host: string;
  /** With the port if known; for logs and to identify the connection. */
  readonly address: string;
  /** Request headers: names in lower case, values in order. */
  readonly metadata: (name: string) => readonly string[];
  /** Only if TLS verified it. */
  readonly certificate: PeerCertificate | undefined;
}

export interface PeerCertificate {
  /** DER. Names are read from here, because Node's text of them is ambiguous. */
  readonly raw: Buffer;
  /** Hexadecimal. */
  readonly serialNumber?: string | undefined;
  /** `Nov 23 02:05:07 2026 GMT`. */
  readonly valid_to?: string | undefined;
}

export type Authentication =
  /** All verified identities. Those of the mesh are SPIFFE IDs. */
  | { readonly identities: readonly string[] }
  /** @param isUnavailable the check was not possible and may succeed later */
  | { readonly failure: string; readonly isUnavailable?: boolean };

/** A method of authentication: certificate, token, or header. */
export interface Authenticator {
  /** For logs. */
  readonly name: string;
  /** A rejected promise is a failure. */
  authenticate(peer: CallPeer): Authentication | Promise<Authentication>;
}

/**
 * Tries the authenticators in order until one succeeds. Without authenticators, the client is accepted without an
 * identity.
 */
export async function authenticate(authenticators: readonly Authenticator[], peer: CallPeer): Promise<Authentication> {
  if (authenticators.length === 0) return { identities: [] };
  const failures: string[] = [];
  let isUnavailable = false;
  for (const authenticator of authenticators) {
    const result = await outcomeOf(authenticator, peer);
    if ('identities' in result) return result;
    failures.push(`${authenticator.name}: ${result.failure}`);
    isUnavailable ||= result.isUnavailable === true;
  }
  return { failure: failures.join('; '), ...(isUnavailable && { isUnavailable }) };
}

async function outcomeOf(authenticator: Authenticator, peer: CallPeer): Promise<Authentication> {
  try {
    return await authenticator.authenticate(peer);
  } catch (error) {
    return { failure: messageOf(error) };
  }
}
