/** Names of a workload's secrets, and the state of each. */
import type { RootParts } from '../secrets-protocol.ts';

/** The workload's certificate with its key. */
export const identityName = 'default';
/** Roots of the certificates of peers. */
export const rootsName = 'ROOTCA';

const certificatePrefix = 'file-cert:';
const rootPrefix = 'file-root:';
/** Authorities with revocation lists: `file-root-crl:CA~CRL`. */
const revocationPrefix = 'file-root-crl:';
/** Authorities of the operating system. */
const systemRoots = `${rootPrefix}system`;

/** A secret that Envoy has, or receives once it is available. */
export interface HeldSecret {
  name: string;
  actor: `secret-${number}`;
  /** Current version; empty: none. */
  version: string;
  /** Serial number of a certificate signed by an authority; otherwise empty. */
  serialNumber: string;
  parts: RootParts;
  isSubscribed: boolean;
  /** Whether a client was subscribed and may still use the received version. */
  wasSubscribed: boolean;
  /** Version that all subscribed clients have acknowledged; empty: none. */
  acknowledged: string;
  /** Why there is no newer version; empty without an error. */
  lacking: string;
  /** Why a client rejected the version; empty if none rejected it. */
  refused: string;
}

/** Directory to watch for a secret that is read from files; empty: not watched. `undefined` for other names. */
export function secretFilesOf(name: string): { directory: string } | undefined {
  if (name === systemRoots) return { directory: '' };
  if (name.startsWith(rootPrefix)) {
    const file = name.slice(rootPrefix.length);
    return file === '' ? undefined : { directory: directoryOf(file) };
  }
  const prefix = [certificatePrefix, revocationPrefix].find((one) => name.startsWith(one));
  if (prefix === undefined) return undefined;
  const [first = '', secondPath = '', ...otherPaths] = name.slice(prefix.length).split('~');
  if (first === '' || secondPath === '' || otherPaths.length > 0) return undefined;
  // A new authority requires a new revocation list, so watching the lists detects both.
  return { directory: directoryOf(prefix === revocationPrefix ? secondPath : first) };
}

function directoryOf(file: string): string {
  const slash = file.lastIndexOf('/');
  if (slash < 0) return '.';
  return slash === 0 ? '/' : file.slice(0, slash);
}

/** Whether all subscribed clients have the current version; also true without clients. */
export function isAcknowledged({ isSubscribed, acknowledged, version }: HeldSecret): boolean {
  return !isSubscribed || acknowledged === version;
}

/** A client that unsubscribed may only have lost its connection and still use the version that it received. */
export function isDistributed({ wasSubscribed, acknowledged, version }: HeldSecret): boolean {
  return version !== '' && (!wasSubscribed || acknowledged === version);
}
