/** A certificate authority for tests and the demo: X.509 v3 (RFC 5280) with ECDSA P-256. It encodes DER itself, because openssl may be missing. */
import {
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  type KeyPairKeyObjectResult,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { isIPv4 } from 'node:net';
import * as der from '../../src/identity/der.ts';

export interface IssuedCertificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS#8. */
  readonly privateKey: string;
  /** Upper-case hexadecimal, as in Node's TLS sockets and the load generator's report. */
  readonly serialNumber: string;
}

export interface CertificateAuthority extends IssuedCertificate {
  /**
   * Issues a certificate for a server or client with these DNS names, IPv4 addresses and URIs. Each has a unique serial
   * number.
   */
  issue(hosts: readonly string[], keys?: KeyPairKeyObjectResult): IssuedCertificate;
}

const ecdsaWithSha256 = der.encodeSequence(der.encodeObjectIdentifier('1.2.840.10045.4.3.2'));
/** serverAuth, clientAuth. */
const usages = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'];
const dayMs = 24 * 60 * 60 * 1_000;

export function createAuthority(name = 'chartpilot test authority'): CertificateAuthority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const extensions = [
    extension('2.5.29.19', der.encodeSequence(der.encodeBoolean(true)), { critical: true }), // basicConstraints: an authority
    extension('2.5.29.15', der.bitString(Buffer.of(0b0000_0110), 1), { critical: true }), // keyUsage: keyCertSign, cRLSign
  ];
  const root = certify({ subject: name, issuer: name, publicKey: keys.publicKey, signer: keys.privateKey, extensions });
  return authorityFrom({ ...root, privateKey: pemOf(keys.privateKey) });
}

/** Loads an existing authority from its PEM files. */
export function loadAuthority(certificate: string, privateKey: string): CertificateAuthority {
  const serialNumber = new X509Certificate(certificate).serialNumber;
  return authorityFrom({ certificate, privateKey, serialNumber });
}

function authorityFrom(root: IssuedCertificate): CertificateAuthority {
  const signer = createPrivateKey(root.privateKey);
  const issuer = /CN=(.*)/.exec(new X509Certificate(root.certificate).subject)?.[1] ?? '';
  return {
    ...root,
    issue(hosts, keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })) {
      const extensions = [
        extension('2.5.29.15', der.bitString(Buffer.of(0b1000_0000), 7), { critical: true }), // keyUsage: digitalSignature
        extension('2.5.29.37', der.encodeSequence(...usages.map(der.encodeObjectIdentifier))), // extKeyUsage
        extension('2.5.29.17', der.encodeSequence(...hosts.map(generalName))), // subjectAltName
      ];
      const subject = hosts[0] ?? 'server';
      return {
        ...certify({ subject, issuer, publicKey: keys.publicKey, signer, extensions }),
        privateKey: pemOf(keys.privateKey),
      };
    },
  };
}

interface CertificateRequest {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly extensions: readonly Buffer[];
}

function certify(request: CertificateRequest): Omit<IssuedCertificate, 'privateKey'> {
  const serial = randomBytes(16);
  // Positive and of full length, so that every tool prints the same number.
  serial[0] = (serial[0]! & 0x3f) | 0x40;
  const now = Date.now();
  const toBeSigned = der.encodeSequence(
    der.encodeExplicit(0, der.encodeInteger(Buffer.of(2))), // version 3
    der.encodeInteger(serial),
    ecdsaWithSha256,
    distinguishedName(request.issuer),
    der.encodeSequence(der.encodeTime(new Date(now - dayMs)), der.encodeTime(new Date(now + 365 * dayMs))),
    distinguishedName(request.subject),
    request.publicKey.export({ type: 'spki', format: 'der' }),
    der.encodeExplicit(3, der.encodeSequence(...request.extensions)),
  );
  const signature = sign('sha256', toBeSigned, request.signer);
  const certificate = der.encodeSequence(toBeSigned, ecdsaWithSha256, der.bitString(signature));
  return {
    certificate: new X509Certificate(certificate).toString(),
    serialNumber: serial.toString('hex').toUpperCase(),
  };
}

function distinguishedName(commonName: string): Buffer {
  return der.encodeSequence(
    der.set(der.encodeSequence(der.encodeObjectIdentifier('2.5.4.3'), der.utf8String(commonName))),
  );
}

function generalName(host: string): Buffer {
  if (host.includes('://')) return der.encodeImplicit(6, Buffer.from(host));
  return isIPv4(host)
    ? der.encodeImplicit(7, Buffer.from(host.split('.').map(Number)))
    : der.encodeImplicit(2, Buffer.from(host));
}

function extension(id: string, value: Buffer, options: { readonly critical?: boolean } = {}): Buffer {
  const critical = options.critical === true ? [der.encodeBoolean(true)] : [];
  return der.encodeSequence(der.encodeObjectIdentifier(id), ...critical, der.octetString(value));
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
