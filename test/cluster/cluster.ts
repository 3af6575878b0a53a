/** An API server, a namespace that only this test file uses, and clients for both. */
import type { ClusterAccess } from '../../src/discovery/kubernetes/access/cluster-access.ts';
import {
  type ApiResource,
  apiVersionOf,
  resourceOf,
  serviceAccounts,
} from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { type ApiServerLimits, Http2ApiServer } from '../../src/discovery/kubernetes/transport/http2-api-server.ts';
import { type ApiServerAddress, compact } from './api-server-process.ts';

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: false } as const;
const clusterRoles: ApiResource = { ...rbac, plural: 'clusterroles', kind: 'ClusterRole' };
const clusterRoleBindings: ApiResource = { ...rbac, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' };
const roles: ApiResource = { ...rbac, plural: 'roles', kind: 'Role', namespaced: true };
const roleBindings: ApiResource = { ...rbac, plural: 'rolebindings', kind: 'RoleBinding', namespaced: true };

const neverAborted = new AbortController().signal;

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** Permissions of a service account. */
export interface Rights {
  /** Rules for all namespaces. */
  readonly cluster?: readonly Rule[];
  /** Rules for the namespace of the test file. */
  readonly namespace?: readonly Rule[];
}

/** An object to write; by default in the namespace of the test file. */
export interface ObjectToWrite {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export class Cluster {
  readonly namespace = `t-${crypto.randomUUID().slice(0, 13)}`;
  #address: ApiServerAddress | undefined;
  #release = (): void => {};
  #admin: Http2ApiServer | undefined;
  readonly #clients: Http2ApiServer[] = [];
  #createdAccounts = 0;

  /** @param release callback for when the server is no longer needed */
  async begin(address: ApiServerAddress, release = (): void => {}): Promise<void> {
    this.#address = address;
    this.#release = release;
    this.#admin = this.client();
    const namespaces = resourceOf('Namespace');
    await this.admin.request(
      { method: 'POST', resource: namespaces, body: { metadata: { name: this.namespace } } },
      neverAborted,
    );
  }

  end(): void {
    for (const client of this.#clients) client.close();
    this.#release();
  }

  /** A client with all permissions. */
  get admin(): Http2ApiServer {
    return this.#admin ?? unbegun();
  }

  get address(): ApiServerAddress {
    return this.#address ?? unbegun();
  }

  access(token = this.address.adminToken): ClusterAccess {
    const { url, ca } = this.address;
    return {
      server: new URL(url),
      tls: async () => ({ ca }),
      headers: async () => ({ authorization: `Bearer ${token}` }),
      invalidateCredentials: () => {},
    };
  }

  /** A client that closes when the test file ends. */
  client(token?: string, limits?: Partial<ApiServerLimits>): Http2ApiServer {
    const newClient = new Http2ApiServer(this.access(token), limits);
    this.#clients.push(newClient);
    return newClient;
  }

  /** A client of a service account that has only these permissions. */
  async clientWith(rights: Rights): Promise<Http2ApiServer> {
    return this.client(await this.token(await this.account(rights)));
  }

  /** @returns the name of a new service account in the file's namespace */
  async account({ cluster, namespace }: Rights = {}): Promise<string> {
    const name = `account-${this.#createdAccounts++}`;
    await this.create(serviceAccounts, { metadata: { name } });
    const subjects = [{ kind: 'ServiceAccount', name, namespace: this.namespace }];
    const grant = async (
      role: ApiResource,
      binding: ApiResource,
      roleName: string,
      rules: readonly Rule[],
    ): Promise<void> => {
      const metadata = { name: roleName };
      await this.create(role, { metadata, rules });
      const roleRef = { apiGroup: rbac.group, kind: role.kind, name: roleName };
      await this.create(binding, { metadata, subjects, roleRef });
    };
    // Names without a namespace are shared by all test files.
    if (cluster !== undefined) await grant(clusterRoles, clusterRoleBindings, `${this.namespace}-${name}`, cluster);
    if (namespace !== undefined) await grant(roles, roleBindings, name, namespace);
    return name;
  }

  /**
   * Returns a token of the account from the TokenRequest API.
   * @param audience default: the API server's
   */
  async token(account: string, audience?: string, expirationSeconds = 600): Promise<string> {
    const spec = { expirationSeconds, ...(audience !== undefined && { audiences: [audience] }) };
    const response = await this.admin.request(
      {
        ...{ method: 'POST', resource: serviceAccounts, namespace: this.namespace, name: account },
        ...{ subresource: 'token', body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec } },
      },
      neverAborted,
    );
    return (response.status as { token: string }).token;
  }

  create(resource: ApiResource, object: ObjectToWrite): Promise<KubernetesObject> {
    const { namespace = this.namespace } = object.metadata;
    return this.admin.request({ method: 'POST', resource, namespace, body: withKind(resource, object) }, neverAborted);
  }

  /** Server-side apply: creates the object, or changes it if it differs. */
  apply(resource: ApiResource, object: ObjectToWrite, subresource?: string): Promise<KubernetesObject> {
    const { name, namespace = this.namespace } = object.metadata;
    return this.admin.request(
      {
        ...{ method: 'PATCH', patch: 'apply', resource, namespace, name, body: withKind(resource, object) },
        query: { fieldManager: 'test', force: 'true' },
        ...(subresource !== undefined && { subresource }),
      },
      neverAborted,
    );
  }

  patch(resource: ApiResource, name: string, body: unknown, subresource?: string): Promise<KubernetesObject> {
    const target = { resource, namespace: this.namespace, name, ...(subresource !== undefined && { subresource }) };
    return this.admin.request({ method: 'PATCH', ...target, body }, neverAborted);
  }

  async delete(resource: ApiResource, name: string, namespace = this.namespace): Promise<void> {
    await this.admin.request({ method: 'DELETE', resource, namespace, name }, neverAborted);
  }

  /** Compacts the history of the store: earlier versions then cause status 410. */
  compact(): Promise<void> {
    return compact(this.address);
  }
}

function withKind(resource: ApiResource, object: ObjectToWrite): unknown {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}

function unbegun(): never {
  throw new Error('the cluster is there once the tests of the file run');
}
