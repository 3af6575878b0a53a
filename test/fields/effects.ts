/**
 * Determines whether a field of a kind affects the resources of proxies, with two objects that differ only in this
 * field.
 */
import * as E from 'fp-ts/lib/Either.js';
import type { Decoder } from '../../src/model/fields/decode.ts';
import { kinds } from '../../src/model/kinds/index.ts';
import { meshConfigPart, readMeshConfig } from '../../src/model/mesh/mesh-config.decode.ts';
import { otherValues } from './other-values.ts';
import { addPlaces, fieldsWithin, type SchemaField, type ValuePath, valueAt, withValueAt } from './schema-fields.ts';
import { type FieldWorld, type Output, outputOf, type WorldObject } from './world.ts';

/** A kind, or the mesh configuration. */
export interface FieldSubject {
  readonly name: string;
  readonly decoder: Decoder<unknown>;
  /** Values of the subject in a world. */
  readonly specimensIn: (world: FieldWorld) => readonly Specimen[];
}

export interface Specimen {
  readonly value: unknown;
  readonly isValid: (value: unknown) => boolean;
  readonly worldWith: (value: unknown) => FieldWorld;
}

const maxTries = 150;
const maxTriesAtOnePlace = 5;

/** One place of a field in a world. */
export interface FieldOccurrence {
  readonly world: FieldWorld;
  readonly specimen: Specimen;
  readonly place: ValuePath;
}

export function subjectOfKind(name: keyof typeof kinds): FieldSubject {
  const kind = kinds[name];
  const { decoder, body, group, writtenAs = name } = kind;
  const hasKind = (object: WorldObject): boolean =>
    object.kind === writtenAs && object.apiVersion.slice(0, Math.max(0, object.apiVersion.lastIndexOf('/'))) === group;
  return {
    ...{ name, decoder },
    specimensIn: (world) =>
      world.objects.flatMap((object, index): Specimen[] => {
        if (!hasKind(object)) return [];
        const { apiVersion, kind: writtenKind, metadata, ...rest } = object;
        return [
          {
            value: body === 'spec' ? object.spec : rest,
            isValid: (value) => E.isRight(kind.decode(value, String(metadata.namespace ?? 'default'))),
            worldWith: (value) => {
              const bodyOf = body === 'spec' ? { ...rest, spec: value } : (value as object);
              const changedObject = { apiVersion, kind: writtenKind, metadata, ...bodyOf } as WorldObject;
              return { ...world, objects: world.objects.with(index, changedObject) };
            },
          },
        ];
      }),
  };
}

/** The mesh configuration. An invalid provider is omitted, so its errors are no effect of its fields. */
export const meshSubject: FieldSubject = {
  name: 'MeshConfig',
  decoder: meshConfigPart,
  specimensIn: (world) =>
    Object.keys(world.meshConfig).length === 0
      ? []
      : [
          {
            value: world.meshConfig,
            isValid: (value) => {
              const read = readMeshConfig('mesh.yaml', JSON.stringify(value));
              return E.isRight(read) && !read.right.warnings.some(({ message }) => message.endsWith('is left out'));
            },
            worldWith: (value) => ({ ...world, meshConfig: value as FieldWorld['meshConfig'] }),
          },
        ],
};

export class Effects {
  readonly #worlds: readonly FieldWorld[];
  readonly #bases = new Map<Specimen, Output>();

  constructor(worlds: readonly FieldWorld[]) {
    this.#worlds = worlds;
  }

  /** Occurrences by field path. */
  placesOf({ name, decoder, specimensIn }: FieldSubject): ReadonlyMap<string, readonly FieldOccurrence[]> {
    const occurrencesByPath = new Map<string, FieldOccurrence[][]>();
    for (const world of this.#worlds)
      for (const specimen of specimensIn(world)) {
        const placesByPath = new Map<string, ValuePath[]>();
        addPlaces(decoder, specimen.value, placesByPath);
        for (const [path, all] of placesByPath)
          occurrencesByPath.set(path, [
            ...(occurrencesByPath.get(path) ?? []),
            all.map((place) => ({ world, specimen, place })),
          ]);
      }
    return new Map([...occurrencesByPath].map(([path, all]) => [path, inTurns(all, `${name} ${path}`)]));
  }

  /**
   * Compares the outputs of pairs of worlds that differ only in the field.
   *
   * @returns the first pair of values with different outputs, or `undefined`
   */
  difference({ path, decoder }: SchemaField, occurrences: readonly FieldOccurrence[]): string | undefined {
    let remainingTries = maxTries;
    for (const { world, specimen, place } of occurrences) {
      let remainingPlaceTries = maxTriesAtOnePlace;
      const original = valueAt(specimen.value, place);
      const [first, ...moreValues] = otherValues(decoder, original, path);
      for (const other of [...(first === undefined ? [] : [first]), undefined, ...moreValues]) {
        const value = withValueAt(specimen.value, place, other);
        if (!specimen.isValid(value)) continue;
        const base = this.#baseOf(specimen);
        const output = outputWith(specimen.worldWith(value), base);
        if (output === undefined) continue;
        if (output !== base.text) {
          return `${world.name}: ${place.join('.')}: ${JSON.stringify(original)} → ${JSON.stringify(other) ?? 'absent'}`;
        }
        remainingTries -= 1;
        remainingPlaceTries -= 1;
        if (remainingTries === 0) return undefined;
        if (remainingPlaceTries === 0) break;
      }
    }
    return undefined;
  }

  /** Other values that the decoder accepts at the field's places, except `false` for a switch. */
  acceptedOthers({ path, decoder }: SchemaField, occurrences: readonly FieldOccurrence[]): readonly unknown[] {
    return occurrences.flatMap(({ specimen, place }) =>
      otherValues(decoder, valueAt(specimen.value, place), path).filter(
        (other) => other !== false && specimen.isValid(withValueAt(specimen.value, place, other)),
      ),
    );
  }

  /** Whether every object is rejected if this field is added next to one of its sibling fields. */
  isRefused({ path }: SchemaField, siblings: readonly FieldOccurrence[]): boolean {
    const name = path.slice(path.lastIndexOf('.') + 1);
    return (
      siblings.length > 0 &&
      siblings.every(
        ({ specimen: { value, isValid }, place }) => !isValid(withValueAt(value, [...place.slice(0, -1), name], 'x')),
      )
    );
  }

  #baseOf(specimen: Specimen): Output {
    const baseOutput = this.#bases.get(specimen) ?? outputOf(specimen.worldWith(specimen.value));
    this.#bases.set(specimen, baseOutput);
    return baseOutput;
  }
}

/** `undefined` if the mesh is invalid. */
function outputWith(world: FieldWorld, { requested }: Output): string | undefined {
  try {
    return outputOf(world, requested).text;
  } catch {
    return undefined;
  }
}

/** Interleaves the lists, because a second place in the same specimen seldom shows an effect that the first one does not. */
function inTurns(lists: readonly (readonly FieldOccurrence[])[], field: string): readonly FieldOccurrence[] {
  const maxLength = Math.max(...lists.map((list) => list.length));
  const all = Array.from({ length: maxLength }, (_, index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat();
  const isFirst = ({ world }: FieldOccurrence): number => (world.shows.includes(field) ? 0 : 1);
  return all.toSorted((a, b) => isFirst(a) - isFirst(b));
}

export function leavesOf(subject: FieldSubject): readonly SchemaField[] {
  return fieldsWithin(subject.decoder).filter(({ isLeaf }) => isLeaf);
}
