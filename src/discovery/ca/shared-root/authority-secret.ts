/**
 * The Secret in which replicas share an authority: what Istio has in it, under the same names, and beside it what a rotation needs. Keys and
 * stage are one object, so that they are written at once or not at all; the stage is an annotation, which people see without the keys.
 */
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
import { type AuthorityMaterial, materialOf, type NamedTexts, pluggedInOf } from '../authority-material.ts';

/** Istio's, of an authority that signs itself. */
export const secretType = 'istio.io/ca-root';
export const rotationAnnotation = 'chartpilot/rotation';
export const orderAnnotation = 'chartpilot/order';

/** What was read of a Secret, and can sign. */
export interface ReadAuthority {
  /** A person's own Secret, which is never written; else the one that replicas share. */
  readonly isPluggedIn: boolean;
  readonly journal: SharedJournal;
  /** Those of the journal. */
  readonly materials: ReadonlyMap<AuthorityId, AuthorityMaterial>;
  /** What is given out beside the roots of the journal's authorities. */
  readonly otherRoots: readonly Certificate[];
  readonly version: string;
  readonly order: SharedOrder | null;
  /** What is no order; empty: there is none, or it is one. */
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
const mostKeyBytes = 1024 * 1024;
const mostAnnotation = 4_096;
const longestOrder = 40;

/**
 * Of the Secret that replicas share. Where it has no stage, it is Istio's, or a person's, and at rest.
 *
 * @param longestLeafMs where it says none
 * @throws ChartpilotError CONFIG_INVALID; no message has anything of a key in it
 */
export function readShared(object: KubernetesObject, now: Date, longestLeafMs: number): ReadAuthority {
  const texts = textsOf(object);
  const annotations = object.metadata.annotations ?? {};
  const signer = selfSigned(texts, names, now);
  const text = annotations[rotationAnnotation];
  const journal =
    text === undefined
      ? { ...steady(signer.id, longestLeafMs), since: now.getTime() }
      : journalIn(text, texts.placeOf(rotationAnnotation));
  if (journal.signer !== signer.id) {
    throw invalid(
      texts.placeOf(rotationAnnotation),
      `names the authority ${journal.signer} as signer, but ${names.certificate} has the authority ${signer.id}`,
    );
  }
  const materials = new Map([[signer.id, signer]]);
  if (journal.other !== null) {
    const other = selfSigned(texts, otherNames, now);
    if (other.id !== journal.other) {
      throw invalid(
        texts.placeOf(rotationAnnotation),
        `names ${journal.other} as the other authority, but ${otherNames.certificate} has the authority ${other.id}`,
      );
    }
    materials.set(other.id, other);
  }
  const isOurs = text !== undefined;
  const otherRoots = !isOurs && texts.has(names.roots) ? certificatesIn(texts, names.roots) : [];
  const given = annotations[orderAnnotation] ?? '';
  const order = sharedOrders.find((one) => one === given) ?? null;
  return {
    ...{ isPluggedIn: false, journal, materials, otherRoots, version: object.metadata.resourceVersion ?? '' },
    ...{ order, unknownOrder: order === null ? given.slice(0, longestOrder) : '' },
  };
}

/**
 * Of a Secret that a person filled, as Istio's `cacerts`. All that is in its roots is given out: so a person leads from one root to another.
 *
 * @throws ChartpilotError CONFIG_INVALID
 */
export function readPlugged(object: KubernetesObject, now: Date, longestLeafMs: number): ReadAuthority {
  const { material, roots } = pluggedInOf(textsOf(object), now);
  return {
    isPluggedIn: true,
    journal: { ...steady(material.id, longestLeafMs), since: 0 },
    materials: new Map([[material.id, material]]),
    otherRoots: roots,
    version: object.metadata.resourceVersion ?? '',
    order: null,
    unknownOrder: '',
  };
}

/** What such a Secret has of these, each key of it; undefined: it is to have it no more. */
export function dataOf(
  journal: Pick<SharedJournal, 'signer' | 'other'>,
  materials: ReadonlyMap<AuthorityId, AuthorityMaterial>,
  roots: readonly Certificate[],
): Record<string, string | undefined> {
  const signer = materials.get(journal.signer)!;
  const other = journal.other === null ? undefined : materials.get(journal.other);
  return {
    [names.certificate]: encoded(signer.issuer.certificate.pem),
    [names.key]: encoded(keyOf(signer)),
    [names.chain]: '',
    [names.roots]: encoded(roots.map(({ pem }) => pem).join('')),
    [otherNames.certificate]: other && encoded(other.issuer.certificate.pem),
    [otherNames.key]: other && encoded(keyOf(other)),
  };
}

export function annotationOf({ stage, signer, other, tainted, since, longestLeafMs, before }: SharedJournal): string {
  return JSON.stringify({
    ...{ stage, signer, other, tainted },
    ...{ since: new Date(since).toISOString(), longestLeafSeconds: Math.ceil(longestLeafMs / 1_000), before },
  });
}

function steady(signer: AuthorityId, longestLeafMs: number): Omit<SharedJournal, 'since'> {
  return { stage: 'steady', signer, other: null, tainted: null, longestLeafMs, before: [] };
}

function journalIn(text: string, place: string): SharedJournal {
  try {
    if (text.length > mostAnnotation)
      throw new Error(`must have at most ${mostAnnotation} characters, got ${text.length}`);
    const value: unknown = JSON.parse(text);
    if (!isObject(value)) throw new Error('must be a JSON object');
    const { stage, signer, other = null, tainted = null, since, longestLeafSeconds, before = [] } = value;
    const found = stages.find((one) => one === stage);
    const sinceMs = Date.parse(String(since));
    if (found === undefined) throw new Error(`stage must be one of ${stages.join(', ')}`);
    if (!isId(signer) || !(other === null || isId(other)))
      throw new Error('signer and other must be IDs of authorities in hexadecimal digits');
    if ((found === 'steady') !== (other === null))
      throw new Error('other must be null in stage steady, and set in all other stages');
    if (!(tainted === null || tainted === signer || tainted === other))
      throw new Error('tainted must be null, signer or other');
    if (!Array.isArray(before) || !before.every(isId)) throw new Error('before must be a list of IDs of authorities');
    if (Number.isNaN(sinceMs)) throw new Error('since must be a time in RFC 3339');
    if (typeof longestLeafSeconds !== 'number' || !(longestLeafSeconds > 0 && longestLeafSeconds < 1e10)) {
      throw new Error('longestLeafSeconds must be a positive number');
    }
    return {
      ...{ stage: found, signer, other, tainted: tainted as AuthorityId | null },
      ...{ since: sinceMs, longestLeafMs: longestLeafSeconds * 1_000, before },
    };
  } catch (error) {
    throw invalid(place, `is invalid: ${messageOf(error)}`, error);
  }
}

function isId(value: unknown): value is AuthorityId {
  return typeof value === 'string' && /^[0-9a-f]{1,128}$/.test(value);
}

/** One that has ended is read as of its own time: it signs nothing, but what is to be known of it is. */
function selfSigned(
  texts: NamedTexts,
  { certificate, key }: { certificate: string; key: string },
  now: Date,
): AuthorityMaterial {
  const [own, ...between] = certificatesIn(texts, certificate);
  const privateKey = parsed(texts, key, (text) => createPrivateKey(text));
  if (!own!.x509.checkPrivateKey(privateKey)) {
    throw invalid(texts.placeOf(key), `does not match the certificate in ${certificate}`);
  }
  const roots = [between.at(-1) ?? own!];
  const at = own!.notAfter <= now ? new Date(own!.notAfter.getTime() - 1_000) : now;
  try {
    return materialOf({ certificate: own!, privateKey }, between, roots, at);
  } catch (error) {
    throw invalid(texts.placeOf(certificate), messageOf(error), error);
  }
}

function certificatesIn(texts: NamedTexts, name: string): Certificate[] {
  return parsed(texts, name, readCertificates);
}

function parsed<T>(texts: NamedTexts, name: string, parse: (text: string) => T): T {
  const text = texts.text(name);
  try {
    return parse(text);
  } catch (error) {
    throw invalid(texts.placeOf(name), `is not valid PEM: ${messageOf(error)}`, error);
  }
}

/** An empty key counts as absent: Istio writes some. */
function textsOf({ metadata: { namespace = '', name }, data }: KubernetesObject): NamedTexts {
  const fields = isObject(data) ? data : {};
  const placeOf = (key: string): string => `Secret ${namespace}/${name}: ${key}`;
  const valueOf = (key: string): string => {
    const value = Object.hasOwn(fields, key) ? fields[key] : '';
    return typeof value === 'string' ? value : '';
  };
  return {
    placeOf,
    has: (key) => valueOf(key) !== '',
    text: (key) => {
      const value = valueOf(key);
      if (value === '') throw invalid(placeOf(key), 'is missing or empty');
      if (value.length > mostKeyBytes)
        throw invalid(placeOf(key), `must have at most ${mostKeyBytes} characters, got ${value.length}`);
      return Buffer.from(value, 'base64').toString();
    },
  };
}

function keyOf({ issuer: { privateKey } }: AuthorityMaterial): string {
  return privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64');
}

function invalid(place: string, what: string, cause?: unknown): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `${place} ${what}`, cause === undefined ? {} : { cause });
}
