/** What an update of an object means to proxies (spec/discovery.md §4.1). */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';

/**
 * Whether an update may change what proxies receive (§4.1, last row). An Istio object that keeps its spec and its age, and
 * changes no label or annotation of Istio, needs no push. The age decides which of two objects wins a conflict: it counts
 * although the version of an object does not cover it. A WorkloadEntry's status is its health and its labels are those of
 * the workload, so both count. Of objects of other API groups every new version counts.
 */
export function needsPush(previous: Config, current: Config): boolean {
  if (previous === current) return false;
  if (previous.creationTimestamp !== current.creationTimestamp) return true;
  if (previous.resourceVersion === current.resourceVersion) return false;
  return (
    !isOfIstio(current) ||
    [previous, current].some(({ labels, annotations }) => mentionsIstio(labels) || mentionsIstio(annotations)) ||
    (current.kind === 'WorkloadEntry' && !isDeepStrictEqual(previous.labels, current.labels)) ||
    !isDeepStrictEqual(previous.spec, current.spec) ||
    !isDeepStrictEqual(previous.status, current.status)
  );
}

function isOfIstio({ apiVersion }: Config): boolean {
  return apiVersion.slice(0, apiVersion.indexOf('/')).endsWith('.istio.io');
}

function mentionsIstio(map: Readonly<Record<string, string>>): boolean {
  for (const key in map) if (key.includes('istio.io')) return true;
  return false;
}
