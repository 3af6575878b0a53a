/** What an authority signs with, from a directory that a person filled (spec/discovery.md §11, "plugged in"). */
import { createPrivateKey } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Certificate, readCertificates } from '../../identity/certificate.ts';
import { endOf, findPath, issuerProblem, nameOf } from '../../identity/certificate-path.ts';
import type { Issuer } from '../../identity/issue.ts';
import { keyProblem } from '../../identity/signature-algorithm.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { readBoundedText } from '../config/bounded-file.ts';

export interface AuthorityMaterial {
  /** Of the signing certificate, in hexadecimal: the name of this authority in events, traces and the journal. */
  readonly id: string;
  readonly issuer: Issuer;
  /** From the signing certificate, over what is between, to the root; one when the root signs itself. */
  readonly path: readonly Certificate[];
  readonly root: Certificate;
  /** No certificate that is signed may last longer. */
  readonly notAfter: Date;
  /** PEM; of its issuer or of several. */
  readonly revocationLists?: string;
}

interface FileNames {
  readonly key: string;
  /** The signing certificate; what leads to the root may follow it. */
  readonly certificate: string;
  readonly root: string;
  readonly chain?: string;
}

/** Istio's own names, and those of a Secret of type TLS. */
const conventions: readonly FileNames[] = [
  { key: 'ca-key.pem', certificate: 'ca-cert.pem', root: 'root-cert.pem', chain: 'cert-chain.pem' },
  { key: 'tls.key', certificate: 'tls.crt', root: 'ca.crt' },
];
const revocationFile = 'ca-crl.pem';

const mostFileBytes = 1024 * 1024;

/** Whether somebody meant to plug an authority in here: one of its files is there. */
export function isPluggedIn(directory: string): boolean {
  return conventions.some(({ key, certificate }) =>
    [key, certificate].some((name) => existsSync(join(directory, name))),
  );
}

/**
 * Reads the directory and sees whether what is there can sign: all is PEM, the key is the certificate's, and its chain leads
 * to the root at this time.
 *
 * @throws ChartpilotError FILE_UNREADABLE or CONFIG_INVALID, with the file
 */
export function readPluggedIn(directory: string, now: Date): AuthorityMaterial {
  const names = conventions.find(({ key }) => existsSync(join(directory, key))) ?? conventions[0]!;
  const fileOf = (name: string): string => join(directory, name);
  const own = certificatesOf(fileOf(names.certificate));
  const roots = certificatesOf(fileOf(names.root));
  const chain = names.chain !== undefined && existsSync(fileOf(names.chain)) ? certificatesOf(fileOf(names.chain)) : [];
  const [certificate, ...others] = own;
  const privateKey = parsed(fileOf(names.key), (text) => createPrivateKey(text));
  if (!certificate!.x509.checkPrivateKey(privateKey)) {
    throw invalid(fileOf(names.key), `is not the key of the certificate in ${fileOf(names.certificate)}`);
  }
  const lists = existsSync(fileOf(revocationFile)) ? { revocationLists: textOf(fileOf(revocationFile)) } : {};
  try {
    return { ...materialOf({ certificate: certificate!, privateKey }, [...others, ...chain], roots, now), ...lists };
  } catch (error) {
    throw invalid(fileOf(names.certificate), messageOf(error), error);
  }
}

/**
 * @param between in any order
 * @param roots of which one must be reached
 * @throws Error for what cannot sign at this time
 */
export function materialOf(
  issuer: Issuer,
  between: readonly Certificate[],
  roots: readonly Certificate[],
  at: Date,
): AuthorityMaterial {
  const { certificate } = issuer;
  const problem = issuerProblem(certificate) ?? keyProblem(certificate.publicKey);
  if (problem !== undefined) throw new Error(`${nameOf(certificate)} ${problem}`);
  const answer = findPath({ certificate, intermediates: between, roots, at });
  if ('problem' in answer) throw new Error(`${nameOf(certificate)} does not lead to the root: ${answer.problem}`);
  const { path } = answer;
  return {
    id: certificate.subjectKeyId ?? certificate.sha256,
    issuer,
    path,
    root: path.at(-1)!,
    notAfter: endOf(path),
  };
}

function certificatesOf(file: string): Certificate[] {
  return parsed(file, readCertificates);
}

function parsed<T>(file: string, parse: (text: string) => T): T {
  const text = textOf(file);
  try {
    return parse(text);
  } catch (error) {
    throw invalid(file, `is not PEM as it should be: ${messageOf(error)}`, error);
  }
}

function textOf(file: string): string {
  try {
    return readBoundedText(file, mostFileBytes);
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `${file}: ${messageOf(error)}`, { cause: error });
  }
}

function invalid(file: string, what: string, cause?: unknown): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `${file} ${what}`, cause === undefined ? {} : { cause });
}
