/** What the fields of are looked at: all kinds that have marks, and the mesh configuration. */
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { kubernetesKinds } from '../../src/model/kinds/kubernetes/index.ts';
import { meshSubject, type Subject, subjectOfKind } from './effects.ts';

/** Kinds of Kubernetes have many fields of which few are read, and none that is read is reported. */
const names = (Object.keys(kinds) as KindName[]).filter((name) => !Object.hasOwn(kubernetesKinds, name)).sort();

export const subjects: readonly Subject[] = [...names.map(subjectOfKind), meshSubject];
