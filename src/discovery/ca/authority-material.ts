/** What an authority signs with, from a directory or a Secret that a person filled (spec/discovery.md §11, "plugged in"). */
import { createPrivateKey } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AuthorityId } from '../../../machines/discovery/ca/authority-protocol.ts';
import { type Certificate, readCertificates, rootKeyOf } from '../../identity/certificate.ts';
import { endOf, findPath, issuerProblem, nameOf } from '../../identity/certificate-path.ts';
import type { Issuer } from '../../identity/issue.ts';
import { keyProblem } from '../../identity/signature-algorithm.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { readBoundedText } from '../../runtime/files/bounded-file.ts';
import { readTogetherSync } from '../../runtime/files/read-together.ts';

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

/**
 * The ids under which the ledger may have certificates that hang on the root of an authority, the one of new certificates first: that of the
 * root, whichever intermediate signed. Lines of before have that of the authority.
 */
export function ledgerIdsOf({ id, root }: Pick<AuthorityMaterial, 'id' | 'root'>): [AuthorityId, ...AuthorityId[]] {
  return [rootKeyOf(root), id];
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

/** Texts by their names: files of a directory, or keys of a Secret. */
export interface NamedTexts {
  has(name: string): boolean;
  /** @throws ChartpilotError FILE_UNREADABLE */
  text(name: string): string;
  /** How people call it. */
  placeOf(name: string): string;
}

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
  const placeOf = (name: string): string => join(directory, name);
  return readTogetherSync((at) => {
    const placed = (name: string): string => at(placeOf(name));
    const has = (name: string): boolean => existsSync(placed(name));
    return pluggedInOf({ has, text: (name) => textOf(placed(name)), placeOf }, now).material;
  });
}

/** An authority, and the roots that lie beside it, one of which is its own. */
export interface PluggedIn {
  readonly material: AuthorityMaterial;
  readonly roots: readonly Certificate[];
}

/** @throws ChartpilotError FILE_UNREADABLE or CONFIG_INVALID, with the place */
export function pluggedInOf(texts: NamedTexts, now: Date): PluggedIn {
  const names = conventions.find(({ key }) => texts.has(key)) ?? conventions[0]!;
  const certificatesOf = (name: string): Certificate[] => parsed(texts, name, readCertificates);
  const own = certificatesOf(names.certificate);
  const roots = certificatesOf(names.root);
  const chain = names.chain !== undefined && texts.has(names.chain) ? certificatesOf(names.chain) : [];
  const [certificate, ...others] = own;
  const privateKey = parsed(texts, names.key, (text) => createPrivateKey(text));
  if (!certificate!.x509.checkPrivateKey(privateKey)) {
    throw invalid(texts.placeOf(names.key), `does not match the certificate in ${texts.placeOf(names.certificate)}`);
  }
  const lists = texts.has(revocationFile) ? { revocationLists: texts.text(revocationFile) } : {};
  try {
    const material = materialOf({ certificate: certificate!, privateKey }, [...others, ...chain], roots, now);
    return { material: { ...material, ...lists }, roots };
  } catch (error) {
    throw invalid(texts.placeOf(names.certificate), messageOf(error), error);
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
  if (problem !== undefined) throw new Error(`${nameOf(certificate)} ${problem.message}`);
  const answer = findPath({ certificate, intermediates: between, roots, at });
  if ('problem' in answer)
    throw new Error(`${nameOf(certificate)} has no valid chain to a root certificate: ${answer.problem}`);
  const { path } = answer;
  return {
    id: certificate.subjectKeyId ?? certificate.sha256,
    issuer,
    path,
    root: path.at(-1)!,
    notAfter: endOf(path),
  };
}

function parsed<T>(texts: NamedTexts, name: string, parse: (text: string) => T): T {
  const text = texts.text(name);
  try {
    return parse(text);
  } catch (error) {
    throw invalid(texts.placeOf(name), `is not valid PEM: ${messageOf(error)}`, error);
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
