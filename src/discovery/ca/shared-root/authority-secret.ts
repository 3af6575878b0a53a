/** Replicas share the Secret of an authority. Private keys and rotation stage are in one object, so that one write updates both. */
import { createPrivateKey } from 'node:crypto';
import type { Journal } from '../../../../machines/discovery/ca/authority.machine.ts';
import type { AuthorityId } from '../../../../machines/discovery/ca/authority-protocol.ts';
import {
  type SharedJournal,
  type SharedOrder,
  sharedOrders,
} from '../../../../machines/discovery/ca/shared-rotation.ts';
import { type Certificate, readCertificates } from '../../../identity/certificate.ts';
import { ChartpilotError, messageOf } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { KubernetesObject } from '../../kubernetes/api-server.ts';
import {
  type AuthorityMaterial,
  buildAuthorityMaterial,
  type NamedTexts,
  parsePluggedInCa,
} from '../authority-material.ts';

/** Istio's type of a self-signed CA. */
export const caSecretType = 'istio.io/ca-root';
export const rotationAnnotation = 'chartpilot/rotation';
export const orderAnnotation = 'chartpilot/order';

export interface ReadAuthority {
  /** Whether an operator created the Secret. Such a Secret is never written. */
  readonly isPluggedIn: boolean;
  readonly journal: SharedJournal;
  readonly materials: ReadonlyMap<AuthorityId, AuthorityMaterial>;
  readonly otherRoots: readonly Certificate[];
  readonly version: string;
  readonly order: SharedOrder | null;
  /** Empty if there is no unsupported order. */
  readonly unknownOrder: string;
}

const names = {
  certificate: 'ca-cert.pem',
  key: 'ca-key.pem',
  chain: 'cert-chain.pem',
  roots: 'root-cert.pem',
} as const;
const otherNames = { certificate: 'other-ca-cert.pem', key: 'other-ca-key.pem' } as const;
const stages: readonly Journal['stage'][] = ['steady', 'trusting', 'signing', 'dropping'];
const maxKeyBytes = 1024 * 1024;
const maxAnnotationLength = 4_096;
const maxOrderLength = 40;

/**
 * Without a stage annotation, Istio or an operator created the Secret, and no rotation is in progress.
 *
 * @throws ChartpilotError CONFIG_INVALID; messages never contain key data
 */
export function readSharedAuthority(object: KubernetesObject, now: Date, maxLeafMs: number): ReadAuthority {
  const texts = textsOf(object);
  const annotations = object.metadata.annotations ?? {};
  const signer = selfSigned(texts, names, now);
  const text = annotations[rotationAnnotation];
  const journal =
    text === undefined
      ? { ...steadyJournal(signer.id, maxLeafMs), since: now.getTime() }
      : journalIn(text, texts.locationOf(rotationAnnotation));
  if (journal.signer !== signer.id) {
    throw invalidSecret(
      texts.locationOf(rotationAnnotation),
      `names the authority ${journal.signer} as signer, but ${names.certificate} has the authority ${signer.id}`,
    );
  }
  const materials = new Map([[signer.id, signer]]);
  if (journal.other !== null) {
    const otherAuthority = selfSigned(texts, otherNames, now);
    if (otherAuthority.id !== journal.other) {
      throw invalidSecret(
        texts.locationOf(rotationAnnotation),
        `names ${journal.other} as the other authority, but ${otherNames.certificate} has the authority ${otherAuthority.id}`,
      );
    }
    materials.set(otherAuthority.id, otherAuthority);
  }
  const hasRotationAnnotation = text !== undefined;
  const otherRoots = !hasRotationAnnotation && texts.has(names.roots) ? certificatesIn(texts, names.roots) : [];
  const writtenOrder = annotations[orderAnnotation] ?? '';
  const order = sharedOrders.find((candidate) => candidate === writtenOrder) ?? null;
  return {
    ...{ isPluggedIn: false, journal, materials, otherRoots, version: object.metadata.resourceVersion ?? '' },
    ...{ order, unknownOrder: order === null ? writtenOrder.slice(0, maxOrderLength) : '' },
  };
}

/**
 * Reads a Secret that an operator created, such as Istio's `cacerts`. All its roots are distributed, so an operator can replace a root.
 *
 * @throws ChartpilotError CONFIG_INVALID
 */
export function readPluggedInAuthority(object: KubernetesObject, now: Date, maxLeafMs: number): ReadAuthority {
  const { material, roots } = parsePluggedInCa(textsOf(object), now);
  return {
    isPluggedIn: true,
    journal: { ...steadyJournal(material.id, maxLeafMs), since: 0 },
    materials: new Map([[material.id, material]]),
    otherRoots: roots,
    version: object.metadata.resourceVersion ?? '',
    order: null,
    unknownOrder: '',
  };
}

/** In the patch, `undefined` removes a key. */
export function dataOf(
  journal: Pick<SharedJournal, 'signer' | 'other'>,
  materials: ReadonlyMap<AuthorityId, AuthorityMaterial>,
  roots: readonly Certificate[],
): Record<string, string | undefined> {
  const signer = materials.get(journal.signer)!;
  const otherMaterial = journal.other === null ? undefined : materials.get(journal.other);
  return {
    [names.certificate]: encodeBase64(signer.issuer.certificate.pem),
    [names.key]: encodeBase64(keyOf(signer)),
    [names.chain]: '',
    [names.roots]: encodeBase64(roots.map(({ pem }) => pem).join('')),
    [otherNames.certificate]: otherMaterial && encodeBase64(otherMaterial.issuer.certificate.pem),
    [otherNames.key]: otherMaterial && encodeBase64(keyOf(otherMaterial)),
  };
}

export function annotationOf({
  stage,
  signer,
  other,
  tainted,
  since,
  maxLeafMs,
  previousSigners,
}: SharedJournal): string {
  return JSON.stringify({
    ...{ stage, signer, other, tainted },
    ...{
      since: new Date(since).toISOString(),
      longestLeafSeconds: Math.ceil(maxLeafMs / 1_000),
      before: previousSigners,
    },
  });
}

function steadyJournal(signer: AuthorityId, maxLeafMs: number): Omit<SharedJournal, 'since'> {
  return { stage: 'steady', signer, other: null, tainted: null, maxLeafMs, previousSigners: [] };
}

function journalIn(text: string, location: string): SharedJournal {
  try {
    if (text.length > maxAnnotationLength)
      throw new Error(`must have at most ${maxAnnotationLength} characters, got ${text.length}`);
    const value: unknown = JSON.parse(text);
    if (!isObject(value)) throw new Error('must be a JSON object');
    const { stage, signer, other = null, tainted = null, since, longestLeafSeconds, before = [] } = value;
    const journalStage = stages.find((candidate) => candidate === stage);
    const sinceMs = Date.parse(String(since));
    if (journalStage === undefined) throw new Error(`stage must be one of ${stages.join(', ')}`);
    if (!isId(signer) || !(other === null || isId(other)))
      throw new Error('signer and other must be IDs of authorities in hexadecimal digits');
    if ((journalStage === 'steady') !== (other === null))
      throw new Error('other must be null in stage steady, and set in all other stages');
    if (!(tainted === null || tainted === signer || tainted === other))
      throw new Error('tainted must be null, signer or other');
    if (!Array.isArray(before) || !before.every(isId)) throw new Error('before must be a list of IDs of authorities');
    if (Number.isNaN(sinceMs)) throw new Error('since must be a time in RFC 3339');
    if (typeof longestLeafSeconds !== 'number' || !(longestLeafSeconds > 0 && longestLeafSeconds < 1e10)) {
      throw new Error('longestLeafSeconds must be a positive number');
    }
    return {
      ...{ stage: journalStage, signer, other, tainted: tainted as AuthorityId | null },
      ...{ since: sinceMs, maxLeafMs: longestLeafSeconds * 1_000, previousSigners: before },
    };
  } catch (error) {
    throw invalidSecret(location, `is invalid: ${messageOf(error)}`, error);
  }
}

function isId(value: unknown): value is AuthorityId {
  return typeof value === 'string' && /^[0-9a-f]{1,128}$/.test(value);
}

/** An expired authority signs nothing, but its metadata is needed, so it is validated at a time within its lifetime. */
function selfSigned(
  texts: NamedTexts,
  { certificate, key }: { certificate: string; key: string },
  now: Date,
): AuthorityMaterial {
  const [signingCertificate, ...intermediates] = certificatesIn(texts, certificate);
  const privateKey = parseNamed(texts, key, (text) => createPrivateKey(text));
  if (!signingCertificate!.x509.checkPrivateKey(privateKey)) {
    throw invalidSecret(texts.locationOf(key), `does not match the certificate in ${certificate}`);
  }
  const roots = [intermediates.at(-1) ?? signingCertificate!];
  const checkedAt =
    signingCertificate!.notAfter <= now ? new Date(signingCertificate!.notAfter.getTime() - 1_000) : now;
  try {
    return buildAuthorityMaterial({ certificate: signingCertificate!, privateKey }, intermediates, roots, checkedAt);
  } catch (error) {
    throw invalidSecret(texts.locationOf(certificate), messageOf(error), error);
  }
}

function certificatesIn(texts: NamedTexts, name: string): Certificate[] {
  return parseNamed(texts, name, readCertificates);
}

function parseNamed<T>(texts: NamedTexts, name: string, parse: (text: string) => T): T {
  const text = texts.text(name);
  try {
    return parse(text);
  } catch (error) {
    throw invalidSecret(texts.locationOf(name), `is not valid PEM: ${messageOf(error)}`, error);
  }
}

/** Istio writes empty values for missing keys. */
function textsOf({ metadata: { namespace = '', name }, data }: KubernetesObject): NamedTexts {
  const fields = isObject(data) ? data : {};
  const placeOf = (key: string): string => `Secret ${namespace}/${name}: ${key}`;
  const valueOf = (key: string): string => {
    const value = Object.hasOwn(fields, key) ? fields[key] : '';
    return typeof value === 'string' ? value : '';
  };
  return {
    locationOf: placeOf,
    has: (key) => valueOf(key) !== '',
    text: (key) => {
      const value = valueOf(key);
      if (value === '') throw invalidSecret(placeOf(key), 'is missing or empty');
      if (value.length > maxKeyBytes)
        throw invalidSecret(placeOf(key), `must have at most ${maxKeyBytes} characters, got ${value.length}`);
      return Buffer.from(value, 'base64').toString();
    },
  };
}

function keyOf({ issuer: { privateKey } }: AuthorityMaterial): string {
  return privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
}

function encodeBase64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function invalidSecret(location: string, problem: string, cause?: unknown): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `${location} ${problem}`, cause === undefined ? {} : { cause });
}
