/** Pods that would be unprotected or unable to start are rejected. */
import type { FieldError } from '../model/fields/decode.ts';
import * as violation from '../model/fields/violation.ts';
import {
  allContainersOf,
  annotationOf,
  applicationContainersOf,
  type Container,
  initContainerName,
  type Pod,
  proxyContainerName,
  userOf,
  validationContainerName,
} from './pod/pod.ts';
import { mergesMetrics, scrapePortError, scrapeSettingsOf } from './pod/prometheus.ts';
import { interceptionModeOf, type TemplateInput, type TemplatePod } from './template/template-input.ts';
import { proxyImageOf } from './template/templates.ts';

export function podErrors(
  input: TemplateInput,
  template: TemplatePod,
  injectedVolumes: ReadonlySet<string>,
): FieldError[] {
  const { pod, statusPort } = input;
  const scraped = mergesMetrics(scrapeSettingsOf(pod), statusPort) ? scrapePortError(scrapeSettingsOf(pod)) : undefined;
  return [
    ...violation.errorsAt('metadata.annotations["prometheus.io/port"]', scraped),
    ...volumeErrors(pod, template, injectedVolumes),
    ...mountErrors(pod, template),
    ...reservedNameErrors(pod, template),
    ...(redirectsTraffic(template) ? excludedUserErrors(input) : []),
  ];
}

export function redirectsTraffic({ spec }: TemplatePod): boolean {
  const { initContainers } = (spec ?? {}) as { readonly initContainers?: readonly Container[] };
  return (initContainers ?? []).some(({ name }) => name === initContainerName || name === validationContainerName);
}

/** Kubernetes' error message would name neither the template's volume nor the pod's. */
function volumeErrors({ spec }: Pod, template: TemplatePod, injectedVolumes: ReadonlySet<string>): FieldError[] {
  const { volumes = [] } = (template.spec ?? {}) as { readonly volumes?: readonly { readonly name: string }[] };
  const reservedNames = new Set(volumes.map(({ name }) => name));
  return (spec.volumes ?? []).flatMap(({ name }, index) =>
    reservedNames.has(name) && !injectedVolumes.has(name)
      ? [
          violation.fieldError(
            `spec.volumes[${index}].name`,
            violation.disallowedValue('is reserved for the sidecar; rename the volume', name),
          ),
        ]
      : [],
  );
}

const mountAnnotation = 'sidecar.istio.io/userVolumeMount';

function mountErrors(pod: Pod, template: TemplatePod): FieldError[] {
  const mounts = JSON.parse(annotationOf(pod, mountAnnotation) || '{}') as Readonly<Record<string, unknown>>;
  const { volumes = [] } = (template.spec ?? {}) as { readonly volumes?: readonly { readonly name: string }[] };
  const volumeNames = [...volumes, ...(pod.spec.volumes ?? [])].map(({ name }) => name);
  return Object.keys(mounts)
    .filter((name) => !volumeNames.includes(name))
    .map((name) =>
      violation.fieldError(`metadata.annotations["${mountAnnotation}"]`, violation.unknownValue(volumeNames, name)),
    );
}

/**
 * Rejects containers with the name of an injected init container. Only the proxy may be in either list, because the mesh determines in which list it
 * runs.
 */
function reservedNameErrors({ spec }: Pod, template: TemplatePod): FieldError[] {
  const { initContainers = [] } = (template.spec ?? {}) as { readonly initContainers?: readonly Container[] };
  const reservedNames = new Set(initContainers.map(({ name }) => name).filter((name) => name !== proxyContainerName));
  return spec.containers
    .filter(({ name }) => reservedNames.has(name))
    .map(({ name }) =>
      violation.fieldError(
        `spec.containers[${name}].name`,
        violation.disallowedValue('is reserved for an init container of the sidecar; rename the container', name),
      ),
    );
}

/** Redirection excludes the proxy's traffic by its user, so an application with the same user would bypass the proxy. */
function excludedUserErrors(input: TemplateInput): FieldError[] {
  const { pod, proxyUid, proxyGid } = input;
  const proxyImage = proxyImageOf(input);
  const isTproxy = interceptionModeOf(input) === 'TPROXY';
  const excludedId = isTproxy ? proxyGid : proxyUid;
  return applicationContainersOf(pod).flatMap((container) => {
    const { name, image } = container;
    const user = userOf(container, pod);
    const fieldPath = `spec.containers[${name}].securityContext.runAsUser`;
    if (user === excludedId) {
      return [
        violation.fieldError(
          fieldPath,
          violation.disallowedValue(
            `must not be the user of the sidecar, ${excludedId}, whose traffic is not redirected; choose another one`,
            user,
          ),
        ),
      ];
    }
    if (user === undefined && image === proxyImage) {
      return [
        violation.fieldError(
          fieldPath,
          violation.missingValue(
            `because the image's own user is that of the sidecar, ${excludedId}, whose traffic is not redirected; choose another one`,
          ),
        ),
      ];
    }
    return [];
  });
}

/** Finds a name in both lists: a template may add a container to one list although the other list has a container of this name. */
export function duplicateErrors(pod: Pod): FieldError[] {
  const seenNames = new Set<string>();
  return allContainersOf(pod).flatMap(({ name }) => {
    if (!seenNames.has(name)) {
      seenNames.add(name);
      return [];
    }
    const message = `a template adds a second container named ${name}; rename one of them`;
    return [violation.fieldError('spec.initContainers', violation.duplicate(message, name))];
  });
}
