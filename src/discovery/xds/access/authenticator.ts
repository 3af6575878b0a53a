import { messageOf } from '../../../runtime/errors.ts';

export interface CallPeer {
  readonly host: string;
  /** Address, with the port if known. Identifies the connection. */
  readonly address: string;
  /** @param name lower case */
  readonly metadata: (name: string) => readonly string[];
  readonly certificate: PeerCertificate | undefined;
}

export interface PeerCertificate {
  /** DER. Names are read from it, because Node's text form is ambiguous. */
  readonly raw: Buffer;
  readonly serialNumber?: string | undefined;
  /** Time such as `Nov 23 02:05:07 2026 GMT`. */
  readonly valid_to?: string | undefined;
}

export type Authentication =
  /** Verified identities. Those of the mesh are SPIFFE IDs. */
  | { readonly identities: readonly string[] }
  /** `isUnavailable` means that the check may succeed later. */
  | { readonly failure: string; readonly isUnavailable?: boolean };

export interface Authenticator {
  readonly name: string;
  /** A rejected promise is an authentication failure. */
  authenticate(peer: CallPeer): Authentication | Promise<Authentication>;
}

/** Without authenticators, the client is accepted without an identity. */
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
