import type { RootParts } from '../secrets-protocol.ts';

export const identityName = 'default';
/** Roots for certificates of peers. */
export const rootsName = 'ROOTCA';

const certificatePrefix = 'file-cert:';
const rootPrefix = 'file-root:';
/** Names have the form `file-root-crl:CA~CRL`. */
const revocationPrefix = 'file-root-crl:';
const systemRoots = `${rootPrefix}system`;

/** Envoy has this secret, or receives it once it is available. */
export interface HeldSecret {
  name: string;
  actor: `secret-${number}`;
  version: string;
  /** Empty unless an authority signed the certificate. */
  serialNumber: string;
  parts: RootParts;
  isSubscribed: boolean;
  /** Whether a client was subscribed and may still use the received version. */
  wasSubscribed: boolean;
  /** Version that all subscribed clients have acknowledged. */
  acknowledged: string;
  /** Why there is no newer version; empty without an error. */
  lacking: string;
  refused: string;
}

/** The directory to watch is empty for the system's roots. `undefined` if the name is not that of a secret from files. */
export function secretFilesOf(name: string): { directory: string } | undefined {
  if (name === systemRoots) return { directory: '' };
  if (name.startsWith(rootPrefix)) {
    const file = name.slice(rootPrefix.length);
    return file === '' ? undefined : { directory: directoryOf(file) };
  }
  const prefix = [certificatePrefix, revocationPrefix].find((filePrefix) => name.startsWith(filePrefix));
  if (prefix === undefined) return undefined;
  const [firstPath = '', secondPath = '', ...otherPaths] = name.slice(prefix.length).split('~');
  if (firstPath === '' || secondPath === '' || otherPaths.length > 0) return undefined;
  // A new authority requires a new revocation list, so watching the lists detects both.
  return { directory: directoryOf(prefix === revocationPrefix ? secondPath : firstPath) };
}

function directoryOf(file: string): string {
  const slash = file.lastIndexOf('/');
  if (slash < 0) return '.';
  return slash === 0 ? '/' : file.slice(0, slash);
}

export function isAcknowledged({ isSubscribed, acknowledged, version }: HeldSecret): boolean {
  return !isSubscribed || acknowledged === version;
}

/** A client that unsubscribed may only have lost its connection and still use the version that it received. */
export function isDistributed({ wasSubscribed, acknowledged, version }: HeldSecret): boolean {
  return version !== '' && (!wasSubscribed || acknowledged === version);
}
