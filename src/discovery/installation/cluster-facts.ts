/** Each item is a value, or the reason why it could not be read. */
import * as E from 'fp-ts/lib/Either.js';
import type { LabelSelector } from '../../model/kinds/label-selector.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import {
  type ApiResource,
  customResourceDefinitions,
  mutatingWebhookConfigurations,
  resourceOf,
  validatingWebhookConfigurations,
} from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject, ObjectMeta } from '../kubernetes/api-server.ts';

export type ReadResult<T> = E.Either<string, T>;

interface NamedObject {
  readonly metadata: ObjectMeta;
}

export interface ClusterNodeFacts extends NamedObject {
  readonly status: {
    readonly nodeInfo: {
      readonly operatingSystem: string;
      readonly architecture: string;
      readonly kernelVersion: string;
      readonly kubeletVersion: string;
    };
  };
}

export interface WebhookFacts {
  readonly name: string;
  readonly clientConfig: {
    readonly caBundle?: string;
    readonly url?: string;
    readonly service?: { readonly name: string; readonly namespace: string; readonly path?: string };
  };
  readonly failurePolicy?: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
  readonly rules?: readonly { readonly resources?: readonly string[]; readonly operations?: readonly string[] }[];
}

export interface WebhookConfigurationFacts extends NamedObject {
  readonly webhooks?: readonly WebhookFacts[];
}

interface ContainerFacts {
  readonly name: string;
  readonly image?: string;
}

export interface PodFacts extends NamedObject {
  readonly spec: {
    readonly containers: readonly ContainerFacts[];
    readonly initContainers?: readonly ContainerFacts[];
    readonly hostNetwork?: boolean;
  };
  readonly status?: { readonly phase?: string };
}

export interface DeploymentFacts extends NamedObject {
  readonly spec: {
    readonly replicas?: number;
    readonly template: { readonly spec: { readonly containers: readonly ContainerFacts[] } };
  };
  readonly status?: { readonly readyReplicas?: number; readonly updatedReplicas?: number };
}

export interface SliceFacts extends NamedObject {
  readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[] | null;
}

export interface ConfigMapFacts extends NamedObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface RequiredPermission {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
}

export interface ClusterFacts {
  /** Version such as `v1.36.3`. */
  readonly version: ReadResult<string>;
  readonly groups: ReadResult<ReadonlyMap<string, readonly string[]>>;
  readonly definitions: ReadResult<readonly NamedObject[]>;
  readonly nodes: ReadResult<readonly ClusterNodeFacts[]>;
  readonly namespaces: ReadResult<readonly NamedObject[]>;
  readonly mutatingWebhooks: ReadResult<readonly WebhookConfigurationFacts[]>;
  readonly validatingWebhooks: ReadResult<readonly WebhookConfigurationFacts[]>;
  readonly deployments: ReadResult<readonly DeploymentFacts[]>;
}

export interface InstalledFacts {
  readonly slices: ReadResult<readonly SliceFacts[]>;
  readonly rootOfMesh: ReadResult<ConfigMapFacts | undefined>;
  readonly injector: ReadResult<ConfigMapFacts | undefined>;
  readonly pods: ReadonlyMap<string, ReadResult<readonly PodFacts[]>>;
  /** New pods without annotations, by namespace. */
  readonly admittedPods: ReadonlyMap<string, ReadResult<PodFacts>>;
}

const coreGroup = { group: '', version: 'v1', namespaced: true } as const;
const pods: ApiResource = { ...coreGroup, plural: 'pods', kind: 'Pod' };
const nodes: ApiResource = { ...coreGroup, plural: 'nodes', kind: 'Node', namespaced: false };
const deployments: ApiResource = { ...coreGroup, group: 'apps', plural: 'deployments', kind: 'Deployment' };
const accessReviews: ApiResource = {
  ...{ group: 'authorization.k8s.io', version: 'v1', namespaced: false },
  ...{ plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview' },
};
const serverVersion: ApiResource = {
  ...coreGroup,
  plural: 'version',
  kind: 'Info',
  namespaced: false,
  path: '/version',
};
const apiGroups: ApiResource = { ...coreGroup, plural: 'apis', kind: 'APIGroupList', namespaced: false, path: '/apis' };

const pageSize = '200';
/** Larger clusters are checked only in part. */
const maxPages = 50;
export const maxObjects = Number(pageSize) * maxPages;

export class FactReader {
  readonly #server: Pick<ApiServer, 'request'>;
  readonly #signal: AbortSignal;

  constructor(server: Pick<ApiServer, 'request'>, signal: AbortSignal) {
    this.#server = server;
    this.#signal = signal;
  }

  /** @throws ApiError if the API server is unreachable or rejects the credentials */
  async cluster(namespace: string): Promise<ClusterFacts> {
    // This request fails if nothing can be read from the cluster.
    const version = await this.#server.request({ method: 'GET', resource: serverVersion }, this.#signal);
    const [groups, ...lists] = await Promise.all([
      this.#groups(),
      this.#list(customResourceDefinitions),
      this.#list(nodes),
      this.#list(resourceOf('Namespace')),
      this.#list(mutatingWebhookConfigurations),
      this.#list(validatingWebhookConfigurations),
      this.#list(deployments, namespace, 'app=istiod'),
    ]);
    const [definitions, nodeList, namespaces, mutating, validating, planes] = lists as ReadResult<readonly never[]>[];
    return {
      version: E.right(String(version.gitVersion)),
      groups,
      ...{ definitions: definitions!, nodes: nodeList!, namespaces: namespaces! },
      ...{ mutatingWebhooks: mutating!, validatingWebhooks: validating!, deployments: planes! },
    };
  }

  async readInstalledFacts(
    namespace: string,
    { service, injector, members }: { service: string; injector: string; members: readonly string[] },
  ): Promise<Omit<InstalledFacts, 'admittedPods'>> {
    const [slices, rootOfMesh, settings, ...lists] = await Promise.all([
      this.#list(resourceOf('EndpointSlice'), namespace, `kubernetes.io/service-name=${service}`),
      this.#configMap(namespace, 'istio-ca-root-cert'),
      this.#configMap(namespace, injector),
      ...members.map((member) => this.#list(pods, member)),
    ]);
    return {
      slices: slices as ReadResult<readonly SliceFacts[]>,
      ...{ rootOfMesh, injector: settings },
      pods: new Map(members.map((member, index) => [member, lists[index] as ReadResult<readonly PodFacts[]>])),
    };
  }

  async missingRights(rights: readonly RequiredPermission[]): Promise<ReadResult<readonly RequiredPermission[]>> {
    return this.#readFact('permissions of the user', async () => {
      const reviews = rights.map(async ({ verb, group, resource, namespace }) => {
        const resourceAttributes = { verb, group, resource, ...(namespace !== undefined && { namespace }) };
        const body = { spec: { resourceAttributes } };
        const { status } = await this.#server.request({ method: 'POST', resource: accessReviews, body }, this.#signal);
        return isObject(status) && status.allowed === true;
      });
      const reviewResults = await Promise.all(reviews);
      return rights.filter((_, index) => !reviewResults[index]);
    });
  }

  /** @returns the pod after all admission plugins and webhooks, or why it is rejected */
  admittedPod(namespace: string, pod: object): Promise<ReadResult<PodFacts>> {
    const query = { dryRun: 'All' };
    return this.#readFact(`dry run of a pod in namespace ${namespace}`, async () => {
      const request = { method: 'POST', resource: pods, namespace, body: pod, query } as const;
      return (await this.#server.request(request, this.#signal)) as unknown as PodFacts;
    });
  }

  async #readFact<T>(factName: string, read: () => Promise<T>): Promise<ReadResult<T>> {
    try {
      return E.right(await read());
    } catch (failure) {
      // If the cluster is unreachable, the command ends.
      if (statusOf(failure) === undefined || statusOf(failure) === 401) throw failure;
      return E.left(`${factName}: ${messageOf(failure)}`);
    }
  }

  #groups(): Promise<ReadResult<ReadonlyMap<string, readonly string[]>>> {
    return this.#readFact('API groups', async () => {
      const { groups } = await this.#server.request({ method: 'GET', resource: apiGroups }, this.#signal);
      const list = groups as readonly { name: string; versions: readonly { version: string }[] }[];
      return new Map(list.map(({ name, versions }) => [name, versions.map(({ version }) => version)]));
    });
  }

  /** Lists complete objects, unlike informers, which keep only fields that the control plane uses. */
  #list(
    resource: ApiResource,
    namespace?: string,
    labelSelector?: string,
  ): Promise<ReadResult<readonly KubernetesObject[]>> {
    return this.#readFact(resource.plural, async () => {
      const objects: KubernetesObject[] = [];
      let next = '';
      for (let page = 0; page < maxPages; page++) {
        const query = {
          limit: pageSize,
          ...(next !== '' && { continue: next }),
          ...(labelSelector !== undefined && { labelSelector }),
        };
        const location = namespace === undefined ? {} : { namespace };
        const list = await this.#server.request({ method: 'GET', resource, ...location, query }, this.#signal);
        objects.push(...(list.items as readonly KubernetesObject[]));
        next = String((list.metadata as { continue?: unknown }).continue ?? '');
        if (next === '') break;
      }
      return objects;
    });
  }

  async #configMap(namespace: string, name: string): Promise<ReadResult<ConfigMapFacts | undefined>> {
    const resource = resourceOf('ConfigMap');
    return this.#readFact(`ConfigMap ${name}`, async () => {
      try {
        const configMap = await this.#server.request({ method: 'GET', resource, namespace, name }, this.#signal);
        return configMap as unknown as ConfigMapFacts;
      } catch (failure) {
        if (statusOf(failure) === 404) return undefined;
        throw failure;
      }
    });
  }
}
