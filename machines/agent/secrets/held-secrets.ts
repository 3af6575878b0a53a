/** What the secrets of a workload are called, and what is known of each (spec/agent.md §7.1). */
import type { RootParts } from '../secrets-protocol.ts';

/** The workload's own certificate with its key. */
export const identityName = 'default';
/** The roots that its peers' certificates have to lead to. */
export const rootsName = 'ROOTCA';

const certificatePrefix = 'file-cert:';
const rootPrefix = 'file-root:';
/** Certificates of authorities and their revocation lists: `file-root-crl:CA~CRL`. */
const revocationPrefix = 'file-root-crl:';
/** The authorities that the operating system trusts. */
const systemRoots = `${rootPrefix}system`;

/** One that Envoy gets, or will when it is there. */
export interface HeldSecret {
  name: string;
  /** Name of the secret's actor. */
  actor: `secret-${number}`;
  /** Version in force; empty: none. */
  version: string;
  /** Serial number of a certificate that an authority has signed; else empty. */
  serialNumber: string;
  /** What the version is made of. */
  parts: RootParts;
  /** Somebody wants it. */
  isWanted: boolean;
  /** Somebody has wanted it by now, and may go on with what it got. */
  wasWanted: boolean;
  /** What everybody who wants it has taken; empty: nothing yet. */
  acknowledged: string;
  /** Why there is no newer one; empty: nothing is wrong. */
  lacking: string;
  /** Why somebody did not take the version; empty: nobody refused. */
  refused: string;
}

/** The files that a name stands for; undefined: it stands for none. An empty `directory` is not watched. */
export function secretFilesOf(name: string): { directory: string } | undefined {
  if (name === systemRoots) return { directory: '' };
  if (name.startsWith(rootPrefix)) {
    const file = name.slice(rootPrefix.length);
    return file === '' ? undefined : { directory: directoryOf(file) };
  }
  const prefix = [certificatePrefix, revocationPrefix].find((one) => name.startsWith(one));
  if (prefix === undefined) return undefined;
  const [first = '', second = '', ...rest] = name.slice(prefix.length).split('~');
  if (first === '' || second === '' || rest.length > 0) return undefined;
  // A new authority needs a new list, so that a change of the lists tells of both.
  return { directory: directoryOf(prefix === revocationPrefix ? second : first) };
}

function directoryOf(file: string): string {
  const slash = file.lastIndexOf('/');
  if (slash < 0) return '.';
  return slash === 0 ? '/' : file.slice(0, slash);
}

/** Whether everybody who wants it has the version in force; so it is where nobody does. */
export function isAcknowledged({ isWanted, acknowledged, version }: HeldSecret): boolean {
  return !isWanted || acknowledged === version;
}

/** Whether nobody can have an older one: whoever left may have broken off in the midst, and goes on with what it had. */
export function isDistributed({ wasWanted, acknowledged, version }: HeldSecret): boolean {
  return version !== '' && (!wasWanted || acknowledged === version);
}
