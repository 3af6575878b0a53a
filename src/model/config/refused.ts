/**
 * Builds placeholders that make access restrictions fail closed when an object is rejected and has no earlier valid version. A placeholder blocks
 * everything that the object might have blocked, for the workloads that it may have selected.
 */
import { hash } from 'node:crypto';

import { isObject } from '../../runtime/json-object.ts';
import { isNamespace, isObjectName } from '../fields/names.ts';
import { nearestName } from '../fields/nearest-name.ts';
import { placeholderBuilders } from '../kinds/closed.ts';
import type { Config, ConfigKey, PlaceholderInfo } from './config.ts';
import { correctedMetadata, intendedKind } from './envelope.ts';

interface FileLine {
  readonly file: string;
  readonly line: number;
}

/**
 * @param value the object as received, or its readable part
 * @param isBroken the YAML is invalid, so the unreadable part may contain a missing field
 */
export function buildPlaceholder(
  value: unknown,
  location: FileLine,
  { isBroken = false, createdAt }: { readonly isBroken?: boolean; readonly createdAt: number },
): Config | undefined {
  if (!isObject(value) || typeof value.kind !== 'string') return undefined;
  const kind = intendedKind(value.apiVersion, value.kind);
  const buildStandIn = kind && placeholderBuilders.get(kind);
  if (kind === undefined || buildStandIn === undefined) return undefined;
  const writtenMetadata = metadataOf(value);
  const metadata = correctedMetadata(writtenMetadata ?? {});
  // Unreadable metadata may contain a namespace.
  const isPartial = isBroken || writtenMetadata === undefined;
  const key = identityOf(kind, metadata, isPartial);
  const namespace = key?.namespace ?? namespaceOf(metadata, isPartial);
  const annotations = isObject(metadata.annotations) ? metadata.annotations : {};
  const placeholder = buildStandIn({ spec: value.spec, isBroken, namespace, annotations });
  if (placeholder === undefined) return undefined;
  const content = contentHash([value, placeholder.spec]);
  const writtenName = typeof metadata.name === 'string' ? metadata.name : `(no name, content ${content.slice(0, 8)})`;
  // Without a readable namespace, the content distinguishes objects of the same name.
  const name = key?.name ?? (namespace === undefined ? `${writtenName} ${content.slice(0, 8)}` : writtenName);
  const standsFor: PlaceholderInfo = {
    kind,
    objectName: `${kind} ${typeof metadata.namespace === 'string' ? metadata.namespace : (namespace ?? '?')}/${writtenName}`,
    ...(key && { key }),
    isScopeKnown: placeholder.isScopeKnown && namespace !== undefined,
    effect: placeholder.effect(namespaceText(namespace)),
    effectInRoot: placeholder.effect(namespace === undefined ? namespaceText(namespace) : 'the whole mesh'),
  };
  const creationMs =
    typeof metadata.creationTimestamp === 'string' ? Date.parse(metadata.creationTimestamp) : Number.NaN;
  return Object.freeze({
    kind: placeholder.kind,
    apiVersion: placeholder.apiVersion,
    name: placeholder.kind === kind ? name : `${kind} ${name}`,
    // An object without a namespace applies to the whole mesh (policy-index.ts).
    namespace: namespace ?? '',
    labels: {},
    annotations: {},
    resourceVersion: `refused-${content}`,
    creationTimestamp: Number.isNaN(creationMs) ? createdAt : creationMs,
    spec: placeholder.spec,
    source: location,
    standsFor,
  });
}

function metadataOf(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  if (isObject(value.metadata)) return value.metadata;
  const misspeltField = Object.keys(value).find(
    (field) => nearestName(field, ['metadata']) !== undefined && isObject(value[field]),
  );
  return misspeltField === undefined ? undefined : (value[misspeltField] as Readonly<Record<string, unknown>>);
}

export function identityOf(
  kind: string,
  metadata: Readonly<Record<string, unknown>>,
  isBroken = false,
): ConfigKey | undefined {
  const namespace = namespaceOf(metadata, isBroken);
  const { name } = metadata;
  if (namespace === undefined || typeof name !== 'string' || !isObjectName(name)) return undefined;
  return { kind, namespace, name };
}

function namespaceOf({ namespace }: Readonly<Record<string, unknown>>, isBroken: boolean): string | undefined {
  if (namespace === undefined || namespace === null) return isBroken ? undefined : 'default';
  return typeof namespace === 'string' && isNamespace(namespace) ? namespace : undefined;
}

function namespaceText(namespace: string | undefined): string {
  return namespace === undefined ? 'the mesh (its namespace cannot be read)' : `namespace ${namespace}`;
}

export function effectText({ namespace, standsFor }: Config, rootNamespace: string | undefined): string | undefined {
  return namespace === rootNamespace ? standsFor?.effectInRoot : standsFor?.effect;
}

export function placeholderText(config: Config, rootNamespace?: string): string {
  const { source, standsFor } = config;
  const locationText =
    source === undefined ? '' : ` (${source.line > 0 ? `${source.file}:${source.line}` : source.file})`;
  const effect = effectText(config, rootNamespace);
  return `${standsFor?.objectName}${locationText} is rejected and has no valid earlier version: ${effect}`;
}

function contentHash(content: unknown): string {
  return hash('sha1', JSON.stringify(content) ?? '', 'hex').slice(0, 16);
}
