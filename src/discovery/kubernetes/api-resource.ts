import { type KindName, kinds } from '../../model/kinds/index.ts';

export interface ApiResource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural as in paths, such as `virtualservices`. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Path for a response that is not a list of objects, such as `/version`. */
  readonly path?: string;
}

/** @param version default: the newest. All versions are equivalent, so watching one suffices. */
export function resourceOf(name: KindName, version?: string): ApiResource {
  const { group, versions, plural, kind, writtenAs = kind, scope } = kinds[name];
  return { group, version: version ?? versions[0]!, plural, kind: writtenAs, namespaced: scope === 'Namespaced' };
}

const coreGroup = { group: '', version: 'v1', namespaced: true } as const;

export const customResourceDefinitions: ApiResource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};
const admission = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false } as const;
export const mutatingWebhookConfigurations: ApiResource = {
  ...{ ...admission, plural: 'mutatingwebhookconfigurations', kind: 'MutatingWebhookConfiguration' },
};
export const validatingWebhookConfigurations: ApiResource = {
  ...{ ...admission, plural: 'validatingwebhookconfigurations', kind: 'ValidatingWebhookConfiguration' },
};
export const leases: ApiResource = { ...coreGroup, group: 'coordination.k8s.io', plural: 'leases', kind: 'Lease' };
export const events: ApiResource = { ...coreGroup, plural: 'events', kind: 'Event' };
export const serviceAccounts: ApiResource = { ...coreGroup, plural: 'serviceaccounts', kind: 'ServiceAccount' };
export const tokenReviews: ApiResource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
  kind: 'TokenReview',
  namespaced: false,
};
export const certificateSigningRequests: ApiResource = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
};
export const subjectAccessReviews: ApiResource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
  kind: 'SubjectAccessReview',
  namespaced: false,
};

export function apiVersionOf({ group, version }: Pick<ApiResource, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Returns a path such as `/apis/networking.istio.io/v1/namespaces/shop/virtualservices`. */
export function pathOf(resource: ApiResource, namespace?: string): string {
  if (resource.path !== undefined) return resource.path;
  const root = resource.group === '' ? '/api' : `/apis/${resource.group}`;
  const namespacePath =
    namespace === undefined || !resource.namespaced ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}/${resource.version}${namespacePath}/${resource.plural}`;
}
