/** Passes pods to the injector and returns the injected pods or the errors. */
import * as E from 'fp-ts/lib/Either.js';
import { type InjectionRequest, injectPod } from '../../src/injection/inject.ts';
import { type Container, type Json, type Pod, readPod } from '../../src/injection/pod/pod.ts';
import { defaultInjectionConfig, defaultInjectionValues, type InjectionValues } from '../../src/injection/settings.ts';
import { defaultMeshConfig } from '../../src/model/mesh/mesh-config.ts';
import { proxyConfigFor } from '../../src/model/push-context/workload-proxy-config.ts';

export const givenValues: InjectionValues = { ...defaultInjectionValues, hub: 'example.com/mesh', tag: '1.0' };

export function podOf(pod: Json): Pod {
  const read = readPod(pod);
  if (E.isLeft(read)) throw new Error(JSON.stringify(read.left));
  return read.right;
}

export function injectionRequest(
  pod: Json,
  valueOverrides: Partial<InjectionValues> = {},
  other: Partial<InjectionRequest> = {},
): InjectionRequest {
  return {
    pod: podOf(pod),
    namespace: 'shop',
    settings: { config: defaultInjectionConfig, values: { ...givenValues, ...valueOverrides }, revision: '' },
    mesh: defaultMeshConfig,
    proxyConfigFor: (workload) => proxyConfigFor([], defaultMeshConfig, workload).proxyConfig,
    ...other,
  };
}

/** @throws Error if the pod is rejected */
export function injected(...args: Parameters<typeof injectionRequest>): Pod {
  const result = injectPod(injectionRequest(...args));
  if (E.isLeft(result)) throw new Error(JSON.stringify(result.left));
  return result.right;
}

export function errorsOf(...args: Parameters<typeof injectionRequest>): { path: string; code: string }[] {
  const result = injectPod(injectionRequest(...args));
  return E.isLeft(result) ? result.left.map(({ path, code }) => ({ path, code })) : [];
}

export function containerOf({ spec }: Pod, name = 'istio-proxy'): Container {
  const matchingContainer = [...(spec.initContainers ?? []), ...spec.containers].find(
    (container) => container.name === name,
  );
  if (matchingContainer === undefined) throw new Error(`no container ${name}`);
  return matchingContainer;
}

/** Variables of a container: the value, or its source. */
export function environmentOf(pod: Pod, name?: string): Record<string, unknown> {
  return Object.fromEntries((containerOf(pod, name).env ?? []).map((one) => [one.name, one.value ?? one.valueFrom]));
}

/** Value of a flag of the container that redirects traffic. */
export function flagOf(pod: Pod, flag: string, container = 'istio-init'): string | undefined {
  const { args = [] } = containerOf(pod, container);
  const at = args.indexOf(flag);
  return at < 0 ? undefined : args[at + 1];
}

/** A pod with one application container. */
export const appPod = (annotations: Readonly<Record<string, string>> = {}, container: Json = {}): Json => ({
  metadata: { name: 'p', annotations },
  spec: { containers: [{ name: 'app', ...container }] },
});
