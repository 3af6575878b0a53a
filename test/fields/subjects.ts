/** Subjects of the field tests: all kinds, and the mesh configuration. */
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { meshSubject, type Subject, subjectOfKind } from './effects.ts';

const names = (Object.keys(kinds) as KindName[]).sort();

export const subjects: readonly Subject[] = [...names.map(subjectOfKind), meshSubject];
