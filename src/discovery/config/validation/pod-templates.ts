/** Workload controllers (such as Deployments) in the files would create these pods, so labels and service accounts can be checked. */
import type { Config } from '../../../model/config/config.ts';
import { readConfigObject } from '../../../model/config/config-file.ts';
import { objectsWithin } from '../../../model/config/list-of-objects.ts';
import { podTemplatePaths } from '../../../model/kinds/kubernetes/pod-template-paths.ts';
import { maxPodContainers } from '../../../model/kinds/object-limits.ts';
import { documentsOf, parseYamlDocument } from '../../../model/yaml/yaml-document.ts';
import { isObject } from '../../../runtime/json-object.ts';

const mayHaveTemplate =
  /\bkind["']?\s*:\s*["']?(?:Deployment|StatefulSet|DaemonSet|ReplicaSet|ReplicationController|Job|CronJob)(?:List)?\b/;

/** Templates that are not a valid Pod are omitted. */
export function podsOfTemplates(text: string): readonly Config[] {
  const pods: Config[] = [];
  if (!mayHaveTemplate.test(text)) return pods;
  for (const yamlPart of documentsOf(text)) {
    if (!mayHaveTemplate.test(yamlPart.text)) continue;
    for (const { value } of objectsWithin(parseYamlDocument(yamlPart).value)) {
      const pod = podOf(value);
      if (pod !== undefined) pods.push(pod);
    }
  }
  return pods;
}

function podOf(object: unknown): Config | undefined {
  if (!isObject(object) || !isObject(object.metadata) || typeof object.kind !== 'string') return undefined;
  if (!Object.hasOwn(podTemplatePaths, object.kind)) return undefined;
  const group = object.kind === 'ReplicationController' ? /^v1$/ : /^(?:apps|batch)\//;
  if (!group.test(String(object.apiVersion))) return undefined;
  let template: unknown = object;
  for (const name of podTemplatePaths[object.kind]!) template = isObject(template) ? template[name] : undefined;
  if (!isObject(template)) return undefined;
  const { name, namespace } = object.metadata;
  const { labels, annotations } = isObject(template.metadata) ? template.metadata : {};
  const { serviceAccountName, containers, initContainers } = isObject(template.spec) ? template.spec : {};
  const metadata = {
    name: `${object.kind.toLowerCase()}.${String(name)}`,
    ...(namespace !== undefined && { namespace }),
    labels,
    annotations,
  };
  const spec = {
    serviceAccountName,
    containers: containersOf(containers),
    initContainers: containersOf(initContainers),
  };
  return readConfigObject('', { apiVersion: 'v1', kind: 'Pod', metadata, spec }, { creationTimestamp: 0 }).config;
}

/** Keeps only ports, because errors in other fields must not reject the template. */
function containersOf(podSpec: unknown): readonly object[] {
  const objects: readonly unknown[] = Array.isArray(podSpec) ? podSpec : [];
  return objects
    .filter(isObject)
    .slice(0, maxPodContainers)
    .map(({ ports, restartPolicy }) => ({
      ...(typeof restartPolicy === 'string' && { restartPolicy }),
      ports: (Array.isArray(ports) ? ports : []).filter(isPort),
    }));
}

function isPort(portValue: unknown): boolean {
  const isOptionalString = (value: unknown): boolean => value === undefined || typeof value === 'string';
  return (
    isObject(portValue) &&
    isPortNumber(portValue.containerPort) &&
    isOptionalString(portValue.name) &&
    isOptionalString(portValue.protocol)
  );
}

function isPortNumber(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535;
}
