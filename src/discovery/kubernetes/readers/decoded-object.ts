/** The status of an object is ignored unless the kind uses it. */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import type { Config } from '../../../model/config/config.ts';
import { readConfigObject } from '../../../model/config/config-file.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { type KindName, kinds } from '../../../model/kinds/index.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { boundedProblems, problemOf } from '../../config/sources/object-problems.ts';
import type { KubernetesObject } from '../api-server.ts';
import { excessOf } from '../store/object-scan.ts';
import { keyOf, rejectionReasonOf } from '../store/object-store.ts';

export interface DecodedObject {
  readonly config?: Config;
  /** Objects that apply instead of an invalid one that restricts access, so that nothing is allowed. */
  readonly placeholders: readonly Config[];
  readonly problems: readonly ConfigProblem[];
  readonly generation?: number;
}

/** An exception of a decoder only rejects this object. */
export function decodedObject(address: string, kind: KindName, object: KubernetesObject): DecodedObject {
  const rejectionReason = rejectionReasonOf(object) ?? excessOf(object);
  if (rejectionReason !== undefined) return unreadableObject(address, kind, object, 'LIMIT_EXCEEDED', rejectionReason);
  try {
    return decode(address, kind, object);
  } catch (error) {
    return unreadableObject(address, kind, object, 'INTERNAL_ERROR', `cannot be decoded: ${messageOf(error)}`);
  }
}

function unreadableObject(
  address: string,
  kind: KindName,
  object: KubernetesObject,
  code: string,
  message: string,
): DecodedObject {
  const { apiVersion, kind: writtenKind, metadata } = object;
  const { name, namespace, generation, uid } = metadata;
  const minimalObject = {
    apiVersion,
    kind: writtenKind,
    metadata: { name, namespace, generation, uid },
    spec: message,
  };
  const { config, ...otherResults } = decode(address, kind, minimalObject as KubernetesObject);
  const problemFields = { object: `${kind} ${keyOf(object)}`, field: '', message, code };
  return {
    ...otherResults,
    placeholders: config === undefined ? otherResults.placeholders : [],
    problems: [{ severity: 'error', place: { source: address }, ...problemFields }],
  };
}

function decode(address: string, kind: KindName, object: KubernetesObject): DecodedObject {
  const errorsOnly = kinds[kind].body !== 'spec' && kind !== 'Service';
  const objectReading = readConfigObject(address, normalizedObject(kind, object), { creationTimestamp: 0, errorsOnly });
  const { config, standIns, problems } = objectReading;
  const { generation } = object.metadata;
  const reportedProblems = boundedProblems(problems.filter(reportFilter(kind)));
  return {
    ...(config !== undefined && { config }),
    placeholders: standIns,
    problems: reportedProblems.map((problem) => problemOf(problem, standIns, address)),
    ...(generation !== undefined && { generation }),
  };
}

function normalizedObject(kind: KindName, object: KubernetesObject): KubernetesObject {
  if (kinds[kind].body !== 'spec' || kind === 'WorkloadEntry') return object;
  const { status: _, ...objectFields } = object;
  return objectFields;
}

/**
 * Most objects of Kubernetes kinds are not written for the mesh, so only errors are reported, except for annotations
 * and labels of Services. All warnings are reported for objects of Istio and the Gateway API.
 */
function reportFilter(kind: KindName): (problem: Problem) => boolean {
  return ({ severity, field = '' }) =>
    severity === 'error' || kinds[kind].body === 'spec' || (kind === 'Service' && field.startsWith('metadata.'));
}
