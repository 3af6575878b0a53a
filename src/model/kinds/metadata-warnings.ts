/** Warns of annotations and labels without effect: known keys that this kind does not use, and unknown keys in Istio's domains. */
import { type FieldError, fieldPath } from '../fields/decode.ts';
import { maxEffectWarnings } from '../fields/effect.ts';
import { nearestName } from '../fields/nearest-name.ts';
import type { KindName } from './index.ts';
import type { MetadataTexts } from './kind.ts';
import { annotationKeys, labelKeys, type MetadataKey } from './metadata-keys.ts';

const keysByPart = { annotations: annotationKeys, labels: labelKeys } as const;
const otherMetadataPart = { annotations: 'labels', labels: 'annotations' } as const;

type MetadataPart = keyof typeof keysByPart;

/** Domains whose keys are all known, for `istio.io` including subdomains. */
const [istioDomain, gatewayDomain] = ['istio.io', 'gateway.networking.k8s.io'];

export function metadataWarnings(kind: KindName, { annotations, labels }: MetadataTexts): FieldError[] {
  return [...warningsOf(kind, 'annotations', annotations), ...warningsOf(kind, 'labels', labels)];
}

function warningsOf(
  kind: KindName,
  metadataPart: MetadataPart,
  writtenTexts: Readonly<Record<string, string>>,
): FieldError[] {
  const keyWarnings: FieldError[] = [];
  for (const key in writtenTexts) {
    const slash = key.indexOf('/');
    if (slash <= 0) continue;
    const reason = reasonOf(kind, metadataPart, key, writtenTexts[key]!);
    if (reason === undefined) continue;
    keyWarnings.push({
      path: fieldPath(metadataPart, key),
      message: `has no effect: ${reason}`,
      code: 'FIELD_WITHOUT_EFFECT',
    });
    if (keyWarnings.length === maxEffectWarnings) break;
  }
  return keyWarnings;
}

function reasonOf(kind: KindName, metadataPart: MetadataPart, key: string, value: string): string | undefined {
  const metadataKey = keyOf(metadataPart, key);
  if (metadataKey !== undefined) return reasonOfKnown(kind, metadataKey, value);
  if (key.startsWith('internal.istio.io/') || !isMeshKey(metadataPart, key)) return undefined;
  const partName = metadataPart === 'annotations' ? 'annotation' : 'label';
  if (keyOf(otherMetadataPart[metadataPart], key) !== undefined)
    return `it is ${metadataPart === 'annotations' ? 'a label' : 'an annotation'}: move it to metadata.${otherMetadataPart[metadataPart]}`;
  const suggestedKey = nearestKey(metadataPart, key);
  return `there is no such ${partName}${suggestedKey === undefined ? '' : `; did you mean ${suggestedKey}?`}`;
}

function keyOf(metadataPart: MetadataPart, key: string): MetadataKey | undefined {
  return Object.hasOwn(keysByPart[metadataPart], key) ? keysByPart[metadataPart][key] : undefined;
}

function reasonOfKnown(
  kind: KindName,
  { kindsThatReadIt = [], belongsToOtherProgram, reason, harmless }: MetadataKey,
  value: string,
): string | undefined {
  if (belongsToOtherProgram || kindsThatReadIt.includes(kind) || harmless?.test(value)) return undefined;
  return reason ?? `it applies to ${kindsThatReadIt.map(writtenName).join(', ')} only`;
}

function writtenName(kind: KindName): string {
  return kind === 'KubernetesGateway' ? 'Gateway (Gateway API)' : kind;
}

function isMeshKey(metadataPart: MetadataPart, key: string): boolean {
  const domain = key.slice(0, key.indexOf('/'));
  if (domain === gatewayDomain || domain === istioDomain || domain.endsWith(`.${istioDomain}`)) return true;
  // Detects a misspelled domain such as networking.isto.io.
  const isNearIstioDomain = nearestName(domain.split('.').slice(-2).join('.'), [istioDomain]) !== undefined;
  return isNearIstioDomain && nearestName(key, Object.keys(keysByPart[metadataPart])) !== undefined;
}

/** A key of the same name in another domain counts as similar. */
function nearestKey(metadataPart: MetadataPart, key: string): string | undefined {
  const keys = Object.keys(keysByPart[metadataPart]);
  const name = key.slice(key.indexOf('/'));
  return nearestName(key, keys) ?? keys.find((candidate) => candidate.toLowerCase().endsWith(name.toLowerCase()));
}
