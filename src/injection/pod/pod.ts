/** The interfaces declare the fields that the injector uses; all others stay unchanged, in any version of Kubernetes. */
import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, fail, fieldPath } from '../../model/fields/decode.ts';
import * as violation from '../../model/fields/violation.ts';
import { isObject } from '../../runtime/json-object.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface Pod extends Json {
  readonly metadata: PodMetadata;
  readonly spec: PodSpec;
}

export interface PodMetadata extends Json {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Texts;
  readonly annotations?: Texts;
  readonly ownerReferences?: readonly OwnerReference[];
}

export type Texts = Readonly<Record<string, string>>;

export interface OwnerReference extends Json {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly controller?: boolean;
}

export interface PodSpec extends Json {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Volume[];
  readonly imagePullSecrets?: readonly { readonly name?: string }[];
  readonly securityContext?: SecurityContext;
  readonly hostNetwork?: boolean;
  readonly nodeName?: string;
  readonly os?: { readonly name?: string };
}

export interface SecurityContext extends Json {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
}

export interface Container extends Json {
  readonly name: string;
  readonly image?: string;
  readonly args?: readonly string[];
  readonly env?: readonly EnvironmentVariable[];
  readonly ports?: readonly ContainerPort[];
  readonly securityContext?: SecurityContext;
  readonly livenessProbe?: Json;
  readonly readinessProbe?: Json;
  readonly startupProbe?: Json;
  readonly lifecycle?: Json;
  readonly restartPolicy?: string;
}

export interface EnvironmentVariable extends Json {
  readonly name: string;
  readonly value?: string;
}

export interface ContainerPort extends Json {
  readonly name?: string;
  readonly containerPort: number;
  readonly protocol?: string;
}

export interface Volume extends Json {
  readonly name: string;
}

export const proxyContainerName = 'istio-proxy';
/** The second container checks the redirection of a CNI plugin. */
export const initContainerName = 'istio-init';
export const validationContainerName = 'istio-validation';

const injectedNames: ReadonlySet<string> = new Set([proxyContainerName, initContainerName, validationContainerName]);

/** A container with the name of a generated container overrides its fields. */
export function isSidecarContainer({ name }: { readonly name: string }): boolean {
  return injectedNames.has(name);
}

export function annotationOf(pod: Pod, name: string): string | undefined {
  const { annotations } = pod.metadata;
  return annotations && Object.hasOwn(annotations, name) ? annotations[name] : undefined;
}

export function labelOf(pod: Pod, name: string): string | undefined {
  const { labels } = pod.metadata;
  return labels && Object.hasOwn(labels, name) ? labels[name] : undefined;
}

export function withAnnotations(pod: Pod, annotations: Texts): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

export function allContainersOf({ spec }: Pod): readonly Container[] {
  return [...spec.containers, ...(spec.initContainers ?? [])];
}

/** The proxy is not an application container. */
export function applicationContainersOf({ spec }: Pod): readonly Container[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...spec.containers, ...sidecars].filter((container) => !isSidecarContainer(container));
}

/** `undefined` if the image decides. */
export function userOf({ securityContext }: Container, { spec }: Pod): number | undefined {
  return securityContext?.runAsUser ?? spec.securityContext?.runAsUser;
}

/** `null` counts as absent, as in Kubernetes. */
type Check = (value: unknown, path: string) => readonly violation.FieldError[];

const scalar =
  (type: 'string' | 'number' | 'boolean', expected: string): Check =>
  (value, path) =>
    typeof value === type ? [] : [violation.fieldError(path, violation.wrongType(expected, value))];

const text = scalar('string', 'a string');

const checkItems =
  (check: Check): Check =>
  (value, path) =>
    Array.isArray(value)
      ? value.flatMap((item, index) => check(item, `${path}[${index}]`))
      : [violation.fieldError(path, violation.wrongType('a list', value))];

const texts: Check = (value, path) =>
  isObject(value)
    ? Object.entries(value).flatMap(([key, item]) => text(item, fieldPath(path, key)))
    : [violation.fieldError(path, violation.wrongType('an object', value))];

const fieldsOf =
  (fields: Readonly<Record<string, Check>>, requiredFields: readonly string[] = []): Check =>
  (value, path) => {
    if (!isObject(value)) return [violation.fieldError(path, violation.wrongType('an object', value))];
    return Object.entries(fields).flatMap(([key, check]) => {
      const field = value[key] ?? undefined;
      if (field !== undefined) return check(field, fieldPath(path, key));
      return requiredFields.includes(key) ? [violation.fieldError(fieldPath(path, key), violation.missingValue())] : [];
    });
  };

const number = scalar('number', 'a number');
const anyObject = fieldsOf({});
const identity = fieldsOf({ runAsUser: number, runAsGroup: number });
const hooks = fieldsOf({ preStop: anyObject, postStart: anyObject });
const container = fieldsOf(
  {
    ...{ name: text, image: text, args: checkItems(text), restartPolicy: text, securityContext: identity },
    env: checkItems(fieldsOf({ name: text, value: text }, ['name'])),
    ports: checkItems(fieldsOf({ name: text, containerPort: number, protocol: text }, ['containerPort'])),
    ...{ livenessProbe: anyObject, readinessProbe: anyObject, startupProbe: anyObject, lifecycle: hooks },
  },
  ['name'],
);
const owner = fieldsOf({ apiVersion: text, kind: text, name: text }, ['apiVersion', 'kind', 'name']);
const pod = fieldsOf(
  {
    metadata: fieldsOf({
      ...{ name: text, generateName: text, namespace: text, labels: texts, annotations: texts },
      ownerReferences: checkItems(owner),
    }),
    spec: fieldsOf(
      {
        ...{ containers: checkItems(container), initContainers: checkItems(container), securityContext: identity },
        ...{
          volumes: checkItems(fieldsOf({ name: text }, ['name'])),
          imagePullSecrets: checkItems(fieldsOf({ name: text })),
        },
        ...{ hostNetwork: scalar('boolean', 'true or false'), nodeName: text, os: fieldsOf({ name: text }) },
      },
      ['containers'],
    ),
  },
  ['spec'],
);

/** @param path of the pod in its document, for errors: empty, or `spec.template` */
export function readPod(value: unknown, path = ''): Decoded<Pod> {
  const [firstError, ...moreErrors] = pod(value, path);
  if (firstError !== undefined) return E.left([firstError, ...moreErrors]);
  if (!isObject(value)) return fail(path, violation.wrongType('an object', value));
  const valueWithoutNulls = withoutNulls(value) as Json;
  return E.right({ ...valueWithoutNulls, metadata: valueWithoutNulls.metadata ?? {} } as Pod);
}

/** Items of lists stay, even if they are `null`. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== null)
      .map(([key, field]) => [key, withoutNulls(field)]),
  );
}
