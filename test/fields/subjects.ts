/** Subjects of the field tests: all kinds, and the mesh configuration. */
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { type FieldSubject, meshSubject, subjectOfKind } from './effects.ts';

const names = (Object.keys(kinds) as KindName[]).sort();

export const subjects: readonly FieldSubject[] = [...names.map(subjectOfKind), meshSubject];
