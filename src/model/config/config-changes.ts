import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';

/**
 * An Istio object needs no push if spec, status and age are unchanged and neither version has Istio labels or annotations. The age decides conflicts,
 * and `resourceVersion` does not cover it. For other API groups, every new version needs a push.
 */
export function needsPush(previous: Config, current: Config): boolean {
  if (previous === current) return false;
  if (previous.creationTimestamp !== current.creationTimestamp) return true;
  if (previous.resourceVersion === current.resourceVersion) return false;
  return (
    !isIstioConfig(current) ||
    [previous, current].some(({ labels, annotations }) => hasIstioKeys(labels) || hasIstioKeys(annotations)) ||
    (current.kind === 'WorkloadEntry' && !isDeepStrictEqual(previous.labels, current.labels)) ||
    !isDeepStrictEqual(previous.spec, current.spec) ||
    !isDeepStrictEqual(previous.status, current.status)
  );
}

function isIstioConfig({ apiVersion }: Config): boolean {
  return apiVersion.slice(0, apiVersion.indexOf('/')).endsWith('.istio.io');
}

function hasIstioKeys(map: Readonly<Record<string, string>>): boolean {
  for (const key in map) if (key.includes('istio.io')) return true;
  return false;
}
