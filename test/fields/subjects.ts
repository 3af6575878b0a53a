/** What the fields of are looked at: all kinds that have marks, and the mesh configuration. */
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { kubernetesKinds } from '../../src/model/kinds/kubernetes/index.ts';
import { meshSubject, type Subject, subjectOfKind } from './effects.ts';

/** The other kinds of Kubernetes describe a cluster: of their many fields few are read, and none is written for the mesh. */
const ofKubernetes: readonly string[] = ['Ingress', 'IngressClass'];

const names = (Object.keys(kinds) as KindName[])
  .filter((name) => !Object.hasOwn(kubernetesKinds, name) || ofKubernetes.includes(name))
  .sort();

export const subjects: readonly Subject[] = [...names.map(subjectOfKind), meshSubject];
