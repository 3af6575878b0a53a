/** Extensions of issued certificates (RFC 5280 §4.2). */
import { createHash, type KeyObject } from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AuthorityKeyIdentifier,
  BasicConstraints,
  ExtendedKeyUsage,
  type Extension,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
} from '@peculiar/asn1-x509';

export type ExtensionValue = Pick<Extension, 'extnID' | 'critical' | 'extnValue'>;

export interface Names {
  readonly uris: readonly string[];
  readonly dns: readonly string[];
  readonly ips: readonly string[];
}

/** @param isCritical must be true if the subject is empty */
export function alternativeNamesExtension({ uris, dns, ips }: Names, isCritical: boolean): ExtensionValue {
  const names = [
    ...uris.map((uniformResourceIdentifier) => new GeneralName({ uniformResourceIdentifier })),
    ...dns.map((dNSName) => new GeneralName({ dNSName })),
    ...ips.map((iPAddress) => new GeneralName({ iPAddress })),
  ];
  return extension(id_ce_subjectAltName, isCritical, new SubjectAlternativeName(names));
}

export function leafExtensions(key: KeyObject): ExtensionValue[] {
  const encipherment = key.asymmetricKeyType === 'rsa' ? KeyUsageFlags.keyEncipherment : 0;
  return [
    extension(id_ce_keyUsage, true, new KeyUsage(KeyUsageFlags.digitalSignature | encipherment)),
    extension(id_ce_extKeyUsage, false, new ExtendedKeyUsage([id_kp_serverAuth, id_kp_clientAuth])),
    extension(id_ce_basicConstraints, true, new BasicConstraints({ cA: false })),
  ];
}

/** @param pathLength maximum number of authorities below this one; unlimited if `undefined` */
export function authorityExtensions(pathLength: number | undefined): ExtensionValue[] {
  const constraints = { cA: true, ...(pathLength !== undefined && { pathLenConstraint: pathLength }) };
  return [
    extension(id_ce_keyUsage, true, new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign)),
    extension(id_ce_basicConstraints, true, new BasicConstraints(constraints)),
  ];
}

export function subjectKeyExtension(keyId: Uint8Array): ExtensionValue {
  return extension(id_ce_subjectKeyIdentifier, false, new SubjectKeyIdentifier(keyId));
}

export function authorityKeyExtension(keyId: Uint8Array): ExtensionValue {
  return extension(
    id_ce_authorityKeyIdentifier,
    false,
    new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(keyId) }),
  );
}

const maxKeyTypes = 16;
/** Offset of the key bits by key type and size. OpenSSL writes the same header for all keys of one type and size. */
const keyBitsOffsets = new Map<string, number>();

function keyBitsOf(publicKey: Uint8Array): Uint8Array {
  // The first 24 bytes identify the type, because they contain the headers.
  const kind = `${publicKey.length} ${Buffer.from(publicKey.subarray(0, 24)).toString('hex')}`;
  const cachedOffset = keyBitsOffsets.get(kind);
  if (cachedOffset !== undefined) return publicKey.subarray(cachedOffset);
  const bits = new Uint8Array(AsnConvert.parse(publicKey, SubjectPublicKeyInfo).subjectPublicKey);
  const startOffset = publicKey.length - bits.length;
  if (keyBitsOffsets.size < maxKeyTypes) keyBitsOffsets.set(kind, startOffset);
  return bits;
}

/** First 20 bytes of the SHA-256 of the key (RFC 7093 §2 method 1). Distinguishes two roots with the same name. */
export function keyIdOf(publicKey: Uint8Array): Uint8Array {
  return new Uint8Array(createHash('sha256').update(keyBitsOf(publicKey)).digest().subarray(0, 20));
}

export function extension(extnID: string, isCritical: boolean, value: unknown): ExtensionValue {
  return { extnID, critical: isCritical, extnValue: new OctetString(AsnConvert.serialize(value)) };
}
