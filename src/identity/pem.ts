import { X509Certificate } from 'node:crypto';
import { CertificateError, problemOf } from './certificate-problem.ts';

export interface PemBlock {
  readonly label: string;
  readonly der: Uint8Array;
  readonly text: string;
}

export class PemError extends CertificateError {
  override readonly name = 'PemError';

  constructor(message: string) {
    super(problemOf('PEM_INVALID', message));
  }
}

/** Exceeds any chain or bundle of a mesh. */
const maxBlocks = 1000;

/**
 * Ignores text between blocks.
 *
 * @throws PemError for an incomplete block, invalid base64, or too many blocks
 */
export function pemBlocks(text: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  const beginLine = /^-----BEGIN ([A-Z0-9 ]{1,60})-----[ \t]*\r?$/gm;
  for (let match = beginLine.exec(text); match !== null; match = beginLine.exec(text)) {
    const label = match[1]!;
    const footer = `-----END ${label}-----`;
    const endIndex = text.indexOf(footer, beginLine.lastIndex);
    if (endIndex < 0) throw new PemError(`PEM block "${label}" is not terminated`);
    if (blocks.length === maxBlocks) throw new PemError(`must have at most ${maxBlocks} PEM blocks`);
    const body = text.slice(beginLine.lastIndex, endIndex).replaceAll(/\s+/g, '');
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(body) || body.length % 4 !== 0) {
      throw new PemError(`PEM block "${label}" is not base64`);
    }
    const der = new Uint8Array(Buffer.from(body, 'base64'));
    blocks.push({ label, der, text: pemOf(label, der) });
    beginLine.lastIndex = endIndex + footer.length;
  }
  return blocks;
}

/**
 * Loads less code than {@link readCertificates}, which parses more fields.
 *
 * @throws PemError, or OpenSSL's error for an invalid certificate
 */
export function certificatesIn(text: string): X509Certificate[] {
  return pemBlocks(text)
    .filter(({ label }) => label === 'CERTIFICATE')
    .map(({ der }) => new X509Certificate(der));
}

export function pemOf(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
