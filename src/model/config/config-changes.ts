/** What an update of an object means to proxies (spec/discovery.md §4.1). */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';

/**
 * Whether an update may change what proxies get (§4.1, last row): not when an object of Istio's keeps its spec and no
 * label or annotation of Istio's is involved. A WorkloadEntry's status is its health, so it counts as well. Of other
 * groups' objects every update counts.
 */
export function needsPush(previous: Config, current: Config): boolean {
  if (previous === current || previous.resourceVersion === current.resourceVersion) return false;
  return (
    !isOfIstio(current) ||
    [previous, current].some(({ labels, annotations }) => mentionsIstio(labels) || mentionsIstio(annotations)) ||
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
