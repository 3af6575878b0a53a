/** How the Kubernetes API calls a kind of object. */
import { type KindName, kinds } from '../../model/kinds/index.ts';

export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** As in the address: `virtualservices`. */
  readonly plural: string;
  /** As objects say it: two groups have a `Gateway`. */
  readonly kind: string;
  /** False: objects of the kind are in no namespace. */
  readonly namespaced: boolean;
  /** Address of what is no list of objects: `/version`. */
  readonly path?: string;
}

/**
 * The resource of a kind that configuration may hold.
 *
 * @param version one of the kind's; by default the newest. All mean the same, so one is watched
 */
export function resourceOf(name: KindName, version?: string): Resource {
  const { group, versions, plural, kind, writtenAs = kind, scope } = kinds[name];
  return { group, version: version ?? versions[0]!, plural, kind: writtenAs, namespaced: scope === 'Namespaced' };
}

const core = { group: '', version: 'v1', namespaced: true } as const;

/** What is asked for and written, and is no configuration. */
export const customResourceDefinitions: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};
const admission = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false } as const;
export const mutatingWebhookConfigurations: Resource = {
  ...{ ...admission, plural: 'mutatingwebhookconfigurations', kind: 'MutatingWebhookConfiguration' },
};
export const validatingWebhookConfigurations: Resource = {
  ...{ ...admission, plural: 'validatingwebhookconfigurations', kind: 'ValidatingWebhookConfiguration' },
};
export const leases: Resource = { ...core, group: 'coordination.k8s.io', plural: 'leases', kind: 'Lease' };
export const events: Resource = { ...core, plural: 'events', kind: 'Event' };
export const serviceAccounts: Resource = { ...core, plural: 'serviceaccounts', kind: 'ServiceAccount' };
export const tokenReviews: Resource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
  kind: 'TokenReview',
  namespaced: false,
};
export const certificateSigningRequests: Resource = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
};
export const subjectAccessReviews: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
  kind: 'SubjectAccessReview',
  namespaced: false,
};

/** `networking.istio.io/v1`, and `v1` of the core group: an object's `apiVersion`. */
export function apiVersionOf({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Where the resource is, of one namespace or of all: `/apis/networking.istio.io/v1/namespaces/shop/virtualservices`. */
export function pathOf(resource: Resource, namespace?: string): string {
  if (resource.path !== undefined) return resource.path;
  const root = resource.group === '' ? '/api' : `/apis/${resource.group}`;
  const within = namespace === undefined || !resource.namespaced ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}/${resource.version}${within}/${resource.plural}`;
}
