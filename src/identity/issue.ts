import { createPublicKey, type KeyObject, randomBytes } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  AttributeTypeAndValue,
  AttributeValue,
  CertificateList,
  CRLNumber,
  Extension,
  id_ce_cRLNumber,
  Name,
  RelativeDistinguishedName,
  RevokedCertificate,
  TBSCertList,
  Time,
  Version,
} from '@peculiar/asn1-x509';
import type { Certificate } from './certificate.ts';
import {
  alternativeNamesExtension,
  authorityExtensions,
  authorityKeyExtension,
  type ExtensionValue,
  extension,
  keyIdOf,
  leafExtensions,
  type Names,
  subjectKeyExtension,
} from './certificate-extensions.ts';
import * as der from './der.ts';
import { pemOf } from './pem.ts';
import { algorithmOf, identifierOf, signatureOf } from './signature-algorithm.ts';

/** Validity in integer seconds. */
export interface ValidityPeriod {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Certificates become valid this long before their issue, because clocks of other hosts may be behind. */
export const backdatingMs = 2 * 60_000;

export interface Issuer {
  readonly certificate: Certificate;
  readonly privateKey: KeyObject;
}

const commonName = '2.5.4.3';
const organization = '2.5.4.10';

export interface RootSubject {
  readonly organization: string;
  /** Must be unique: two roots with the same name break verification. */
  readonly commonName: string;
}

export function issueRoot(privateKey: KeyObject, subject: RootSubject, lifetime: ValidityPeriod): Uint8Array {
  const publicKey = spkiOf(createPublicKey(privateKey));
  const name = new Uint8Array(AsnConvert.serialize(nameOf(subject)));
  const keyId = keyIdOf(publicKey);
  return signCertificate(privateKey, {
    issuer: name,
    subject: name,
    publicKey,
    lifetime,
    extensions: encodeExtensions([
      ...authorityExtensions(undefined),
      subjectKeyExtension(keyId),
      authorityKeyExtension(keyId),
    ]),
  });
}

/** The issued authority can sign only leaf certificates. */
export function issueIntermediate(
  issuer: Issuer,
  publicKey: KeyObject,
  subject: RootSubject,
  lifetime: ValidityPeriod,
): Uint8Array {
  const spki = spkiOf(publicKey);
  return signCertificate(issuer.privateKey, {
    issuer: issuer.certificate.subject,
    subject: new Uint8Array(AsnConvert.serialize(nameOf(subject))),
    publicKey: spki,
    lifetime,
    extensions: encodeExtensions([
      ...authorityExtensions(0),
      subjectKeyExtension(keyIdOf(spki)),
      ...keyOfIssuer(issuer),
    ]),
  });
}

/** The certificate has an empty subject. */
export function issueLeaf(issuer: Issuer, publicKey: KeyObject, names: Names, lifetime: ValidityPeriod): Uint8Array {
  const spki = spkiOf(publicKey);
  return signCertificate(issuer.privateKey, {
    issuer: issuer.certificate.subject,
    subject: emptyName,
    publicKey: spki,
    lifetime,
    extensions: [
      ...fixedExtensionsOf(publicKey),
      alternativeNamesOf(names),
      der.encodeExtension(subjectKeyIdentifier, false, der.octetString(keyIdOf(spki))),
      ...issuerKeyOf(issuer),
    ],
  });
}

export interface Revocations {
  readonly number: number;
  readonly thisUpdate: Date;
  readonly nextUpdate: Date;
  readonly revoked: readonly { readonly serialNumber: string; readonly at: Date }[];
}

/** Issues a CRL in PEM, possibly empty: if one root has a CRL, each must have one. */
export function issueRevocationList(issuer: Issuer, list: Revocations): string {
  const algorithm = identifierOf(algorithmOf(issuer.privateKey));
  const tbs = new TBSCertList({
    version: Version.v2,
    signature: algorithm,
    issuer: AsnConvert.parse(issuer.certificate.subject, Name),
    thisUpdate: new Time(list.thisUpdate),
    nextUpdate: new Time(list.nextUpdate),
    ...(list.revoked.length > 0 && {
      revokedCertificates: list.revoked.map(
        ({ serialNumber, at }) =>
          new RevokedCertificate({
            userCertificate: arrayBufferOf(asPositiveInteger(Buffer.from(serialNumber, 'hex'))),
            revocationDate: new Time(at),
          }),
      ),
    }),
    crlExtensions: [...keyOfIssuer(issuer), extension(id_ce_cRLNumber, false, new CRLNumber(list.number))].map(
      (value) => new Extension(value),
    ),
  });
  const encodedList = new CertificateList({
    tbsCertList: tbs,
    signatureAlgorithm: algorithm,
    signature: signatureOf(new Uint8Array(AsnConvert.serialize(tbs)), issuer.privateKey),
  });
  return pemOf('X509 CRL', new Uint8Array(AsnConvert.serialize(encodedList)));
}

interface CertificateContents {
  /** DER. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  /** DER. */
  readonly publicKey: Uint8Array;
  readonly lifetime: ValidityPeriod;
  /** DER. */
  readonly extensions: readonly Uint8Array[];
}

function spkiOf(publicKey: KeyObject): Uint8Array {
  return publicKey.export({ format: 'der', type: 'spki' });
}

const version3 = der.encodeExplicit(0, der.encodeInteger(Uint8Array.of(2)));
const emptyName = der.encodeSequence();

function signCertificate(
  key: KeyObject,
  { issuer, subject, publicKey, lifetime, extensions }: CertificateContents,
): Uint8Array {
  const algorithm = identifierDerOf(key);
  const tbs = der.encodeSequence(
    version3,
    der.encodeInteger(randomSerialNumber()),
    algorithm,
    issuer,
    der.encodeSequence(der.encodeTime(lifetime.notBefore), der.encodeTime(lifetime.notAfter)),
    subject,
    publicKey,
    der.encodeExplicit(3, der.encodeSequence(...extensions)),
  );
  return new Uint8Array(der.encodeSequence(tbs, algorithm, der.bitString(new Uint8Array(signatureOf(tbs, key)))));
}

/** The identifiers of a key type are the same for all certificates. */
const algorithmIdentifiers = new Map<string, Uint8Array>();

function identifierDerOf(key: KeyObject): Uint8Array {
  const algorithm = algorithmOf(key);
  const cachedIdentifier = algorithmIdentifiers.get(algorithm.id);
  if (cachedIdentifier !== undefined) return cachedIdentifier;
  const encodedIdentifier = new Uint8Array(AsnConvert.serialize(identifierOf(algorithm)));
  algorithmIdentifiers.set(algorithm.id, encodedIdentifier);
  return encodedIdentifier;
}

const subjectKeyIdentifier = der.encodeObjectIdentifier('2.5.29.14');
const subjectAltName = der.encodeObjectIdentifier('2.5.29.17');

/** Encodes URIs directly, because the schema is slower. Workload certificates contain only URIs. */
function alternativeNamesOf(names: Names): Uint8Array {
  const { uris, dns, ips } = names;
  if (dns.length > 0 || ips.length > 0) return encodeExtensions([alternativeNamesExtension(names, true)])[0]!;
  return der.encodeExtension(
    subjectAltName,
    true,
    der.encodeSequence(...uris.map((uri) => der.encodeImplicit(6, der.encodeIa5String(uri)))),
  );
}

const fixedExtensions = new Map<string, readonly Uint8Array[]>();

function fixedExtensionsOf(publicKey: KeyObject): readonly Uint8Array[] {
  const kind = publicKey.asymmetricKeyType ?? '';
  const cachedExtensions = fixedExtensions.get(kind);
  if (cachedExtensions !== undefined) return cachedExtensions;
  const encodedExtensions = encodeExtensions(leafExtensions(publicKey));
  fixedExtensions.set(kind, encodedExtensions);
  return encodedExtensions;
}

const issuerKeys = new WeakMap<Certificate, readonly Uint8Array[]>();

function issuerKeyOf(issuer: Issuer): readonly Uint8Array[] {
  const cachedKey = issuerKeys.get(issuer.certificate);
  if (cachedKey !== undefined) return cachedKey;
  const encodedKey = encodeExtensions(keyOfIssuer(issuer));
  issuerKeys.set(issuer.certificate, encodedKey);
  return encodedKey;
}

function encodeExtensions(extensions: readonly ExtensionValue[]): readonly Uint8Array[] {
  return extensions.map((value) => new Uint8Array(AsnConvert.serialize(new Extension(value))));
}

/** Distinguishes issuers with the same name. */
function keyOfIssuer({ certificate }: Issuer): ExtensionValue[] {
  const { subjectKeyId } = certificate;
  return subjectKeyId === undefined ? [] : [authorityKeyExtension(new Uint8Array(Buffer.from(subjectKeyId, 'hex')))];
}

function nameOf(subject: RootSubject): Name {
  const nameAttribute = (type: string, utf8String: string): RelativeDistinguishedName =>
    new RelativeDistinguishedName([new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String }) })]);
  return new Name([nameAttribute(organization, subject.organization), nameAttribute(commonName, subject.commonName)]);
}

/** 127 random bits, positive and not zero (RFC 5280 §4.1.2.2). */
function randomSerialNumber(): Uint8Array {
  const bytes = new Uint8Array(randomBytes(16));
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return bytes;
}

/** Without a leading zero, an ASN.1 integer whose first bit is set is negative. */
function asPositiveInteger(bytes: Uint8Array): Uint8Array {
  return bytes.length === 0 || bytes[0]! >= 0x80 ? new Uint8Array([0, ...bytes]) : new Uint8Array(bytes);
}

function arrayBufferOf(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
