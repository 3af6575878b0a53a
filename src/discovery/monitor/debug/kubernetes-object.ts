import type { Config } from '../../../model/config/config.ts';
import { placeholderText } from '../../../model/config/refused.ts';
import { kinds, originalKindName } from '../../../model/kinds/index.ts';
import type { Kind } from '../../../model/kinds/kind.ts';
import { ownValue } from '../../../runtime/json-object.ts';

const redactedText = '[redacted]';
/** Annotation that contains a copy of the object, including Secret data. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** Returns the object with decoded fields, including defaults. */
export function asKubernetesObject(config: Config, rootNamespace?: string): object {
  const { apiVersion, kind, name, namespace, labels, resourceVersion, creationTimestamp, status } = config;
  const metadata = {
    name,
    ...(namespace !== '' && { namespace }),
    resourceVersion,
    // The timestamp is 0 if the file contains none.
    ...(creationTimestamp > 0 && { creationTimestamp: new Date(creationTimestamp).toISOString() }),
    labels,
    annotations: annotationsOf(config, rootNamespace),
  };
  const body = bodyOf(config);
  return {
    apiVersion,
    kind: originalKindName(kind),
    metadata,
    ...body,
    ...(status !== undefined && { status }),
  };
}

function rowOf(kind: string): Kind<string, unknown> | undefined {
  return ownValue(kinds as Readonly<Record<string, Kind<string, unknown>>>, kind);
}

function bodyOf({ kind, spec }: Config): object {
  const body = rowOf(kind)?.body === 'object' ? (spec as object) : { spec };
  return kind === 'Secret' ? redactValues(body as Readonly<Record<string, unknown>>) : body;
}

function redactValues(body: Readonly<Record<string, unknown>>): object {
  const fields = Object.entries(body).map(([field, value]) => {
    if (field === 'type' || field === 'immutable') return [field, value];
    const names = value instanceof Map ? [...value.keys()] : Object.keys((value ?? {}) as object);
    return [field, Object.fromEntries(names.map((name) => [name, redactedText]))];
  });
  return Object.fromEntries(fields);
}

function annotationsOf(config: Config, rootNamespace: string | undefined): Readonly<Record<string, string>> {
  const { kind, annotations } = config;
  // The object is a placeholder for another one.
  if (config.standsFor !== undefined) return { 'chartpilot/stands-for': placeholderText(config, rootNamespace) };
  return kind === 'Secret' && lastApplied in annotations
    ? { ...annotations, [lastApplied]: redactedText }
    : annotations;
}
