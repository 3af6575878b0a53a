import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority, type IssuedCertificate, loadAuthority } from './authority.ts';
import { replaceFiles, swapMountedFiles } from './certificate-directory.ts';

/** Locations of an authority and of one server's certificate. */
export interface ServerCertificates {
  /** Contains `ca.crt`, and `ca.key` to issue more certificates. */
  readonly authorityDirectory: string;
  /** Contains `tls.crt` and `tls.key` in the layout of a mounted Kubernetes Secret: the directory to watch. */
  readonly directory: string;
  readonly caFile: string;
  /** Names in the server certificate. */
  readonly hosts: readonly string[];
}

/** Creates an authority and a first certificate below a directory. */
export function createServerCertificates(root: string, hosts: readonly string[]): ServerCertificates {
  const authorityDirectory = join(root, 'authority');
  mkdirSync(authorityDirectory, { recursive: true });
  const authority = createAuthority();
  replaceFiles(authorityDirectory, {
    'ca.crt': authority.certificate,
    'ca.key': authority.privateKey,
    hosts: hosts.join('\n'),
  });
  const certificates = openServerCertificates(root);
  renewServerCertificate(certificates);
  return certificates;
}

/** Opens the certificates of {@link createServerCertificates} below this directory. */
export function openServerCertificates(root: string): ServerCertificates {
  const authorityDirectory = join(root, 'authority');
  return {
    authorityDirectory,
    directory: join(root, 'server'),
    caFile: join(authorityDirectory, 'ca.crt'),
    hosts: readFileSync(join(authorityDirectory, 'hosts'), 'utf8').split('\n'),
  };
}

/** Issues a new certificate and replaces the old one and its key atomically. */
export function renewServerCertificate(certificates: ServerCertificates): IssuedCertificate {
  const { authorityDirectory, directory, hosts } = certificates;
  const read = (name: string): string => readFileSync(join(authorityDirectory, name), 'utf8');
  const issuedCertificate = loadAuthority(read('ca.crt'), read('ca.key')).issue(hosts);
  swapMountedFiles(directory, { 'tls.crt': issuedCertificate.certificate, 'tls.key': issuedCertificate.privateKey });
  return issuedCertificate;
}
