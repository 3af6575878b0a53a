/** Pods that the controllers of Kubernetes in files would create: for checks of labels and service accounts. */
import type { Config } from '../../model/config/config.ts';
import { readConfigObject } from '../../model/config/config-file.ts';
import { documentsOf, parseYamlDocument } from '../../model/yaml/yaml-document.ts';
import { isObject } from '../../runtime/json-object.ts';

/** Where each kind has its pod template. */
const templatePaths: Readonly<Record<string, readonly string[]>> = {
  Deployment: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};
const mayHaveTemplate = /\bkind["']?\s*:\s*["']?(?:Deployment|StatefulSet|DaemonSet|ReplicaSet|Job|CronJob)\b/;

/** One Pod for each template; what cannot be read as a Pod is left out. */
export function podsOfTemplates(text: string): readonly Config[] {
  const pods: Config[] = [];
  if (!mayHaveTemplate.test(text)) return pods;
  for (const part of documentsOf(text)) {
    if (!mayHaveTemplate.test(part.text)) continue;
    for (const object of objectsIn(parseYamlDocument(part).value)) {
      const pod = podOf(object);
      if (pod !== undefined) pods.push(pod);
    }
  }
  return pods;
}

function objectsIn(value: unknown): readonly unknown[] {
  return isObject(value) && value.kind === 'List' && Array.isArray(value.items) ? value.items : [value];
}

function podOf(object: unknown): Config | undefined {
  if (!isObject(object) || !isObject(object.metadata) || typeof object.kind !== 'string') return undefined;
  if (!/^(?:apps|batch)\//.test(String(object.apiVersion)) || !Object.hasOwn(templatePaths, object.kind))
    return undefined;
  let template: unknown = object;
  for (const name of templatePaths[object.kind]!) template = isObject(template) ? template[name] : undefined;
  if (!isObject(template)) return undefined;
  const { name, namespace } = object.metadata;
  const labels = isObject(template.metadata) ? template.metadata.labels : undefined;
  const { serviceAccountName } = isObject(template.spec) ? template.spec : {};
  const metadata = {
    name: `${object.kind.toLowerCase()}.${String(name)}`,
    ...(namespace !== undefined && { namespace }),
    labels,
  };
  return readConfigObject(
    '',
    { apiVersion: 'v1', kind: 'Pod', metadata, spec: { serviceAccountName } },
    { creationTimestamp: 0 },
  ).config;
}
